// The emulated device's own functions: its memory is the host's, and its calls are done when they return.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "rooftile/backend/emulated/controls.h"
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
  launch.scratch = ::operator new(kCudaScratchBytes, kAlignment, std::nothrow);
  if (launch.scratch) return {};
  return Status::error("Queue::emulated: no memory for %zu bytes of scratch", kCudaScratchBytes);
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
Status time(const CudaLaunch&, const Timed* timed, int count, int rounds, void*, std::size_t, float* us) {
  for (int k = 0; k < rounds * count; ++k) {
    const auto begin = std::chrono::steady_clock::now();
    if (Status s = timed[k % count].call(timed[k % count].context); !s) return s;
    us[k] = std::chrono::duration<float, std::micro>(std::chrono::steady_clock::now() - begin).count();
  }
  return {};
}
Status sense(const CudaLaunch&, DeviceSensors&) {
  return Status::error("rooftile: an emulated device has no sensors");
}

Status findings(const CudaLaunch&) {
  emulated::Finding first, more;
  if (emulated::controls().take_findings(&first, 1) == 0) return {};
  while (emulated::controls().take_findings(&more, 1) != 0) {
  }
  return Status::error("%s: %s", first.kernel, first.sentence);
}

}  // namespace

extern const DeviceFunctions device_functions{open,        close, allocate, release, copy,
                                              synchronize, copy,  time,     sense,   findings};

}  // namespace rooftile::cuda
