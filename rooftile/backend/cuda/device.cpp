// The device's own functions: what Queue::cuda needs to open one, and the harness to feed it.
#include <cuda_runtime.h>

#include <dlfcn.h>

#include <cstdio>
#include <memory>
#include <type_traits>

#include "rooftile/backend/cuda/describe.h"
#include "rooftile/backend/cuda/launch.h"

namespace rooftile::cuda {
namespace {

constexpr int kLeastArchitecture = 80;

Status open(CudaLaunch& launch, char* description, std::size_t size) {
  int driver = 0, runtime = 0, devices = 0;
  if (Status s = status_of(cudaDriverGetVersion(&driver), "Queue::cuda", "cudaDriverGetVersion"); !s)
    return s;
  if (driver == 0) return Status::error("Queue::cuda: there is no NVIDIA driver on this machine");
  cudaRuntimeGetVersion(&runtime);
  if (driver / 1000 < runtime / 1000)
    return Status::error("Queue::cuda: the driver supports CUDA %d.%d, this build needs %d.0 or later",
                         driver / 1000, driver % 1000 / 10, runtime / 1000);
  if (Status s = status_of(cudaGetDeviceCount(&devices), "Queue::cuda", "cudaGetDeviceCount"); !s) return s;
  if (launch.device == -1) {
    if (Status s = status_of(cudaGetDevice(&launch.device), "Queue::cuda", "cudaGetDevice"); !s) return s;
  }
  if (launch.device < 0 || launch.device >= devices)
    return Status::error("Queue::cuda: device is %d, there are %d", launch.device, devices);
  cudaDeviceProp properties;
  if (Status s = status_of(cudaGetDeviceProperties(&properties, launch.device), "Queue::cuda",
                           "cudaGetDeviceProperties");
      !s)
    return s;
  launch.architecture = properties.major * 10 + properties.minor;
  launch.multiprocessors = properties.multiProcessorCount;
  if (launch.architecture < kLeastArchitecture)
    return Status::error("Queue::cuda: device %d, %s, has compute capability %d.%d; 8.0 or later is needed",
                         launch.device, properties.name, properties.major, properties.minor);
  std::snprintf(description, size, "device %d, %s: %d multiprocessors, %zu GiB", launch.device,
                properties.name, launch.multiprocessors, properties.totalGlobalMem >> 30);
  if (launch.scratch) return {};
  const OnDevice here(launch.device);
  return status_of(cudaMalloc(&launch.scratch, kCudaScratchBytes), "Queue::cuda", "cudaMalloc");
}

void close(const CudaLaunch& launch) {
  const OnDevice here(launch.device);
  cudaFree(launch.scratch);
}

Status allocate(const CudaLaunch& launch, std::size_t bytes, void** memory) {
  const OnDevice here(launch.device);
  return status_of(cudaMalloc(memory, bytes), "rooftile", "cudaMalloc");
}
Status release(const CudaLaunch& launch, void* memory) {
  const OnDevice here(launch.device);
  return status_of(cudaFree(memory), "rooftile", "cudaFree");
}
Status copy(const CudaLaunch& launch, void* to, const void* from, std::size_t bytes) {
  const OnDevice here(launch.device);
  const auto stream = static_cast<cudaStream_t>(launch.stream);
  if (Status s = status_of(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "rooftile",
                           "cudaMemcpyAsync");
      !s)
    return s;
  return status_of(cudaStreamSynchronize(stream), "rooftile", "cudaStreamSynchronize");
}
Status synchronize(const CudaLaunch& launch) {
  const OnDevice here(launch.device);
  return status_of(cudaStreamSynchronize(static_cast<cudaStream_t>(launch.stream)), "rooftile",
                   "cudaStreamSynchronize");
}

Status copy_on_device(const CudaLaunch& launch, void* to, const void* from, std::size_t bytes) {
  const OnDevice here(launch.device);
  return status_of(
      cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(launch.stream)),
      "rooftile", "cudaMemcpyAsync");
}

struct Event {
  cudaEvent_t event = nullptr;
  Event() { cudaEventCreate(&event); }
  ~Event() { cudaEventDestroy(event); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
};

Status time(const CudaLaunch& launch, const Timed* timed, int count, int rounds, void* flush,
            std::size_t flush_bytes, float* us) {
  const OnDevice here(launch.device);
  const auto stream = static_cast<cudaStream_t>(launch.stream);
  const auto calls = static_cast<std::size_t>(rounds) * static_cast<std::size_t>(count);
  const auto begin = std::make_unique<Event[]>(calls), end = std::make_unique<Event[]>(calls);
  for (std::size_t k = 0; k < calls; ++k) {
    const Timed& it = timed[k % static_cast<std::size_t>(count)];
    cudaMemsetAsync(flush, static_cast<int>(k % 256), flush_bytes, stream);
    cudaEventRecord(begin[k].event, stream);
    if (Status s = it.call(it.context); !s) return s;
    cudaEventRecord(end[k].event, stream);
  }
  if (Status s = synchronize(launch); !s) return s;
  for (std::size_t k = 0; k < calls; ++k) {
    float ms = 0;
    if (Status s = status_of(cudaEventElapsedTime(&ms, begin[k].event, end[k].event), "rooftile",
                             "cudaEventElapsedTime");
        !s)
      return s;
    us[k] = ms * 1000;
  }
  return {};
}

/// The driver's own library for sensors, if it is there: three functions of it.
Status sense(const CudaLaunch& launch, DeviceSensors& sensors) {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return Status::error("rooftile: libnvidia-ml.so.1 cannot be loaded");
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    return function != nullptr;
  };
  int (*init)() = nullptr;
  int (*by_bus)(const char*, void**) = nullptr;
  int (*clock)(void*, int, unsigned*) = nullptr;
  int (*power)(void*, unsigned*) = nullptr;
  int (*reasons)(void*, unsigned long long*) = nullptr;
  char bus[32];
  void* handle = nullptr;
  unsigned mhz = 0, milliwatts = 0;
  unsigned long long why = 0;
  constexpr unsigned long long kPowerOrHeat = 0x4 | 0x8 | 0x20 | 0x40 | 0x80;  // nvmlClocksThrottleReason…
  const bool read = find(init, "nvmlInit_v2") && find(by_bus, "nvmlDeviceGetHandleByPciBusId_v2") &&
                    find(clock, "nvmlDeviceGetClockInfo") && find(power, "nvmlDeviceGetPowerUsage") &&
                    find(reasons, "nvmlDeviceGetCurrentClocksThrottleReasons") && init() == 0 &&
                    cudaDeviceGetPCIBusId(bus, sizeof bus, launch.device) == cudaSuccess &&
                    by_bus(bus, &handle) == 0 && clock(handle, 1, &mhz) == 0 &&
                    power(handle, &milliwatts) == 0 && reasons(handle, &why) == 0;
  if (!read) return Status::error("rooftile: the GPU's sensors could not be read");
  sensors = {static_cast<int>(mhz), milliwatts / 1000.0, (why & kPowerOrHeat) != 0};
  return {};
}

Status findings(const CudaLaunch&) { return {}; }
Status trace_begin(const CudaLaunch&) {
  return Status::error("rooftile: a GPU tells no accesses; the checked emulated device does");
}
Status trace_end(const CudaLaunch& launch, void*, void (*)(void*, const emulated::TraceLine&),
                 emulated::TraceTotals&) {
  return trace_begin(launch);
}

}  // namespace

extern const DeviceFunctions device_functions{open,        close,          allocate,    release,  copy,
                                              synchronize, copy_on_device, time,        sense,    findings,
                                              describe,    launch_cost,    trace_begin, trace_end};

}  // namespace rooftile::cuda
