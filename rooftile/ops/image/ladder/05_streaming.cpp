// Idea: memory answers after 100 ns, in which this kernel could do 1600 pixels: ask for each line 8 KB before
//   its turn. And a gray line that is overwritten whole need not be read first: store past the caches.
// Changed: the team's access, and `ahead`. The arithmetic, so each bit, is 04_pairs'.
// Binds: one core's share of the memory bandwidth. In the cache this rung loses: what it wrote is not there.
// Next: all threads, in blocks that begin where lines of gray do; and this access only for large calls.
#include "rooftile/ops/image/image.tile.h"
#include "rooftile/ops/image/ladder/ladder.h"

namespace rooftile::ladder {
using namespace tile;

ROOFTILE_FLATTEN void launch_streaming(const CpuLaunch& launch, const GrayProblem& p) {
  for (std::int64_t row = 0; row < p.rows.rows; ++row)
    kernels::rgb_to_gray(CpuTeam<float, Access::streaming>(launch.scratch),
                         Pixels{p.rgb + p.rows.offset(1, row), p.rows.columns, 3, 1, 8192 / 3},
                         Row<std::uint8_t>{p.gray + p.rows.offset(0, row), p.rows.columns}, p.weight[0],
                         p.weight[1], p.weight[2]);
  stream_fence();
}

}  // namespace rooftile::ladder
