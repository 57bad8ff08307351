// Idea: a block holds its 32x32 pixels and the halo of r on each side in shared memory.
// Changed: global memory is read (32 + 2r)² times per block, 6 times per pixel at radius 24, not 2401.
// Binds: loads from shared memory: still (2r + 1)² per pixel.
// Next: rows first, then columns: 2·(2r + 1).
#include "rooftile/ops/blur/ladder/box_gpu.h"

namespace rooftile::ladder {
namespace {

// [kernel]
__global__ void box_shared_halo(const __grid_constant__ Plane p) {
  ROOFTILE_SHARED(held, std::uint8_t[kHeld][kHeld]);
  const int left = static_cast<int>(blockIdx.x) * kSide, top = static_cast<int>(blockIdx.y) * kSide;
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int side = kSide + 2 * p.radius;
  for (int i = ty; i < side; i += kSide)
    for (int j = tx; j < side; j += kSide)
      held[i][j] = p.pixel(top - p.radius + i, left - p.radius + j);  // the border, here alone
  __syncthreads();  // all threads, those past the picture's end too
  if (left + tx >= p.width || top + ty >= p.height) return;
  std::uint32_t sum = 0;
  for (int i = 0; i <= 2 * p.radius; ++i)
    for (int j = 0; j <= 2 * p.radius; ++j) sum += held[ty + i][tx + j];
  p.store(top + ty, left + tx, sum);
}
// [/kernel]

}  // namespace

Status launch_box_shared(const CudaLaunch& launch, const BoxProblem& problem) {
  return for_planes(launch, problem, kSide, kSide, {kSide, kSide}, box_shared_halo);
}

}  // namespace rooftile::ladder
