// Idea: four pixels are three words of 32 bits, and four grays are one.
// Changed: a thread takes four pixels: a quarter of the requests. Rows must begin at multiples of 4 bytes.
// Binds: requests: lanes read 12 bytes apart, so a warp touches the same 12 sectors three times, a third each
//   time.
// Next: lanes that read neighbours.
#include "rooftile/ops/image/ladder/gray_gpu.h"

namespace rooftile::ladder {
namespace {

// [kernel]
__global__ void gray_words(const __grid_constant__ GrayProblem p) {
  const std::int64_t group = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x, columns = p.rows.columns;
  for (std::int64_t row = blockIdx.y; row < p.rows.rows; row += gridDim.y) {
    const std::uint8_t* rgb = p.rgb + p.rows.offset(1, row);
    std::uint8_t* gray = p.gray + p.rows.offset(0, row);
    if (4 * group + 4 <= columns) {
      const auto* words = reinterpret_cast<const unsigned*>(rgb) + 3 * group;
      const unsigned a = words[0];
      const unsigned b = words[1];
      const unsigned c = words[2];
      reinterpret_cast<unsigned*>(gray)[group] = four_grays(p, a, b, c);
    } else {
      last_grays(p, rgb, gray, 4 * group, columns);
    }
  }
}
// [/kernel]

}  // namespace

Status launch_gray_words(const CudaLaunch& launch, const GrayProblem& p) {
  return launch_gray(launch, p, 4 * kGrayThreads, gray_words);
}

}  // namespace rooftile::ladder
