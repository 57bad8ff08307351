#pragma once
// What gray's rungs on a GPU share.
#include "rooftile/backend/cuda/launch.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/image/ladder/ladder.h"

namespace rooftile::ladder {

inline constexpr int kGrayThreads = 256;

/// Blocks along a row, `pixels` to each, and down the rows; a block takes every gridDim.y-th row.
inline Status launch_gray(const CudaLaunch& launch, const GrayProblem& p, int pixels,
                          void (*kernel)(GrayProblem)) {
  constexpr std::int64_t kMaxAcross = (std::int64_t{1} << 31) - 1, kMaxDown = 65535;
  const std::int64_t across = (p.rows.columns + pixels - 1) / pixels, rows = p.rows.rows;
  if (across == 0 || rows == 0) return {};
  if (across > kMaxAcross)
    return Status::error("rgb_to_gray: this rung takes rows of up to %lld pixels, these have %lld",
                         static_cast<long long>(kMaxAcross * pixels), static_cast<long long>(p.rows.columns));
  const dim3 blocks(static_cast<unsigned>(across), static_cast<unsigned>(rows < kMaxDown ? rows : kMaxDown));
  return cuda::launch(launch, "rgb_to_gray", {blocks, kGrayThreads}, kernel, p);
}

// [gray]
/// The weighted sum in thousandths, rounded to the nearest whole number, without a division: the lesson of
/// the CPU's fourth rung.
__device__ __forceinline__ unsigned gray_of(const GrayProblem& p, unsigned red, unsigned green,
                                            unsigned blue) {
  const int sum = p.weight[0] * static_cast<int>(red) + p.weight[1] * static_cast<int>(green) +
                  p.weight[2] * static_cast<int>(blue);
  return static_cast<unsigned>(((sum + 508) >> 3) * 16777 >> 21);
}
// [/gray]

// [four]
/// Three words are four pixels: rgbr gbrg brgb. Their grays are one word.
__device__ __forceinline__ unsigned four_grays(const GrayProblem& p, unsigned a, unsigned b, unsigned c) {
  const unsigned g0 = gray_of(p, a & 255, a >> 8 & 255, a >> 16 & 255);
  const unsigned g1 = gray_of(p, a >> 24, b & 255, b >> 8 & 255);
  const unsigned g2 = gray_of(p, b >> 16 & 255, b >> 24, c & 255);
  const unsigned g3 = gray_of(p, c >> 8 & 255, c >> 16 & 255, c >> 24);
  return g0 | g1 << 8 | g2 << 16 | g3 << 24;
}
// [/four]

/// Pixels `first` to `end` of a row, one by one: what remains at its end.
__device__ __forceinline__ void last_grays(const GrayProblem& p, const std::uint8_t* rgb, std::uint8_t* gray,
                                           std::int64_t first, std::int64_t end) {
  for (std::int64_t i = first; i < end; ++i)
    gray[i] = static_cast<std::uint8_t>(gray_of(p, rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]));
}

}  // namespace rooftile::ladder
