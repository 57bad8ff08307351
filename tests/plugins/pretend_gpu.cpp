// A GPU that is none, for what the harness and `rooftile devices` make of one: everything it tells is made
// up.
#include <cstdio>
#include <cstring>

#include "rooftile/core/plugin.h"

namespace {
using namespace rooftile;

std::size_t copied = 0;
alignas(256) char memory[256];

Status open(CudaLaunch& launch, char* description, std::size_t size) {
  if (launch.device < 0) launch.device = 0;
  launch.architecture = 80;
  launch.scratch = memory;
  std::snprintf(description, size, "a pretended GPU");
  return {};
}
void close(const CudaLaunch&) {}
Status allocate(const CudaLaunch&, std::size_t bytes, void** to) {
  if (bytes > (std::size_t{1} << 30)) return Status::error("pretended: no memory for %zu bytes", bytes);
  *to = memory;
  return {};
}
Status release(const CudaLaunch&, void*) { return {}; }
Status copy(const CudaLaunch&, void*, const void*, std::size_t) { return {}; }
Status synchronize(const CudaLaunch&) { return {}; }
Status copy_on_device(const CudaLaunch&, void*, const void*, std::size_t bytes) {
  copied = bytes;
  return {};
}
/// 2000 GB/s, and 1 µs more for a copy's begin.
Status time(const CudaLaunch&, const Timed* timed, int count, int rounds, void*, std::size_t, float* us,
            DeviceSensors*) {
  for (int k = 0; k < count * rounds; ++k) {
    if (Status s = timed[k % count].call(timed[k % count].context); !s) return s;
    us[k] = 1 + 2 * static_cast<float>(copied) / 2e6f;
  }
  return {};
}
Status findings(const CudaLaunch&) { return {}; }
Status describe(const CudaLaunch& launch, DeviceDescription& d) {
  d = {};
  std::strcpy(d.name, "Pretended 1000");
  std::strcpy(d.driver_name, "999.1");
  d.device = launch.device, d.devices = 2;
  d.major = 8, d.minor = 0;
  d.driver = 13010, d.runtime = 13000;
  d.multiprocessors = 3, d.clock_khz = 1500000, d.memory_clock_khz = 1000000, d.bus_bits = 8192;
  d.memory_bytes = std::size_t{8} << 30, d.free_bytes = std::size_t{7} << 30, d.l2_bytes = 40 << 20;
  d.shared_block = 48 << 10, d.shared_block_most = 163 << 10, d.shared_multiprocessor = 164 << 10;
  d.registers_block = d.registers_multiprocessor = 65536;
  d.threads_block = 1024, d.threads_multiprocessor = 2048, d.blocks_multiprocessor = 32;
  d.ecc = 1;
  return {};
}
Status launch_cost(const CudaLaunch&, double& host_us, double& device_us, double& round_trip_us) {
  host_us = 1.25, device_us = 0.75, round_trip_us = 6.5;
  return {};
}
Status trace_begin(const CudaLaunch&) { return Status::error("pretended: no trace"); }
Status trace_end(const CudaLaunch&, void*, void (*)(void*, const emulated::TraceLine&),
                 emulated::TraceTotals&) {
  return Status::error("pretended: no trace");
}

Status launch_empty(const CudaLaunch&, int) { return {}; }

constexpr DeviceFunctions device{
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
Status nothing(const void*, const void*) { return {}; }
constexpr PluginEntry entries[] = {{"softmax", "tile", nothing, 0}, {"copy", "tile", nothing, 90}};
constexpr Plugin plugin{kPluginVersion, "cuda", 2, entries, &device};
}  // namespace

extern "C" __attribute__((visibility("default"))) const rooftile::Plugin* rooftile_plugin() {
  return &plugin;
}
