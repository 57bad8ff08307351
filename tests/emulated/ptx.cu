// Every function of ptx.h and shared.h, in forms that nvcc and the emulated device's compilers must take.
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/ptx.h"
#include "rooftile/backend/cuda/shared.h"

namespace rooftile::cuda {
template <int N>
__global__ void copies(const float4* x, float4* y, unsigned* flag) {
  ROOFTILE_SHARED(tile, float4[2][N]);
  ROOFTILE_DYNAMIC_SHARED(bytes);
  cp_async_16(&tile[0][threadIdx.x], x + threadIdx.x);
  cp_async_commit();
  cp_async_16(&tile[1][threadIdx.x], x, 8);
  cp_async_commit();
  cp_async_wait<1>();
  named_barrier_sync(1, 64);
  if (named_barrier_or(1, 64, threadIdx.x == 0)) named_barrier_arrive(2, 64);
  y[threadIdx.x] = tile[0][threadIdx.x];
  bytes[threadIdx.x] = std::byte{1};
  if (load_acquire(flag) == 0) store_release(flag, 1);
}
template __global__ void copies<64>(const float4*, float4*, unsigned*);

#if defined(ROOFTILE_HAS_SM90)
__global__ void clusters(const float* x, float* y) {
  ROOFTILE_SHARED(tile, float[64]);
  ROOFTILE_SHARED(full, std::uint64_t);
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    fence_proxy_async();
  }
  cluster_sync();
  if (threadIdx.x == 0) {
    mbarrier_expect_tx(&full, 128);
    mbarrier_arrive_expect_tx(&full, 128);
    bulk_copy_global_to_shared(tile, x, 256, &full);
  }
  if (!mbarrier_try_wait(&full, 0)) mbarrier_wait(&full, 0);
  mbarrier_arrive(&full);
  store_async_at(&tile[threadIdx.x], 1.0f, &full, 1 - cluster_rank());
  mbarrier_arrive_at(&full, cluster_size() - 1 - cluster_rank());
  cluster_arrive();
  cluster_wait();
  y[threadIdx.x] = *map_shared_rank(&tile[threadIdx.x], 1 - cluster_rank());
}
#endif
}  // namespace rooftile::cuda
