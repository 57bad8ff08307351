// Idea: a thread holds one column's sum in a register, and runs down a strip of 64 rows.
// Changed: two loads per column and row, whatever the radius: one pixel enters, one leaves.
// Binds: 2r + 1 loads from shared memory along the row, and two barriers per row.
// Next: the library's kernel takes differences of prefix sums: a radius of 2000 costs what one of 2 does.
#include "rooftile/ops/blur/ladder/box_gpu.h"

namespace rooftile::ladder {
namespace {

constexpr int kColumns = 128, kStrip = 64;
constexpr int kOutputs = kColumns - 2 * static_cast<int>(kMaxRungRadius);

// [kernel]
__global__ void box_running_columns(const __grid_constant__ Plane p) {
  ROOFTILE_SHARED(sums, std::uint32_t[kColumns]);
  const int t = static_cast<int>(threadIdx.x), r = p.radius;
  const int column = static_cast<int>(blockIdx.x) * kOutputs - r + t;  // t = r is the first output's
  const int top = static_cast<int>(blockIdx.y) * kStrip;
  const int bottom = top + kStrip < p.height ? top + kStrip : p.height;
  const bool writes = t >= r && t < r + kOutputs && column < p.width;
  std::uint32_t sum = 0;
  for (int row = top - r; row < top + r; ++row) sum += p.pixel(row, column);
  for (int row = top; row < bottom; ++row) {
    sum += p.pixel(row + r, column);  // enters
    sums[t] = sum;
    __syncthreads();
    std::uint32_t window = 0;
    for (int j = -r; j <= r && writes; ++j) window += sums[t + j];
    if (writes) p.store(row, column, window);
    __syncthreads();                  // before the next row's sums take these ones' place
    sum -= p.pixel(row - r, column);  // leaves
  }
}
// [/kernel]

}  // namespace

Status launch_box_columns(const CudaLaunch& launch, const BoxProblem& problem) {
  return for_planes(launch, problem, kOutputs, kStrip, {kColumns}, box_running_columns);
}

}  // namespace rooftile::ladder
