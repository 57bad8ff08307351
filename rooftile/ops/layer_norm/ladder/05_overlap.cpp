// Idea: while one row is written, the next is read: two loops in one, so that no sum is waited for with idle
// hands. Changed: the library's kernel, over all rows at once. The arithmetic, so each bit, is
// 04_one_pass's. Binds: in cache, loads and stores: five of each vector's ten operations. From memory, one
// core's share of it. Next: all threads; prefetching, and stores past the caches, where a call moves more
// than these hold.
#include "rooftile/ops/layer_norm/ladder/ladder.h"
#include "rooftile/ops/layer_norm/layer_norm.tile.h"

namespace rooftile::ladder {
using namespace tile;

ROOFTILE_FLATTEN void launch_overlap(const CpuLaunch& launch, const LayerNormProblem& p) {
  const std::int64_t n = p.rows.columns;
  const tile::FloatVector weight{{static_cast<const float*>(p.vectors[LayerNormProblem::kWeight].data), n}};
  const tile::FloatVector bias{{static_cast<const float*>(p.vectors[LayerNormProblem::kBias].data), n}};
  const auto row_at = [&](std::int64_t i) {
    const PlainRow row = plain_row(p, i);
    return kernels::LayerNormRow<float>{{row.x, n},   {nullptr, n}, {row.y, n},
                                        {nullptr, n}, row.mean,     row.rstd};
  };
  if (p.rows.rows > 0)
    kernels::layer_norm<float, false, false>(CpuTeam<float, Access::cached>(scratch_of(launch)), 0,
                                             p.rows.rows, row_at, weight, bias, p.eps(),
                                             1 / static_cast<float>(n));
}

}  // namespace rooftile::ladder
