// The emulated device's own functions: its memory is the host's, and its calls are done when they return.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "rooftile/backend/emulated/controls.h"
#include "rooftile/backend/emulated/engine.h"
#include "rooftile/core/plugin.h"

namespace rooftile::cuda {
namespace {

/// As on a GPU, memory begins at 256-byte boundaries.
constexpr std::align_val_t kAlignment{256};

Status open(CudaLaunch& launch, char* description, std::size_t size) {
  launch.device = 0;
  launch.multiprocessors = launch.threads;
  std::snprintf(description, size, "emulated by %d host thread%s", launch.threads,
                launch.threads == 1 ? "" : "s");
  constexpr std::size_t kBytes = kCudaCounters * sizeof *launch.counters;
  launch.scratch = ::operator new(kCudaScratchBytes + kBytes, kAlignment, std::nothrow);
  if (!launch.scratch)
    return Status::error("Queue::emulated: no memory for %zu bytes of scratch", kCudaScratchBytes + kBytes);
  launch.counters = reinterpret_cast<unsigned*>(static_cast<std::byte*>(launch.scratch) + kCudaScratchBytes);
  std::memset(launch.counters, 0, kBytes);
  return {};
}
void close(const CudaLaunch& launch) { ::operator delete(launch.scratch, kAlignment); }

Status allocate(const CudaLaunch&, std::size_t bytes, void** memory) {
  *memory = ::operator new(bytes, kAlignment, std::nothrow);
  if (*memory) return {};
  return Status::error("rooftile: no memory for %zu bytes", bytes);
}
Status release(const CudaLaunch&, void* memory) {
  ::operator delete(memory, kAlignment);
  return {};
}
Status copy(const CudaLaunch&, void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
  return {};
}
Status synchronize(const CudaLaunch&) { return {}; }
Status time(const CudaLaunch&, const Timed* timed, int count, int rounds, void*, std::size_t, float* us,
            DeviceSensors*) {
  for (int k = 0; k < rounds * count; ++k) {
    const auto begin = std::chrono::steady_clock::now();
    if (Status s = timed[k % count].call(timed[k % count].context); !s) return s;
    us[k] = std::chrono::duration<float, std::micro>(std::chrono::steady_clock::now() - begin).count();
  }
  return {};
}
Status findings(const CudaLaunch&) {
  emulated::Finding first, more;
  if (emulated::controls().take_findings(&first, 1) == 0) return {};
  while (emulated::controls().take_findings(&more, 1) != 0) {
  }
  return Status::error("%s: %s", first.kernel, first.sentence);
}

Status describe(const CudaLaunch&, DeviceDescription&) {
  return Status::error("rooftile: an emulated device has no driver to ask");
}
Status launch_cost(const CudaLaunch&, double&, double&, double&) {
  return Status::error("rooftile: a launch on an emulated device says nothing about a GPU");
}

Status trace_begin(const CudaLaunch&) {
  if (!emulated::controls().checked)
    return Status::error("rooftile: the plain emulated device sees no accesses; the checked one does");
  emulated::controls().trace_start();
  return {};
}
Status trace_end(const CudaLaunch&, void* context, void (*tell)(void*, const emulated::TraceLine&),
                 emulated::TraceTotals& totals) {
  std::vector<emulated::TraceLine> lines(4096);  // of source: more than all kernels of an op have
  const std::size_t count = emulated::controls().trace_stop(lines.data(), lines.size(), &totals);
  if (count > lines.size())
    return Status::error("rooftile: %zu lines of source touch memory, more than the %zu of a trace", count,
                         lines.size());
  for (std::size_t i = 0; i < count; ++i) tell(context, lines[i]);
  return {};
}

Status launch_empty(const CudaLaunch& launch, int count) {
  emulated::Options options;
  options.architecture = launch.architecture;
  const emulated::Geometry geometry{.grid = 1, .block = 32};
  for (int i = 0; i < count; ++i)
    if (Status s = emulated::launch(
            geometry, options, "empty", +[] {});
        !s)
      return s;
  return {};
}

}  // namespace

extern const DeviceFunctions device_functions{
    .open = open,
    .close = close,
    .allocate = allocate,
    .release = release,
    .copy = copy,
    .synchronize = synchronize,
    .copy_on_device = copy,
    .time = time,
    .findings = findings,
    .describe = describe,
    .launch_cost = launch_cost,
    .trace_begin = trace_begin,
    .trace_end = trace_end,
    .launch_empty = launch_empty,
};

}  // namespace rooftile::cuda
