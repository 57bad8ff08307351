#pragma once
// The library's row program on the rungs' problem: dense f32 rows with a weight and a bias, no residual.
#include "rooftile/ops/layer_norm/ladder/ladder.h"
#include "rooftile/ops/layer_norm/layer_norm.tile.h"

namespace rooftile::ladder {
namespace {

using Program = kernels::LayerNorm<float>;
using Team = tile::CpuTeam<float, tile::Access::cached>;
using Operands = tile::RowOperands<float, LayerNormProblem::kCounts>;
using Vectors = tile::VectorList<tile::FloatVector, 2>;

Operands plain_operands(const LayerNormProblem& p, std::int64_t i) {
  const std::int64_t n = p.rows.columns;
  const PlainRow row = plain_row(p, i);
  Operands all{};
  all.in[0] = {row.x, n};
  all.out[0] = {row.y, n};
  all.statistics_out[0] = row.mean;
  all.statistics_out[1] = row.rstd;
  return all;
}
Vectors plain_vectors(const LayerNormProblem& p) {
  return tile::vector_list<tile::FloatVector, 2>([&](int v) {
    return tile::FloatVector{{static_cast<const float*>(p.vectors[v].data), p.rows.columns}};
  });
}

/// Calls use(at) along a row, `at` being what the program's stages see.
template <class Use>
void each_chunk(const Team& team, const Operands& row, const Vectors& vectors, const Use& use) {
  team.each(row.in[0].size, [&](auto chunk) {
    const tile::VectorTiles<Vectors, Team, decltype(chunk)> w{vectors, team, chunk};
    const tile::Tiles<Team::Tile, 1> in{{team.load(row.in[0], chunk)}};
    use(tile::At{team, chunk, in, w, row});
  });
}

}  // namespace
}  // namespace rooftile::ladder
