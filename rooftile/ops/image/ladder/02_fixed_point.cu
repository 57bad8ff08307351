// Idea: whole numbers, and in place of the division a multiplication and a shift (gray_of, in gray_gpu.h).
// Changed: the line that computes. The same loads and the same store.
// Binds: requests: four for 32 pixels, three of which take 32 bytes each out of the same 96.
// Next: whole words.
#include "rooftile/ops/image/ladder/gray_gpu.h"

namespace rooftile::ladder {
namespace {

// [kernel]
__global__ void gray_fixed_point(const __grid_constant__ GrayProblem p) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (std::int64_t row = blockIdx.y; row < p.rows.rows; row += gridDim.y) {
    const std::uint8_t* pixel = p.rgb + p.rows.offset(1, row) + 3 * i;
    std::uint8_t* gray = p.gray + p.rows.offset(0, row);
    if (i < p.rows.columns) {
      const unsigned red = pixel[0];
      const unsigned green = pixel[1];
      const unsigned blue = pixel[2];
      gray[i] = static_cast<std::uint8_t>(gray_of(p, red, green, blue));
    }
  }
}
// [/kernel]

}  // namespace

Status launch_gray_fixed_point(const CudaLaunch& launch, const GrayProblem& p) {
  return launch_gray(launch, p, kGrayThreads, gray_fixed_point);
}

}  // namespace rooftile::ladder
