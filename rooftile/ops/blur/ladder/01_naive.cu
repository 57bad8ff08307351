// Idea: a thread for each pixel, and (2r + 1)² loads in it, as the equation reads.
// Changed: this is the first rung.
// Binds: loads: at radius 24, 2401 per pixel, of which 2400 a neighbour makes, too.
// Next: a block brings its pixels and their halo to shared memory, once.
#include "rooftile/ops/blur/ladder/box_gpu.h"

namespace rooftile::ladder {
namespace {

// [kernel]
__global__ void box_naive(const __grid_constant__ Plane p) {
  const int column = static_cast<int>(blockIdx.x * kSide + threadIdx.x);
  const int row = static_cast<int>(blockIdx.y * kSide + threadIdx.y);
  if (column >= p.width || row >= p.height) return;
  std::uint32_t sum = 0;
  for (int i = -p.radius; i <= p.radius; ++i)
    for (int j = -p.radius; j <= p.radius; ++j) sum += p.pixel(row + i, column + j);
  p.store(row, column, sum);
}
// [/kernel]

}  // namespace

Status launch_box_naive(const CudaLaunch& launch, const BoxProblem& problem) {
  return for_planes(launch, problem, kSide, kSide, {kSide, kSide}, box_naive);
}

}  // namespace rooftile::ladder
