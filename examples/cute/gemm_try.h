#pragma once
// Tries a product y = A·Bᵀ in bf16 on a GPU: each element against a plain kernel, then its time at 4096³.
// Operands are small whole numbers, so that sums are exact in any order.
#include <cutlass/bfloat16.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

using bf16 = cutlass::bfloat16_t;

inline void check(cudaError_t error, const char* call, int line) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "gemm: line %d: %s: %s\n", line, call, cudaGetErrorString(error));
  std::exit(1);
}
#define CHECK(call) check(call, #call, __LINE__)

__global__ void fill(bf16* x, std::size_t count, int seed) {
  const std::size_t i = std::size_t{blockIdx.x} * 256 + threadIdx.x;
  if (i < count) x[i] = bf16(float(int((i * 2654435761u + seed) >> 16) % 7 - 3));
}
__global__ void count_wrong(const bf16* a, const bf16* b, const bf16* y, int m, int n, int k, int* wrong) {
  const int i = blockIdx.y, j = blockIdx.x * 256 + threadIdx.x;
  if (j >= n) return;
  float sum = 0;
  for (int p = 0; p < k; ++p) sum += float(a[std::size_t(i) * k + p]) * float(b[std::size_t(j) * k + p]);
  if (float(y[std::size_t(i) * n + j]) != float(bf16(sum))) atomicAdd(wrong, 1);
}

/// launch(a, b, y, m, n, k): A of m rows of k, B of n rows of k. False: an element is wrong.
template <class Launch>
bool try_gemm(const char* name, Launch launch) {
  constexpr int kLargest = 4096;
  const std::size_t most = std::size_t{kLargest} * kLargest;
  bf16 *a, *b, *y;
  int* wrong;
  CHECK(cudaMalloc(&a, most * sizeof(bf16)));
  CHECK(cudaMalloc(&b, most * sizeof(bf16)));
  CHECK(cudaMalloc(&y, most * sizeof(bf16)));
  CHECK(cudaMallocManaged(&wrong, sizeof(int)));
  *wrong = 0;
  fill<<<unsigned((most + 255) / 256), 256>>>(a, most, 1);
  fill<<<unsigned((most + 255) / 256), 256>>>(b, most, 2);
  const struct {
    int m, n, k;
  } sizes[] = {{128, 128, 32}, {256, 384, 512}, {1024, 512, 96}, {kLargest, kLargest, 64}};
  for (const auto& [m, n, k] : sizes) {
    CHECK(cudaMemset(y, 0xff, most * sizeof(bf16)));  // NaN
    launch(a, b, y, m, n, k);
    CHECK(cudaGetLastError());
    count_wrong<<<dim3((n + 255) / 256, m), 256>>>(a, b, y, m, n, k, wrong);
    CHECK(cudaDeviceSynchronize());
    if (*wrong != 0) break;
  }
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  std::vector<float> ms;
  for (int i = 0; i < 33; ++i) {
    CHECK(cudaEventRecord(begin));
    launch(a, b, y, kLargest, kLargest, kLargest);
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    if (i >= 12) ms.push_back(0), CHECK(cudaEventElapsedTime(&ms.back(), begin, end));
  }
  std::nth_element(ms.begin(), ms.begin() + 10, ms.end());
  std::printf("%-44s %s  %8.1f us  %5.0f TFLOP/s\n", name, *wrong == 0 ? "right" : "WRONG", 1e3 * ms[10],
              2e-9 * kLargest * kLargest * kLargest / ms[10]);
  const bool right = *wrong == 0;
  for (void* memory : {(void*)a, (void*)b, (void*)y, (void*)wrong}) CHECK(cudaFree(memory));
  return right;
}
