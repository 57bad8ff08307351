// Idea: a window's sum is the sum of its rows' sums, and neighbours below share all of these but one.
// Changed: one pass along the rows of tile and halo, to shared memory; one down the columns.
// Binds: 2·(2r + 1) loads from shared memory per pixel, and the halo's rows, summed by each block anew.
// Next: from a row to the next, one pixel enters a column and one leaves it.
#include "rooftile/ops/blur/ladder/box_gpu.h"

namespace rooftile::ladder {
namespace {

// [kernel]
__global__ void box_separable(const __grid_constant__ Plane p) {
  ROOFTILE_SHARED(held, std::uint8_t[kHeld][kHeld]);
  ROOFTILE_SHARED(across, std::uint16_t[kHeld][kSide]);
  const int left = static_cast<int>(blockIdx.x) * kSide, top = static_cast<int>(blockIdx.y) * kSide;
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int side = kSide + 2 * p.radius;
  for (int i = ty; i < side; i += kSide)
    for (int j = tx; j < side; j += kSide) held[i][j] = p.pixel(top - p.radius + i, left - p.radius + j);
  __syncthreads();
  for (int i = ty; i < side; i += kSide) {
    std::uint32_t sum = 0;  // 255 · 49 fits 16 bits
    for (int j = 0; j <= 2 * p.radius; ++j) sum += held[i][tx + j];
    across[i][tx] = static_cast<std::uint16_t>(sum);
  }
  __syncthreads();
  if (left + tx >= p.width || top + ty >= p.height) return;
  std::uint32_t sum = 0;
  for (int i = 0; i <= 2 * p.radius; ++i) sum += across[ty + i][tx];
  p.store(top + ty, left + tx, sum);
}
// [/kernel]

}  // namespace

Status launch_box_separable(const CudaLaunch& launch, const BoxProblem& problem) {
  return for_planes(launch, problem, kSide, kSide, {kSide, kSide}, box_separable);
}

}  // namespace rooftile::ladder
