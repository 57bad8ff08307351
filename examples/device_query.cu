// What a GPU says of itself, and what follows from it for a kernel. Lesson 5 walks through it.
//   nvcc -std=c++17 -O2 -o device_query examples/device_query.cu && ./device_query
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

/// A program that cannot go on says which call failed, and why.
void check(cudaError_t error, const char* call, int line) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "device_query: line %d: %s: %s\n", line, call, cudaGetErrorString(error));
  std::exit(1);
}
#define CHECK(call) check(call, #call, __LINE__)

__global__ void axpy(float a, const float* x, float* y, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = a * x[i] + y[i];
}

// [attribute]
/// What CUDA 13 took out of cudaDeviceProp, the clocks, is still an attribute; one that a driver does not
/// know is 0.
int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  return cudaDeviceGetAttribute(&value, which, device) == cudaSuccess ? value : 0;
}
// [/attribute]

void query(int device) {
  // [properties]
  cudaDeviceProp p;
  CHECK(cudaGetDeviceProperties(&p, device));
  std::printf("device %d: %s, compute capability %d.%d\n", device, p.name, p.major, p.minor);
  std::printf("  multiprocessors      %d\n", p.multiProcessorCount);
  std::printf("    threads            %d, in warps of %d\n", p.maxThreadsPerMultiProcessor, p.warpSize);
  std::printf("    blocks             %d\n", p.maxBlocksPerMultiProcessor);
  std::printf("    registers          %d\n", p.regsPerMultiprocessor);
  std::printf("    shared memory      %zu KiB\n", p.sharedMemPerMultiprocessor >> 10);
  std::printf("  a block: threads     %d\n", p.maxThreadsPerBlock);
  std::printf("    shared memory      %zu KiB, %zu KiB if the kernel opts in\n", p.sharedMemPerBlock >> 10,
              p.sharedMemPerBlockOptin >> 10);
  std::printf("  memory               %zu MiB, L2 %d MiB, ECC %s\n", p.totalGlobalMem >> 20,
              p.l2CacheSize >> 20, p.ECCEnabled ? "on" : "off");
  // [/properties]

  // [derived]
  const double clock = 1e3 * attribute(cudaDevAttrMemoryClockRate, device);  // Hz
  const double rated = 2 * clock * p.memoryBusWidth / 8;  // bytes a second: both edges of the clock
  const int resident = p.multiProcessorCount * p.maxThreadsPerMultiProcessor;
  std::printf("so:\n  threads at once      %d\n", resident);
  if (rated > 0) {
    std::printf("  rated bandwidth      %.0f GB/s: %d bits at %.0f MHz\n", rated / 1e9, p.memoryBusWidth,
                clock / 1e6);
    std::printf("  in flight at 500 ns  %.0f bytes for each of these threads\n", rated * 500e-9 / resident);
  }
  // [/derived]

  // [occupancy]
  int blocks = 0;
  CHECK(cudaSetDevice(device));
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, axpy, 256, 0));
  std::printf("  axpy, 256 threads    %d blocks a multiprocessor: %d of %d threads, %d blocks at once\n",
              blocks, 256 * blocks, p.maxThreadsPerMultiProcessor, blocks * p.multiProcessorCount);
  // [/occupancy]
}

int main() {
  // [count]
  int devices = 0, driver = 0, runtime = 0;
  CHECK(cudaDriverGetVersion(&driver));
  CHECK(cudaRuntimeGetVersion(&runtime));
  if (driver == 0) {
    std::fprintf(stderr, "device_query: there is no driver; scripts/check_setup.sh says what to do\n");
    return 1;
  }
  std::printf("driver for CUDA %d.%d and before, this program of CUDA %d.%d\n", driver / 1000,
              driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
  CHECK(cudaGetDeviceCount(&devices));
  // [/count]
  for (int device = 0; device < devices; ++device) query(device);
}
