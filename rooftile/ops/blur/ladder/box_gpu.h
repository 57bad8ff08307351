#pragma once
// What the box blur's rungs share.
#include "rooftile/backend/cuda/launch.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/blur/ladder/ladder.h"

namespace rooftile::ladder {

inline constexpr int kSide = 32;  // pixels of a block's tile, each way
inline constexpr int kHeld = kSide + 2 * static_cast<int>(kMaxRungRadius);  // and with its halo

/// One picture, without the batch around it.
struct Plane {
  const std::uint8_t* x;
  std::uint8_t* y;
  std::int64_t x_row, y_row;
  int height, width, radius;
  BoxDivision division;

  __device__ std::uint8_t pixel(int row, int column) const {
    row = row < 0 ? 0 : row < height ? row : height - 1;
    column = column < 0 ? 0 : column < width ? column : width - 1;
    return x[row * x_row + column];
  }
  __device__ void store(int row, int column, std::uint32_t sum) const {
    y[row * y_row + column] =
        static_cast<std::uint8_t>(__umulhi(sum + division.add, division.multiplier) >> division.shift);
  }
};

/// A launch for each picture: blocks of `threads` for tiles of `wide` x `tall` pixels.
inline Status for_planes(const CudaLaunch& launch, const BoxProblem& problem, int wide, int tall,
                         dim3 threads, void (*kernel)(Plane)) {
  const Pictures& p = problem.pictures;
  for (std::int64_t k = 0; k < p.count; ++k) {
    const Plane plane{p.x + p.start(1, k),
                      p.y + p.start(0, k),
                      p.x_row,
                      p.y_row,
                      static_cast<int>(p.height),
                      static_cast<int>(p.width),
                      static_cast<int>(problem.radius),
                      problem.division};
    const dim3 blocks(static_cast<unsigned>((p.width + wide - 1) / wide),
                      static_cast<unsigned>((p.height + tall - 1) / tall));
    if (Status s = cuda::launch(launch, "box_blur", {blocks, threads}, kernel, plane); !s) return s;
  }
  return {};
}

}  // namespace rooftile::ladder
