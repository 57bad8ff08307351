// The product of gemm.h on a GPU (sm_80 or newer): checked, and timed at 4096³. Lesson 45.
//   nvcc -std=c++17 -O3 -arch=native --expt-relaxed-constexpr -isystem build/cute/include -o build/cute/gemm
//     examples/cute/gemm.cu && build/cute/gemm
#include "gemm.h"

#include "gemm_try.h"

template <class P>
bool try_plan(const char* name) {
  constexpr int kBytes = sizeof(typename P::Storage);
  CHECK(cudaFuncSetAttribute(gemm_kernel<P>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  return try_gemm(name, [](const bf16* a, const bf16* b, bf16* y, int m, int n, int k) {
    gemm_kernel<P><<<dim3(n / 128, m / 128), 256, kBytes>>>(a, b, y, m, n, k);
  });
}

int main() {
  cudaDeviceProp device;
  CHECK(cudaGetDeviceProperties(&device, 0));
  std::printf("%s\n", device.name);
  const bool right = try_plan<Plan<>>("CuTe, swizzled");
  return try_plan<Plan<Swizzle<0, 3, 3>>>("CuTe, not swizzled") && right ? 0 : 1;
}
