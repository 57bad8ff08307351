// What the driver, the runtime and the management library tell of a GPU, and what an empty kernel costs.
#include "rooftile/backend/cuda/describe.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "rooftile/backend/cuda/empty.h"
#include "rooftile/backend/cuda/launch.h"
#include "rooftile/backend/cuda/management.h"

namespace rooftile::cuda {
namespace {

constexpr const char* kFunction = "rooftile devices";

/// The management library's part; what it does not tell stays 0.
void ask_management(DeviceDescription& d) {
  void* const handle = management_handle(d.device);
  if (!handle) return;
  const auto call = [](const char* name, auto signature, auto... arguments) {
    return find_management(signature, name) && signature(arguments...) == 0;
  };
  const auto of_device = static_cast<int (*)(void*, unsigned*)>(nullptr);
  const auto of_kind = static_cast<int (*)(void*, int, unsigned*)>(nullptr);
  (void)call("nvmlSystemGetDriverVersion", static_cast<int (*)(char*, unsigned)>(nullptr), d.driver_name,
             static_cast<unsigned>(sizeof d.driver_name));
  constexpr int kMultiprocessorClock = 1, kMemoryClock = 2, kTemperatureOfChip = 0;  // of nvml.h
  unsigned value = 0;
  if (call("nvmlDeviceGetPowerManagementLimit", of_device, handle, &value)) d.power_limit_w = value / 1000.0;
  if (call("nvmlDeviceGetTemperature", of_kind, handle, kTemperatureOfChip, &value)) d.temperature_c = value;
  if (call("nvmlDeviceGetClockInfo", of_kind, handle, kMultiprocessorClock, &value))
    d.clock_now_mhz = static_cast<int>(value);
  if (call("nvmlDeviceGetClockInfo", of_kind, handle, kMemoryClock, &value))
    d.memory_clock_now_mhz = static_cast<int>(value);
  if (call("nvmlDeviceGetMaxClockInfo", of_kind, handle, kMultiprocessorClock, &value))
    d.most_clock_mhz = static_cast<int>(value);
}

/// Keeps the stream busy, so that what follows is queued before it runs.
__global__ void wait_for(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

class Events {
 public:
  Events() { ok_ = cudaEventCreate(&begin) == cudaSuccess && cudaEventCreate(&end) == cudaSuccess; }
  ~Events() {
    if (begin) cudaEventDestroy(begin);
    if (end) cudaEventDestroy(end);
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  bool ok() const { return ok_; }
  cudaEvent_t begin = nullptr, end = nullptr;

 private:
  bool ok_;
};

double median(double* values, int count) {
  std::sort(values, values + count);
  return values[count / 2];
}

}  // namespace

Status describe(const CudaLaunch& launch, DeviceDescription& d) {
  d = {};
  cudaDeviceProp properties;
  d.device = launch.device;
  if (Status s = status_of(cudaGetDeviceProperties(&properties, launch.device), kFunction,
                           "cudaGetDeviceProperties");
      !s)
    return s;
  std::snprintf(d.name, sizeof d.name, "%s", properties.name);
  if (Status s = status_of(cudaGetDeviceCount(&d.devices), kFunction, "cudaGetDeviceCount"); !s) return s;
  if (Status s = status_of(cudaDriverGetVersion(&d.driver), kFunction, "cudaDriverGetVersion"); !s) return s;
  if (Status s = status_of(cudaRuntimeGetVersion(&d.runtime), kFunction, "cudaRuntimeGetVersion"); !s)
    return s;
  if (Status s = status_of(cudaDeviceGetPCIBusId(d.bus, sizeof d.bus, launch.device), kFunction,
                           "cudaDeviceGetPCIBusId");
      !s)
    return s;
  d.major = properties.major;
  d.minor = properties.minor;
  const auto attribute = [&](cudaDeviceAttr which) {
    int value = 0;
    return cudaDeviceGetAttribute(&value, which, launch.device) == cudaSuccess ? value : 0;
  };
  const auto bytes = [&](cudaDeviceAttr which) { return static_cast<std::size_t>(attribute(which)); };
  d.multiprocessors = attribute(cudaDevAttrMultiProcessorCount);
  d.clock_khz = attribute(cudaDevAttrClockRate);
  d.memory_clock_khz = attribute(cudaDevAttrMemoryClockRate);
  d.bus_bits = attribute(cudaDevAttrGlobalMemoryBusWidth);
  d.l2_bytes = bytes(cudaDevAttrL2CacheSize);
  d.shared_block = bytes(cudaDevAttrMaxSharedMemoryPerBlock);
  d.shared_block_most = bytes(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  d.shared_multiprocessor = bytes(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  d.registers_block = attribute(cudaDevAttrMaxRegistersPerBlock);
  d.registers_multiprocessor = attribute(cudaDevAttrMaxRegistersPerMultiprocessor);
  d.threads_block = attribute(cudaDevAttrMaxThreadsPerBlock);
  d.threads_multiprocessor = attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
  d.blocks_multiprocessor = attribute(cudaDevAttrMaxBlocksPerMultiprocessor);
  d.ecc = attribute(cudaDevAttrEccEnabled);
  d.copy_engines = attribute(cudaDevAttrAsyncEngineCount);
  d.clusters = attribute(cudaDevAttrClusterLaunch);
  const OnDevice here(launch.device);
  if (Status s = status_of(cudaMemGetInfo(&d.free_bytes, &d.memory_bytes), kFunction, "cudaMemGetInfo"); !s)
    return s;
  ask_management(d);
  return {};
}

Status launch_cost(const CudaLaunch& launch, double& host_us, double& device_us, double& round_trip_us) {
  using Clock = std::chrono::steady_clock;
  // 200 launches fit the queue of 1024 that a stream has, so the host never waits for the device.
  constexpr int kRounds = 21, kLaunches = 200;
  constexpr long long kBusyCycles = 4'000'000;  // 2 ms: longer than the host takes to queue them
  const OnDevice here(launch.device);
  const auto stream = static_cast<cudaStream_t>(launch.stream);
  const Events events;
  if (!events.ok()) return Status::error("%s: cudaEventCreate failed", kFunction);
  const auto microseconds = [](Clock::duration d) {
    return std::chrono::duration<double, std::micro>(d).count();
  };
  const auto finish = [&] {
    return status_of(cudaStreamSynchronize(stream), kFunction, "cudaStreamSynchronize");
  };
  double host[kRounds], device[kRounds], whole[kRounds];
  for (int round = -1; round < kRounds; ++round) {  // the first loads the kernels
    const int at = round < 0 ? 0 : round;
    wait_for<<<1, 1, 0, stream>>>(kBusyCycles);
    cudaEventRecord(events.begin, stream);
    const auto begin = Clock::now();
    for (int i = 0; i < kLaunches; ++i) launch_empty_kernel(stream);
    host[at] = microseconds(Clock::now() - begin) / kLaunches;
    cudaEventRecord(events.end, stream);
    if (Status s = status_of(cudaGetLastError(), kFunction, "a launch"); !s) return s;
    if (Status s = finish(); !s) return s;
    float ms = 0;
    if (Status s =
            status_of(cudaEventElapsedTime(&ms, events.begin, events.end), kFunction, "cudaEventElapsedTime");
        !s)
      return s;
    device[at] = ms * 1000 / kLaunches;
    const auto launched = Clock::now();
    launch_empty_kernel(stream);
    if (Status s = finish(); !s) return s;
    whole[at] = microseconds(Clock::now() - launched);
  }
  host_us = median(host, kRounds);
  device_us = median(device, kRounds);
  round_trip_us = median(whole, kRounds);
  return {};
}

}  // namespace rooftile::cuda
