// The device's own functions: what Queue::cuda needs to open one, and the harness to feed it.
#include <cuda_runtime.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>

#include "rooftile/backend/cuda/describe.h"
#include "rooftile/backend/cuda/empty.h"
#include "rooftile/backend/cuda/launch.h"
#include "rooftile/backend/cuda/management.h"

namespace rooftile::cuda {

cudaError_t allow_shared_memory(const void* kernel, int device) {
  // A thread remembers some of those that have it: asking takes longer than a launch.
  struct Known {
    const void* kernel;
    int device;
  };
  constexpr std::size_t kKnown = 64;
  thread_local std::array<Known, kKnown> all{};
  Known& known =
      all[(reinterpret_cast<std::uintptr_t>(kernel) / 16 + static_cast<unsigned>(device)) % kKnown];
  if (known.kernel == kernel && known.device == device) return cudaSuccess;
  int most = 0;
  cudaFuncAttributes its{};
  if (const cudaError_t error =
          cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device))
    return error;
  if (const cudaError_t error = cudaFuncGetAttributes(&its, kernel)) return error;
  const int dynamic = most - static_cast<int>(its.sharedSizeBytes);
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, dynamic);
  if (error == cudaSuccess) known = {kernel, device};
  return error;
}

int clusters_at_once(const CudaLaunch& where, const void* kernel, const Grid& grid) {
  struct Known {
    const void* kernel;
    int device;
    unsigned threads, cluster;
    int clusters;
  };
  constexpr std::size_t kKnown = 64;
  thread_local std::array<Known, kKnown> all{};
  const unsigned threads = grid.threads.x;
  Known& known = all[(reinterpret_cast<std::uintptr_t>(kernel) / 16 + threads / 32 * 4 + grid.cluster +
                      static_cast<unsigned>(where.device)) %
                     kKnown];
  if (known.kernel == kernel && known.device == where.device && known.threads == threads &&
      known.cluster == grid.cluster)
    return known.clusters;
  const OnDevice device(where.device);
  const Configuration configuration(grid, where.stream);
  int clusters = 0;
  if (allow(kernel, where.device, grid) != cudaSuccess ||
      cudaOccupancyMaxActiveClusters(&clusters, kernel, &configuration) != cudaSuccess) {
    (void)cudaGetLastError();  // that was ours, and no launch's
    return 0;
  }
  known = {kernel, where.device, threads, grid.cluster, clusters};
  return clusters;
}

void* management_handle(int device) {
  int (*by_bus)(const char*, void**) = nullptr;
  char bus[32];
  void* handle = nullptr;
  const bool found = find_management(by_bus, "nvmlDeviceGetHandleByPciBusId_v2") &&
                     cudaDeviceGetPCIBusId(bus, sizeof bus, device) == cudaSuccess &&
                     by_bus(bus, &handle) == 0;
  return found ? handle : nullptr;
}

