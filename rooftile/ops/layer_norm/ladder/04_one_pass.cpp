// Idea: Σd and Σd² about any value near the mean give both the mean and the variance, in one pass.
// Changed: 03_accumulators' first two loops are one, behind a look at the row's first eighth that finds such
// a value. Binds: latency. Between its last sum and its first output, a row waits for two roots of sums with
// nothing to do. Next: read the coming row meanwhile.
#include "rooftile/ops/layer_norm/ladder/program.h"

namespace rooftile::ladder {
using namespace tile;

static void layer_norm_row(const Program& program, const Team& team, const Operands& row,
                           const Vectors& vectors, float each_one) {
  // [one_pass]
  const auto in = [&](auto chunk) { return Tiles<Team::Tile, 1>{{team.load(row.in[0], chunk)}}; };
  auto sums = program.begin(team, row, each_one, in);
  each_chunk(team, row, vectors, [&](const auto& at) { program.read(sums, at); });

  const auto found = program.measure(team, sums, row, each_one);
  store_statistics(program, team, row, found);
  each_chunk(team, row, vectors,
             [&](const auto& at) { team.store(row.out[0], at.chunk, program.write(found, at, Nothing{})); });
  // [/one_pass]
}

ROOFTILE_FLATTEN void launch_one_pass(const CpuLaunch& launch, const LayerNormProblem& p) {
  const Program program{p.eps()};
  const Vectors vectors = plain_vectors(p);
  for (std::int64_t i = 0; i < p.rows.rows; ++i)
    layer_norm_row(program, Team(scratch_of(launch)), plain_operands(p, i), vectors,
                   1 / static_cast<float>(p.rows.columns));
}

}  // namespace rooftile::ladder
