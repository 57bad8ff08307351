#include "rooftile/backend/emulated/program/runtime.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <string>

#include "rooftile/backend/emulated/controls.h"

struct rooftile_event {
  std::chrono::steady_clock::time_point at;
};

namespace rooftile::emulated::program {
namespace {

constexpr std::align_val_t kAlignment{256};
constexpr std::size_t kMemory = std::size_t(8) << 30;

struct Device {
  std::map<const char*, std::size_t> allocated;
  cudaError_t last = cudaSuccess;    // until somebody asks
  cudaError_t broken = cudaSuccess;  // a kernel failed: for good
  std::string sentence;              // why
};
Device& device() {
  static Device one;
  return one;
}

cudaError_t result(cudaError_t error) {
  Device& d = device();
  if (d.broken != cudaSuccess) return d.broken;
  if (error != cudaSuccess) d.last = error;
  return error;
}

/// Whether [at, at + bytes) lies in memory of cudaMalloc.
bool is_allocated(const void* at, std::size_t bytes) {
  const auto& all = device().allocated;
  auto after = all.upper_bound(static_cast<const char*>(at));
  if (after == all.begin()) return false;
  const auto& [start, size] = *--after;
  return static_cast<std::size_t>(static_cast<const char*>(at) - start) + bytes <= size;
}

/// Tells the checked build which memory kernels may touch.
void register_all() {
  controls().forget_globals();
  for (const auto& [start, size] : device().allocated)
    controls().register_global(start, size, ("cudaMalloc(" + std::to_string(size) + ")").c_str());
}

}  // namespace

cudaError_t allocate(void** memory, std::size_t bytes) {
  if (!memory) return result(cudaErrorInvalidValue);
  *memory = nullptr;
  if (device().broken != cudaSuccess) return device().broken;
  if (bytes == 0) return cudaSuccess;
  *memory = bytes > kMemory ? nullptr : ::operator new(bytes, kAlignment, std::nothrow);
  if (!*memory) return result(cudaErrorMemoryAllocation);
  std::memset(*memory, 0xff, bytes);  // NaN: nobody has written it
  device().allocated[static_cast<const char*>(*memory)] = bytes;
  register_all();
  return cudaSuccess;
}

bool may_launch(const Geometry& g) {
  const auto volume = [](const dim3& d) { return std::size_t(d.x) * d.y * d.z; };
  const bool fits = volume(g.block) > 0 && volume(g.block) <= 1024 && g.block.z <= 64 && volume(g.grid) > 0 &&
                    g.grid.x <= 0x7fffffff && g.grid.y <= 65535 && g.grid.z <= 65535 &&
                    g.dynamic_shared <= shared_limit(Options{}.architecture);
  if (!fits) result(cudaErrorInvalidConfiguration);
  return fits && device().broken == cudaSuccess;
}

void launched(const Status& status) {
  Device& d = device();
  if (!status) d.broken = cudaErrorLaunchFailure, d.sentence = status.message();
  for (Finding f; controls().take_findings(&f, 1) != 0; d.broken = cudaErrorLaunchFailure)
    if (d.broken == cudaSuccess) d.sentence = f.sentence;
}

/// ROOFTILE_SEED: another number, another order of threads.
Options options() {
  const char* seed = std::getenv("ROOFTILE_SEED");
  return {.seed = seed ? std::strtoull(seed, nullptr, 10) : 0};
}

}  // namespace rooftile::emulated::program

using namespace rooftile::emulated::program;

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorLaunchFailure:
      return device().sentence.c_str();
  }
  return "unrecognized error code";
}
cudaError_t cudaPeekAtLastError() { return device().broken != cudaSuccess ? device().broken : device().last; }
cudaError_t cudaGetLastError() {
  // A kernel that fails has been launched: on a GPU it runs still.
  return std::exchange(device().last, cudaSuccess);
}
cudaError_t cudaDeviceSynchronize() { return result(cudaSuccess); }
cudaError_t cudaGetDeviceCount(int* count) {
  if (!count) return result(cudaErrorInvalidValue);
  *count = 1;
  return result(cudaSuccess);
}
cudaError_t cudaGetDevice(int* number) {
  if (!number) return result(cudaErrorInvalidValue);
  *number = 0;
  return result(cudaSuccess);
}
cudaError_t cudaSetDevice(int number) { return result(number == 0 ? cudaSuccess : cudaErrorInvalidDevice); }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int number) {
  if (!properties) return result(cudaErrorInvalidValue);
  if (number != 0) return result(cudaErrorInvalidDevice);
  *properties = {"emulated device, sm_90", kMemory, 49152, 1, 9, 0, 32, 1024};
  return result(cudaSuccess);
}
cudaError_t cudaFree(void* memory) {
  if (!memory) return result(cudaSuccess);
  if (device().allocated.erase(static_cast<const char*>(memory)) == 0) return result(cudaErrorInvalidValue);
  register_all();
  ::operator delete(memory, kAlignment);
  return result(cudaSuccess);
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  const bool writes = kind != cudaMemcpyDeviceToHost, reads = kind != cudaMemcpyHostToDevice;
  if (bytes > 0 &&
      (!to || !from || (writes && !is_allocated(to, bytes)) || (reads && !is_allocated(from, bytes))))
    return result(cudaErrorInvalidValue);
  if (device().broken == cudaSuccess && bytes > 0) std::memmove(to, from, bytes);
  return result(cudaSuccess);
}
cudaError_t cudaMemset(void* to, int byte, std::size_t bytes) {
  if (bytes > 0 && !is_allocated(to, bytes)) return result(cudaErrorInvalidValue);
  if (device().broken == cudaSuccess && bytes > 0) std::memset(to, byte, bytes);
  return result(cudaSuccess);
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  if (!event) return result(cudaErrorInvalidValue);
  *event = new rooftile_event;
  return result(cudaSuccess);
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  if (!event) return result(cudaErrorInvalidValue);
  event->at = std::chrono::steady_clock::now();
  return result(cudaSuccess);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return result(event ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  if (!ms || !begin || !end) return result(cudaErrorInvalidValue);
  *ms = std::chrono::duration<float, std::milli>(end->at - begin->at).count();
  return result(cudaSuccess);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return result(cudaSuccess);
}
