// Idea: a thread for each pixel, in floats, as the equation reads.
// Changed: this is the first rung; on the CPU it was 01_scalar's loop.
// Binds: instructions: three conversions, a division rounded as IEEE asks, three loads of one byte. A warp
//   asks three times for the same 96 bytes, and takes a third of them each time.
// Next: integers.
#include "rooftile/ops/image/ladder/gray_gpu.h"

namespace rooftile::ladder {
namespace {

// [kernel]
__global__ void gray_one_pixel(const __grid_constant__ GrayProblem p) {
  const float a = static_cast<float>(p.weight[0]);
  const float b = static_cast<float>(p.weight[1]);
  const float c = static_cast<float>(p.weight[2]);
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (std::int64_t row = blockIdx.y; row < p.rows.rows; row += gridDim.y) {
    const std::uint8_t* pixel = p.rgb + p.rows.offset(1, row) + 3 * i;
    std::uint8_t* gray = p.gray + p.rows.offset(0, row);
    if (i < p.rows.columns) {
      const float red = pixel[0];
      const float green = pixel[1];
      const float blue = pixel[2];
      gray[i] = static_cast<std::uint8_t>((a * red + b * green + c * blue + 500) / 1000);
    }
  }
}
// [/kernel]

}  // namespace

Status launch_gray_one_pixel(const CudaLaunch& launch, const GrayProblem& p) {
  return launch_gray(launch, p, kGrayThreads, gray_one_pixel);
}

}  // namespace rooftile::ladder