namespace {

constexpr int kMinArchitecture = 80;

/// Lets this thread allocate while one of its streams is captured in a graph: a queue may be opened by the
/// first call within.
class WhileCapturing {
 public:
  WhileCapturing() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~WhileCapturing() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  WhileCapturing(const WhileCapturing&) = delete;
  WhileCapturing& operator=(const WhileCapturing&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

/// On a stream of its own: the default one may not be touched while another is captured.
cudaError_t clear_at_once(void* memory, std::size_t bytes) {
  cudaStream_t own = nullptr;
  if (const cudaError_t error = cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking)) return error;
  cudaError_t error = cudaMemsetAsync(memory, 0, bytes, own);
  if (error == cudaSuccess) error = cudaStreamSynchronize(own);
  cudaStreamDestroy(own);
  return error;
}

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
  if (launch.architecture < kMinArchitecture)
    return Status::error("Queue::cuda: device %d, %s, has compute capability %d.%d; 8.0 or later is needed",
                         launch.device, properties.name, properties.major, properties.minor);
  std::snprintf(description, size, "device %d, %s: %d multiprocessors, %zu GiB", launch.device,
                properties.name, launch.multiprocessors, properties.totalGlobalMem >> 30);
  if (launch.scratch) return {};
  const OnDevice here(launch.device);
  const WhileCapturing allowed;
  constexpr std::size_t kBytes = kCudaCounters * sizeof *launch.counters;
  if (Status s =
          status_of(cudaMalloc(&launch.scratch, kCudaScratchBytes + kBytes), "Queue::cuda", "cudaMalloc");
      !s)
    return s;
  void* const counters = static_cast<std::byte*>(launch.scratch) + kCudaScratchBytes;
  if (Status s = status_of(clear_at_once(counters, kBytes), "Queue::cuda", "cudaMemsetAsync"); !s) return s;
  launch.counters = static_cast<unsigned*>(counters);
  return {};
}

void close(const CudaLaunch& launch) {
  const OnDevice here(launch.device);
  const WhileCapturing allowed;
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

/// What the management library tells while kernels run.
class Sensors {
 public:
  /// A device's, made ready at its first use; the sentence where they cannot be read.
  static Status of(int device, const Sensors*& sensors) {
    constexpr int kMaxDevices = 64;
    static Sensors all[kMaxDevices];
    static std::mutex mutex;
    if (device < 0 || device >= kMaxDevices)
      return Status::error("rooftile: device is %d, sensors are read of 0 to %d", device, kMaxDevices - 1);
    const std::lock_guard lock(mutex);
    if (!all[device].handle_ && !all[device].open(device))
      return Status::error("rooftile: the sensors of device %d could not be read (libnvidia-ml.so.1)",
                           device);
    sensors = &all[device];
    return {};
  }

  bool read(DeviceSensors& sensors) const {
    constexpr int kOfMultiprocessors = 1;
    constexpr unsigned long long kPowerOrHeat = 0x4 | 0x8 | 0x20 | 0x40 | 0x80;  // nvmlClocksThrottleReason…
    unsigned mhz = 0;
    unsigned long long why = 0;
    double watts = 0;
    if (clock_(handle_, kOfMultiprocessors, &mhz) != 0 || !power(watts) || reasons_(handle_, &why) != 0)
      return false;
    sensors = {static_cast<int>(mhz), watts, (why & kPowerOrHeat) != 0, 1};
    return true;
  }

 private:
  /// nvmlFieldValue_t
  struct Field {
    unsigned id, scope;
    long long time, latency;
    unsigned type, error;
    union {
      unsigned number;
      double wide;
    } value;
  };
  /// This moment's where the driver tells it: the older call means the last second, most of it spent idle.
  bool power(double& watts) const {
    Field field{};
    field.id = 186;  // NVML_FI_DEV_POWER_INSTANT
    unsigned milliwatts = 0;
    if (fields_ && fields_(handle_, 1, &field) == 0 && field.error == 0)
      milliwatts = field.value.number;
    else if (power_(handle_, &milliwatts) != 0)
      return false;
    watts = milliwatts / 1000.0;
    return true;
  }
  bool open(int device) {
    void* const handle = management_handle(device);
    if (!handle || !find_management(clock_, "nvmlDeviceGetClockInfo") ||
        !find_management(power_, "nvmlDeviceGetPowerUsage") ||
        !find_management(reasons_, "nvmlDeviceGetCurrentClocksThrottleReasons"))
      return false;
    (void)find_management(fields_, "nvmlDeviceGetFieldValues");
    handle_ = handle;
    return true;
  }

  void* handle_ = nullptr;
  int (*clock_)(void*, int, unsigned*) = nullptr;
  int (*power_)(void*, unsigned*) = nullptr;
  int (*reasons_)(void*, unsigned long long*) = nullptr;
  int (*fields_)(void*, int, Field*) = nullptr;
};

/// Reads while the device works up to `last`, each millisecond: none where it is done already.
void read_until(cudaEvent_t last, const Sensors& of_device, DeviceSensors& sum) {
  constexpr auto kPause = std::chrono::milliseconds(1);
  double clock = double(sum.clock_mhz) * sum.readings, power = sum.power_w * sum.readings;
  DeviceSensors now;
  while (cudaEventQuery(last) == cudaErrorNotReady && of_device.read(now)) {
    ++sum.readings;
    clock += now.clock_mhz;
    power += now.power_w;
    sum.throttled = sum.throttled || now.throttled;
    std::this_thread::sleep_for(kPause);
  }
  (void)cudaGetLastError();  // "not ready" counts as an error, which the next launch would report
  if (sum.readings == 0) return;
  sum.clock_mhz = static_cast<int>(clock / sum.readings + 0.5);
  sum.power_w = power / sum.readings;
}

Status time(const CudaLaunch& launch, const Timed* timed, int count, int rounds, void* flush,
            std::size_t flush_bytes, float* us, DeviceSensors* sensors) {
  const OnDevice here(launch.device);
  const auto stream = static_cast<cudaStream_t>(launch.stream);
  const auto calls = static_cast<std::size_t>(rounds) * static_cast<std::size_t>(count);
  const auto begin = std::make_unique<Event[]>(calls), end = std::make_unique<Event[]>(calls);
  // Before anything is queued: loading that library takes milliseconds.
  const Sensors* of_device = nullptr;
  if (sensors) (void)Sensors::of(launch.device, of_device).ok();
  for (std::size_t k = 0; k < calls; ++k) {
    const Timed& it = timed[k % static_cast<std::size_t>(count)];
    cudaMemsetAsync(flush, static_cast<int>(k % 256), flush_bytes, stream);
    cudaEventRecord(begin[k].event, stream);
    if (Status s = it.call(it.context); !s) return s;
    cudaEventRecord(end[k].event, stream);
  }
  if (of_device && calls > 0) read_until(end[calls - 1].event, *of_device, *sensors);
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

Status findings(const CudaLaunch&) { return {}; }

Status launch_empty(const CudaLaunch& launch, int count) {
  const OnDevice here(launch.device);
  for (int i = 0; i < count; ++i) launch_empty_kernel(static_cast<cudaStream_t>(launch.stream));
  return status_of(cudaGetLastError(), "rooftile", "cudaLaunchKernel");
}

Status trace_begin(const CudaLaunch&) {
  return Status::error("rooftile: a GPU tells no accesses; the checked emulated device does");
}
Status trace_end(const CudaLaunch& launch, void*, void (*)(void*, const emulated::TraceLine&),
                 emulated::TraceTotals&) {
  return trace_begin(launch);
}

}  // namespace

extern const DeviceFunctions device_functions{
    .open = open,
    .close = close,
    .allocate = allocate,
    .release = release,
    .copy = copy,
    .synchronize = synchronize,
    .copy_on_device = copy_on_device,
    .time = time,
    .findings = findings,
    .describe = describe,
    .launch_cost = launch_cost,
    .trace_begin = trace_begin,
    .trace_end = trace_end,
    .launch_empty = launch_empty,
};

}  // namespace rooftile::cuda
