// Idea: a thread for each pixel of a 2-D grid, which computes three sines in double, as the equation reads.
// Changed: this is the first rung.
// Binds: the sines: about 60 operations in double each, for 16 bytes of f32 or 4 of u8.
// Next: angles as fractions of a turn, in integers, and sines in f32.
#include <cmath>

#include "rooftile/ops/pattern/ladder/pattern_gpu.h"

namespace rooftile::ladder {
namespace {

// [kernel]
__global__ void pattern_one_pixel(const __grid_constant__ PatternProblem p) {
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int row = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  if (column >= p.width || row >= p.height) return;
  const auto red = static_cast<float>(.5 + .5 * sin(.01 * column + p.t));
  const auto green = static_cast<float>(.5 + .5 * sin(.01 * row + .7 * p.t));
  const auto blue = static_cast<float>(.5 + .5 * sin(.01 * (double(column) + row) + 1.3 * p.t));
  store_pixel(p, row, column, red, green, blue);
}
// [/kernel]

}  // namespace

Status launch_pattern_one_pixel(const CudaLaunch& launch, const PatternProblem& problem) {
  return for_pixels(launch, problem, pattern_one_pixel);
}

}  // namespace rooftile::ladder
