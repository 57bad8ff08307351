// Idea: an angle is a 64-bit fraction of a turn. Whole turns overflow, so no reduction is left to do.
// Changed: no double; a sine is a polynomial of five f32 coefficients.
// Binds: f32: three polynomials per pixel, about 60 instructions; u8 moves 4 bytes for them.
// Next: red depends on the column alone, green on the row, blue on their sum: compute each once per tile.
#include "rooftile/ops/pattern/ladder/pattern_gpu.h"

namespace rooftile::ladder {
namespace {

// [kernel]
__global__ void pattern_turns(const __grid_constant__ PatternProblem p) {
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int row = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  if (column >= p.width || row >= p.height) return;
  const float red = wave::value(wave::phase(p.phase[0], column));
  const float green = wave::value(wave::phase(p.phase[1], row));
  const float blue = wave::value(wave::phase(p.phase[2], std::int64_t{column} + row));
  store_pixel(p, row, column, red, green, blue);
}
// [/kernel]

}  // namespace

Status launch_pattern_turns(const CudaLaunch& launch, const PatternProblem& problem) {
  return for_pixels(launch, problem, pattern_turns);
}

}  // namespace rooftile::ladder
