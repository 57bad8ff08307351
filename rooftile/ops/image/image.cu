#include "rooftile/ops/image/image.problem.h"
#include "rooftile/ops/image/image.tile.h"
#include "rooftile/ops/image/ladder/ladder.h"
#include "rooftile/tile/cuda/elements.h"

namespace rooftile {
namespace {
using namespace tile;

struct Gray {
  GrayProblem p;
  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const auto& part) const {
    const std::uint8_t* rgb = p.rgb + offset_of(p.rows, 1, part.row) + part.first * p.rows.column_stride[1];
    kernels::rgb_to_gray(team, Pixels{rgb, part.size, p.rows.column_stride[1], p.channel},
                         part_of<std::uint8_t>(p.rows, 0, p.gray, part), p.weight[0], p.weight[1],
                         p.weight[2]);
  }
};

Status launch_tile(const CudaLaunch& launch, const GrayProblem& p) {
  bool aligned =
      p.packed() && aligned_rows(p.rows, 0, p.gray, 1) && reinterpret_cast<std::uintptr_t>(p.rgb) % 16 == 0;
  for (int d = 0; d < p.rows.rank; ++d) aligned = aligned && p.rows.stride[1][d] % 16 == 0;
  return for_parts<16, 1, float>(launch, "rgb_to_gray", p.rows.rows, p.rows.columns, aligned, Gray{p});
}

}  // namespace

ROOFTILE_CUDA_KERNELS(image) = {
    entry<launch_tile>("rgb_to_gray", "tile"),
    entry<ladder::launch_gray_sixteen_pixels>("rgb_to_gray", "05_sixteen_pixels"),
    entry<ladder::launch_gray_shared_memory>("rgb_to_gray", "04_shared_memory"),
    entry<ladder::launch_gray_words>("rgb_to_gray", "03_words"),
    entry<ladder::launch_gray_fixed_point>("rgb_to_gray", "02_fixed_point"),
    entry<ladder::launch_gray_one_pixel>("rgb_to_gray", "01_one_pixel"),
    {},
};

}  // namespace rooftile
