// Every function of hopper.h's headers, in forms that nvcc and the emulated device's compilers must take.
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/hopper.h"
#include "rooftile/backend/cuda/shared.h"

namespace rooftile::cuda {
#if defined(ROOFTILE_HAS_SM90)
__global__ void boxes(const __grid_constant__ TensorMap map) {
  ROOFTILE_DYNAMIC_SHARED(memory);
  ROOFTILE_SHARED(full, std::uint64_t);
  const int x = static_cast<int>(threadIdx.x);
  prefetch_tensor_map(&map);
  tensor_load(memory, &map, &full, {x});
  tensor_load(memory, &map, &full, {x, 1});
  tensor_load(memory, &map, &full, {x, 1, 2}, Keep::kShort);
  tensor_load(memory, &map, &full, {x, 1, 2, 3});
  tensor_load(memory, &map, &full, {x, 1, 2, 3, 4});
  tensor_load_to_all(memory, &map, &full, {x, 1}, 3);
  tensor_load_to_all(memory, &map, &full, {x, 1, 2}, 3);
  tensor_load_to_all(memory, &map, &full, {x, 1, 2, 3}, 3, Keep::kLong);
  mbarrier_arrive_at_relaxed(&full, 0);
  fence_proxy_async();
  tensor_store(&map, {x, 1}, memory);
  tensor_store(&map, {x, 1, 2}, memory);
  tensor_store(&map, {x, 1, 2, 3}, memory);
  tensor_store_commit();
  tensor_store_wait_read<1>();
  tensor_store_wait<0>();
}
__global__ void pairs(unsigned* out) {
  if (elect_one()) out[0] = pack<bf16>(1, 2);
  out[1] = pack<f16>(1, 2);
}
#endif
#if defined(ROOFTILE_HAS_HOPPER)
template <class T, int N, Major kA, Major kB>
__global__ void __launch_bounds__(384, 1) products(float* out) {
  ROOFTILE_DYNAMIC_SHARED(memory);
  float d[N / 2];
  unsigned a[4] = {};
  give_registers<40>();
  take_registers<160>();
  const std::uint64_t left = wgmma_descriptor(memory, 0, 1024, Swizzle::k128);
  const std::uint64_t right = wgmma_descriptor(memory + 16384, 8192, 1024, Swizzle::k128);
  wgmma_pin(d);
  wgmma_pin(a);
  wgmma_fence();
  wgmma<T, N, kA, kB>(d, left, right, false);
  wgmma<T, N, kA, kB>(d, advance_descriptor(left, 32), right, threadIdx.x > 1000);
  wgmma<T, N, kB>(d, a, right, true);
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_pin(d);
  for (int i = 0; i < N / 2; ++i) out[i * 128 + static_cast<int>(threadIdx.x)] = d[i];
}
/// K-major elements.
template <class T, int N>
__global__ void __launch_bounds__(384, 1) k_major_products(WgmmaSum<T>* out) {
  ROOFTILE_DYNAMIC_SHARED(memory);
  WgmmaSum<T> d[N / 2];
  const std::uint64_t left = wgmma_descriptor(memory, 0, 1024, Swizzle::k128);
  const std::uint64_t right = wgmma_descriptor(memory + 16384, 8192, 1024, Swizzle::k128);
  wgmma_pin(d);
  wgmma_fence();
  wgmma<T, N>(d, left, right, false);
  wgmma<T, N>(d, advance_descriptor(left, 32), right, threadIdx.x > 1000);
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_pin(d);
  for (int i = 0; i < N / 2; ++i) out[i * 128 + static_cast<int>(threadIdx.x)] = d[i];
}
#define K_MAJOR_PRODUCTS(n)                                        \
  template __global__ void k_major_products<std::int8_t, n>(int*); \
  template __global__ void k_major_products<tf32, n>(float*);
K_MAJOR_PRODUCTS(8)
K_MAJOR_PRODUCTS(16)
K_MAJOR_PRODUCTS(24)
K_MAJOR_PRODUCTS(48)
K_MAJOR_PRODUCTS(128)
K_MAJOR_PRODUCTS(176)
K_MAJOR_PRODUCTS(256)
template <class A, class B>
__global__ void __launch_bounds__(384, 1) f8_products(float* out) {
  ROOFTILE_DYNAMIC_SHARED(memory);
  float d[64];
  const std::uint64_t left = wgmma_descriptor(memory, 0, 1024, Swizzle::k128);
  wgmma_pin(d);
  wgmma_fence();
  wgmma_f8<A, B, 128>(d, left, wgmma_descriptor(memory + 16384, 0, 1024, Swizzle::k128), false);
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_pin(d);
  for (int i = 0; i < 64; ++i) out[i * 128 + static_cast<int>(threadIdx.x)] = d[i];
}
template __global__ void f8_products<f8e4m3, f8e4m3>(float*);
template __global__ void f8_products<f8e4m3, f8e5m2>(float*);
template __global__ void f8_products<f8e5m2, f8e4m3>(float*);
template __global__ void f8_products<f8e5m2, f8e5m2>(float*);
#define PRODUCTS(n)                                                          \
  template __global__ void products<bf16, n, Major::kK, Major::kMn>(float*); \
  template __global__ void products<f16, n, Major::kMn, Major::kK>(float*);
PRODUCTS(8)
PRODUCTS(16)
PRODUCTS(24)
PRODUCTS(120)
PRODUCTS(128)
PRODUCTS(176)
PRODUCTS(256)
#endif
}  // namespace rooftile::cuda
