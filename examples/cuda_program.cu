// A whole CUDA program: y = a·x + y on a GPU, with every call checked. Lesson 6 walks through it.
//   nvcc -std=c++17 -O2 -o cuda_program examples/cuda_program.cu && ./cuda_program
//   scripts/emulate.sh examples/cuda_program.cu 100000       without a GPU: by threads on this CPU, so take
//   fewer elements
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

// [check]
/// Every call of the runtime says whether it went well. Here a program that cannot go on says what failed.
void check(cudaError_t error, const char* call, int line) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "cuda_program: line %d: %s: %s\n", line, call, cudaGetErrorString(error));
  std::exit(1);
}
#define CHECK(call) check(call, #call, __LINE__)
// [/check]

// [kernel]
/// Each thread has one element. The last block may have more threads than elements are left.
__global__ void axpy(float a, const float* x, float* y, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = a * x[i] + y[i];
}
// [/kernel]

int main(int argc, char** argv) {
  // [host]
  const int n = argc > 1 ? std::atoi(argv[1]) : 10'000'000;
  const std::size_t bytes = n * sizeof(float);
  std::vector<float> x(n), y(n);
  for (int i = 0; i < n; ++i) x[i] = static_cast<float>(i % 1000), y[i] = 1;
  // [/host]

  // [device]
  int device = 0;
  cudaDeviceProp properties;
  CHECK(cudaGetDevice(&device));
  CHECK(cudaGetDeviceProperties(&properties, device));
  std::printf("%s; SMs: %d; memory: %zu MiB\n", properties.name, properties.multiProcessorCount,
              properties.totalGlobalMem >> 20);
  // [/device]

  // [allocate]
  float *device_x = nullptr, *device_y = nullptr;
  CHECK(cudaMalloc(&device_x, bytes));
  CHECK(cudaMalloc(&device_y, bytes));
  // [/allocate]

  // [copy]
  CHECK(cudaMemcpy(device_x, x.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_y, y.data(), bytes, cudaMemcpyHostToDevice));
  // [/copy]

  // [launch]
  const int threads = 256, blocks = (n + threads - 1) / threads;
  axpy<<<blocks, threads>>>(2, device_x, device_y, n);
  CHECK(cudaGetLastError());       // could it be launched?
  CHECK(cudaDeviceSynchronize());  // did it run to its end?
  // [/launch]

  // [back]
  CHECK(cudaMemcpy(y.data(), device_y, bytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) {
    const float expected = 2 * x[i] + 1;
    if (y[i] != expected) {
      std::fprintf(stderr, "cuda_program: y[%d] is %g, should be %g\n", i, double(y[i]), double(expected));
      return 1;
    }
  }
  std::printf("all %d elements are right\n", n);
  // [/back]

  // [time]
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  const int runs = 20;
  CHECK(cudaEventRecord(begin));
  for (int run = 0; run < runs; ++run) axpy<<<blocks, threads>>>(2, device_x, device_y, n);
  CHECK(cudaGetLastError());
  CHECK(cudaEventRecord(end));
  CHECK(cudaEventSynchronize(end));
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, begin, end));
  const double us = 1000. * ms / runs;
  std::printf("%.1f us a launch, %.0f GB/s\n", us, 3. * static_cast<double>(bytes) / us / 1000);
  // [/time]

  // [free]
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
  CHECK(cudaFree(device_x));
  CHECK(cudaFree(device_y));
  // [/free]
}
