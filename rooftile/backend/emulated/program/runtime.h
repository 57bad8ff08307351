#pragma once
// The host's side of a whole CUDA program on the emulated device: the runtime's calls that such a program
// begins with. scripts/emulate.sh compiles with ROOFTILE_EMULATED_PROGRAM, and has rewritten what is not C++:
// kernel<<<…>>>(…) and __shared__. Everything happens at once, in one stream; what the hardware reports late
// is reported late here, too.

#include <cstddef>
#include <utility>

#include "rooftile/backend/cuda/shared.h"
#include "rooftile/backend/emulated/engine.h"

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidDevice = 101,
  cudaErrorLaunchFailure = 719,
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3 };
using cudaStream_t = struct rooftile_no_stream*;  // the default one, null, is all there is
using cudaEvent_t = struct rooftile_event*;
struct cudaDeviceProp {
  char name[256];
  std::size_t totalGlobalMem, sharedMemPerBlock;
  int multiProcessorCount, major, minor, warpSize, maxThreadsPerBlock;
};

const char* cudaGetErrorString(cudaError_t);
/// What went wrong since the last call of it; a launch that could not begin is told here, and once.
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
/// A kernel that failed is told here, and by every call after it: the process must end.
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp*, int device);
cudaError_t cudaFree(void*);
/// Refused where the device's side is no memory of cudaMalloc, or too little of it.
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind);
cudaError_t cudaMemset(void* to, int byte, std::size_t bytes);
cudaError_t cudaEventCreate(cudaEvent_t*);
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t = nullptr);
cudaError_t cudaEventSynchronize(cudaEvent_t);
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end);
cudaError_t cudaEventDestroy(cudaEvent_t);

namespace rooftile::emulated::program {

cudaError_t allocate(void** memory, std::size_t bytes);

/// What stands between <<< and >>>.
struct Configuration {
  Configuration(dim3 grid, dim3 block, std::size_t dynamic_shared = 0, cudaStream_t = nullptr)
      : geometry{grid, block, dynamic_shared} {}
  Geometry geometry;
};
/// Whether a GPU would begin with it; if not, cudaGetLastError says so.
bool may_launch(const Geometry&);
void launched(const Status&);
Options options();

template <class... P, class... A>
void launch(const char* name, const Configuration& c, void (*kernel)(P...), A&&... arguments) {
  if (may_launch(c.geometry))
    launched(emulated::launch(c.geometry, options(), name, kernel, static_cast<P>(arguments)...));
}

}  // namespace rooftile::emulated::program

template <class T>
cudaError_t cudaMalloc(T** memory, std::size_t bytes) {
  return rooftile::emulated::program::allocate(reinterpret_cast<void**>(memory), bytes);
}
