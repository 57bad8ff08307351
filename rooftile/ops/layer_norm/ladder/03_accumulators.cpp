// Idea: a tile of four vectors is one step, so four independent chains hide each other's latency; masks cut
// the tail. Changed: 02_vectors' three loops, in the block language's `each`. Binds: three passes, two of
// which end in a sum across lanes that the next must wait for (some 45 cycles each). Next: the mean and the
// variance from one pass.
#include "rooftile/ops/layer_norm/ladder/ladder.h"
#include "rooftile/tile/tile.h"

namespace rooftile::ladder {
using namespace tile;
using Team = CpuTeam<float, Access::cached>;

static void layer_norm_row(const Team& team, const PlainRow& row, std::int64_t n, Row<const float> weight,
                           Row<const float> bias, float eps) {
  const Row<const float> x{row.x, n};
  Team::Tile sums = team.fill(0);
  team.each(n, [&](auto chunk) { sums += team.load(x, chunk); });
  const float mean = team.sum(sums) / static_cast<float>(n);

  // [squares]
  Team::Tile squares = team.fill(0);
  team.each(n, [&](auto chunk) {
    const Team::Tile d = team.only(chunk, team.load(x, chunk) - mean, 0);
    squares = fma(d, d, squares);
  });
  // [/squares]
  const float rstd = 1 / sqrt(team.sum(squares) / static_cast<float>(n) + eps);

  team.each(n, [&](auto chunk) {
    const Team::Tile y = (team.load(x, chunk) - mean) * rstd;
    team.store(Row<float>{row.y, n}, chunk, fma(y, team.load(weight, chunk), team.load(bias, chunk)));
  });
  if (row.mean) *row.mean = mean;
  if (row.rstd) *row.rstd = rstd;
}

ROOFTILE_FLATTEN void launch_accumulators(const CpuLaunch& launch, const LayerNormProblem& p) {
  const std::int64_t n = p.rows.columns;
  const Row<const float> weight{static_cast<const float*>(p.vectors[LayerNormProblem::kWeight].data), n};
  const Row<const float> bias{static_cast<const float*>(p.vectors[LayerNormProblem::kBias].data), n};
  for (std::int64_t row = 0; row < p.rows.rows; ++row)
    layer_norm_row(Team(scratch_of(launch)), plain_row(p, row), n, weight, bias, p.eps());
}

}  // namespace rooftile::ladder
