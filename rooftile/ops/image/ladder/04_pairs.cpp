// Idea: multiply-and-add-pairs takes vectors of 16-bit numbers, and gives the 32-bit sums of two neighbours'
//   products. Two of these make a pixel's weighted sum; a third divides.
// Changed: red and blue become the halves of one lane by a mask, green comes by a shift; no plane is made.
// Binds: in the cache, taking the triples apart. From memory, waiting for lines that were asked for too late,
//   those of gray among them: the CPU reads what it is about to overwrite.
// Next: ask early, and store past the caches.
#include "rooftile/ops/image/image.tile.h"
#include "rooftile/ops/image/ladder/ladder.h"

namespace rooftile::ladder {
using namespace tile;

ROOFTILE_FLATTEN void launch_pairs(const CpuLaunch& launch, const GrayProblem& p) {
  for (std::int64_t row = 0; row < p.rows.rows; ++row)
    kernels::rgb_to_gray(CpuTeam<float, Access::cached>(launch.scratch),
                         Pixels{p.rgb + p.rows.offset(1, row), p.rows.columns},
                         Row<std::uint8_t>{p.gray + p.rows.offset(0, row), p.rows.columns}, p.weight[0],
                         p.weight[1], p.weight[2]);
}

}  // namespace rooftile::ladder
