// Idea: Σd and Σd² about any value near the mean give both the mean and the variance, in one pass.
// Changed: 03_accumulators' first two loops are one, behind a look at the row's first eighth that finds such
// a value. Binds: latency. Between its last sum and its first output, a row waits for two roots of sums with
// nothing to do. Next: read the coming row meanwhile.
#include "rooftile/ops/layer_norm/ladder/ladder.h"
#include "rooftile/ops/layer_norm/layer_norm.tile.h"

namespace rooftile::ladder {
using namespace tile;
using Team = CpuTeam<float, Access::cached>;

static void layer_norm_row(const Team& team, const kernels::LayerNormRow<float>& row,
                           tile::FloatVector weight, tile::FloatVector bias, float eps, float each_one) {
  const std::int64_t n = row.x.size;
  // [one_pass]
  kernels::LayerNormMoments<Team, float> moments;
  moments.begin(team, n, each_one, [&](auto chunk, auto use) { use(team.load(row.x, chunk)); });
  team.each(n, [&](auto chunk) { moments.add(team, chunk, team.load(row.x, chunk)); });

  const kernels::LayerNormScale scale = moments.finish(team, row, each_one, eps);
  team.each(n, [&](auto chunk) {
    kernels::layer_norm_write(team, row, scale, weight, bias, chunk, team.load(row.x, chunk));
  });
  // [/one_pass]
}

ROOFTILE_FLATTEN void launch_one_pass(const CpuLaunch& launch, const LayerNormProblem& p) {
  const std::int64_t n = p.rows.columns;
  const tile::FloatVector weight{{static_cast<const float*>(p.vectors[LayerNormProblem::kWeight].data), n}};
  const tile::FloatVector bias{{static_cast<const float*>(p.vectors[LayerNormProblem::kBias].data), n}};
  for (std::int64_t i = 0; i < p.rows.rows; ++i) {
    const PlainRow row = plain_row(p, i);
    layer_norm_row(Team(scratch_of(launch)),
                   {{row.x, n}, {nullptr, n}, {row.y, n}, {nullptr, n}, row.mean, row.rstd}, weight, bias,
                   p.eps(), 1 / static_cast<float>(n));
  }
}

}  // namespace rooftile::ladder
