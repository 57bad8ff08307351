#pragma once
// What the pattern's rungs share: a launch with a thread for each pixel, and how a pixel is written.
#include "rooftile/backend/cuda/launch.h"
#include "rooftile/ops/pattern/ladder/ladder.h"
#include "rooftile/ops/pattern/pattern.wave.h"

namespace rooftile::ladder {

// [launch]
/// Blocks of 32 columns and 8 rows, as many as cover the picture: a 2-D launch.
inline Status for_pixels(const CudaLaunch& launch, const PatternProblem& p, void (*kernel)(PatternProblem)) {
  if (p.height == 0 || p.width == 0) return {};
  const dim3 threads(32, 8),
      blocks(static_cast<unsigned>((p.width + 31) / 32), static_cast<unsigned>((p.height + 7) / 8));
  return cuda::launch(launch, "color_pattern", {blocks, threads}, kernel, p);
}
// [/launch]

__device__ inline void store_pixel(const PatternProblem& p, std::int64_t row, std::int64_t column, float red,
                                   float green, float blue) {
  const std::int64_t at = row * p.row + column * p.pixel;
  const float values[4] = {red, green, blue, 1};
  for (int k = 0; k < 4; ++k) {
    if (p.dtype == DType::f32)
      static_cast<float*>(p.y)[at + k * p.channel] = values[k];
    else
      static_cast<std::uint8_t*>(p.y)[at + k * p.channel] =
          static_cast<std::uint8_t>(values[k] * 255.0f + 0.5f);
  }
}

}  // namespace rooftile::ladder
