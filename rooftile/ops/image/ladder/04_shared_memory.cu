// Idea: read as memory lies, take the triples apart on chip: the block brings its words to shared memory in
//   order, and each thread picks its three there.
// Changed: each sector is asked for once. Threads pick words 3 apart; 3 and 32 share no divisor, so 32 lanes
//   meet 32 banks.
// Binds: requests of 128 bytes, of the 512 that they could be, and a barrier: slower than 03_words on an
//   H200 (48% of a copy, 63%), whose extra sectors come from the first-level cache.
// Next: words of 16 bytes.
#include "rooftile/ops/image/ladder/gray_gpu.h"

namespace rooftile::ladder {
namespace {

constexpr int kPixels = 4 * kGrayThreads;  // of a block: 3 KiB

// [kernel]
__global__ void gray_shared_memory(const __grid_constant__ GrayProblem p) {
  ROOFTILE_SHARED(words, unsigned[3 * kGrayThreads]);
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t first = std::int64_t{blockIdx.x} * kPixels, rest = p.rows.columns - first;
  const int pixels = static_cast<int>(rest < kPixels ? rest : kPixels), groups = pixels / 4;
  for (std::int64_t row = blockIdx.y; row < p.rows.rows; row += gridDim.y) {
    const std::uint8_t* rgb = p.rgb + p.rows.offset(1, row) + 3 * first;
    std::uint8_t* gray = p.gray + p.rows.offset(0, row) + first;
    const auto* from = reinterpret_cast<const unsigned*>(rgb);
    // [pick]
    for (int k = 0; k < 3; ++k) {
      const int word = thread + k * kGrayThreads;
      if (word < 3 * groups) words[word] = from[word];
    }
    __syncthreads();
    if (thread < groups) {
      const unsigned a = words[3 * thread];
      const unsigned b = words[3 * thread + 1];
      const unsigned c = words[3 * thread + 2];
      reinterpret_cast<unsigned*>(gray)[thread] = four_grays(p, a, b, c);
    } else if (thread == groups) {
      last_grays(p, rgb, gray, 4 * groups, pixels);
    }
    __syncthreads();  // before the next row's words take these ones' place
    // [/pick]
  }
}
// [/kernel]

}  // namespace

Status launch_gray_shared_memory(const CudaLaunch& launch, const GrayProblem& p) {
  return launch_gray(launch, p, kPixels, gray_shared_memory);
}

}  // namespace rooftile::ladder
