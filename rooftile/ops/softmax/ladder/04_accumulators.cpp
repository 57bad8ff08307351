// Idea: a tile of four vectors is one step, so four independent chains hide each other's latency; masks cut
// the tail. Changed: the loops are the block language's `each`; its last chunk is masked instead of scalar.
// Binds: in cache, the arithmetic of exp; from memory, each row waits for its own first read.
// Next: write a row while the next is computed, ask memory for coming rows early, and write past the caches.
#include "rooftile/ops/softmax/ladder/ladder.h"
#include "rooftile/tile/tile.h"

namespace rooftile::ladder {
using namespace tile;

template <class Team>
ROOFTILE_TILE void softmax_row(Team team, Row<const float> x, Row<float> y, const SplitScale& s) {
  using Tile = typename Team::Tile;
  auto exps = team.scratch(x.size);

  Tile maxima = team.fill(-kInfinity);
  team.each(x.size, [&](auto chunk) {
    maxima = max(maxima, team.only(chunk, team.load(x, chunk) * s.unit, -kInfinity));
  });
  const float row_max = team.max(maxima);

  // [sums]
  Tile sums = team.fill(0);
  team.each(x.size, [&](auto chunk) {
    sums += exps[chunk] = team.only(chunk, exp_below(fma(team.load(x, chunk), s.unit, -row_max), s), 0);
  });
  // [/sums]
  const float inverse = 1 / team.sum(sums);

  team.each(x.size, [&](auto chunk) { team.store(y, chunk, exps[chunk] * inverse); });
}

ROOFTILE_FLATTEN void launch_accumulators(const CpuLaunch& launch, const SoftmaxProblem& p) {
  const float* x = static_cast<const float*>(p.x);
  float* y = static_cast<float*>(p.y);
  for (std::int64_t row = 0; row < p.rows.rows; ++row) {
    const Row<const float> from{x + p.rows.offset(0, row), p.rows.columns};
    const Row<float> to{y + p.rows.offset(1, row), p.rows.columns};
    softmax_row(CpuTeam<float, Access::cached>(scratch_of(launch)), from, to, SplitScale(p.scale));
  }
}

}  // namespace rooftile::ladder
