// Judges the learner's convolution: blocks of 32 x 8 threads, one for each pixel, and four filters.
#include "rooftile/exercise/gpu.h"

#include ROOFTILE_EXERCISE

static rooftile::Status launch(const rooftile::CudaLaunch& where,
                               const rooftile::exercise::FunctionProblem& p) {
  const std::int64_t* const x = p.operands[0].shape;
  const std::int64_t filters = p.operands[1].shape[0];
  if (p.size(2) == 0) return {};
  const auto blocks = [](std::int64_t size, int tile) {
    return static_cast<unsigned>((size + tile - 1) / tile);
  };
  const dim3 grid(blocks(x[3], 32), blocks(x[2], 8), static_cast<unsigned>(x[0]) * blocks(filters, 4));
  return rooftile::cuda::launch(
      where, "conv3x3", {grid, {32, 8}}, conv3x3, static_cast<const float*>(p.data<float>(0)),
      static_cast<const float*>(p.data<float>(1)), p.data<float>(2), static_cast<int>(x[1]),
      static_cast<int>(x[2]), static_cast<int>(x[3]), static_cast<int>(filters));
}
ROOFTILE_EXERCISE_FUNCTION(launch)
