// Idea: sixteen pixels a thread: three words of 16 bytes in, one out.
// Changed: 04_shared_memory with words four times as wide: a quarter of the requests, 48 bytes a thread on
//   their way. Rows must begin at multiples of 16 bytes.
// Binds: the memory's rate, and the arithmetic close behind.
// Next: any stride and channel order: the library's kernel.
#include "rooftile/ops/image/ladder/gray_gpu.h"

namespace rooftile::ladder {
namespace {

constexpr int kPixels = 16 * kGrayThreads;  // of a block: 12 KiB

// [kernel]
__global__ void gray_sixteen_pixels(const __grid_constant__ GrayProblem p) {
  ROOFTILE_SHARED(words, uint4[3 * kGrayThreads]);
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t first = std::int64_t{blockIdx.x} * kPixels, rest = p.rows.columns - first;
  const int pixels = static_cast<int>(rest < kPixels ? rest : kPixels), groups = pixels / 16;
  for (std::int64_t row = blockIdx.y; row < p.rows.rows; row += gridDim.y) {
    const std::uint8_t* rgb = p.rgb + p.rows.offset(1, row) + 3 * first;
    std::uint8_t* gray = p.gray + p.rows.offset(0, row) + first;
    const auto* from = reinterpret_cast<const uint4*>(rgb);
    for (int k = 0; k < 3; ++k) {
      const int word = thread + k * kGrayThreads;
      if (word < 3 * groups) words[word] = from[word];
    }
    __syncthreads();
    if (thread < groups) {
      const uint4 a = words[3 * thread];
      const uint4 b = words[3 * thread + 1];
      const uint4 c = words[3 * thread + 2];
      reinterpret_cast<uint4*>(gray)[thread] =
          uint4{four_grays(p, a.x, a.y, a.z), four_grays(p, a.w, b.x, b.y), four_grays(p, b.z, b.w, c.x),
                four_grays(p, c.y, c.z, c.w)};
    } else if (thread == groups) {
      last_grays(p, rgb, gray, 16 * groups, pixels);
    }
    __syncthreads();  // before the next row's words take these ones' place
  }
}
// [/kernel]

}  // namespace

Status launch_gray_sixteen_pixels(const CudaLaunch& launch, const GrayProblem& p) {
  return launch_gray(launch, p, kPixels, gray_sixteen_pixels);
}

}  // namespace rooftile::ladder
