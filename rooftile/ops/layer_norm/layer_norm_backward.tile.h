#pragma once
#include "rooftile/ops/layer_norm/layer_norm.tile.h"

namespace rooftile::kernels {

template <class T>
struct LayerNormBackwardRow {
  Row<const T> x, dy;
  Row<T> dx;
  float mean, rstd;

  ROOFTILE_TILE
  LayerNormBackwardRow part(std::int64_t begin, std::int64_t count) const {
    return {x.part(begin, count), dy.part(begin, count), dx.part(begin, count), mean, rstd};
  }
  /// x̂ = (x - mean) · rstd.
  template <class Team, class C>
  ROOFTILE_TILE typename Team::Tile normalized(const Team& team, C chunk) const {
    return (team.load(x, chunk) - mean) * rstd;
  }
};

/// What one reading of a row gathers, with g = dy · weight: Σ g and Σ g·x̂.
template <class Team>
struct LayerNormProducts {
  using Tile = typename Team::Tile;
  Tile sums, products;

  ROOFTILE_TILE
  void begin(const Team& team) { sums = products = team.fill(0); }
  /// In the tail's empty lanes dy is 0, and x̂ may be anything.
  template <class C>
  ROOFTILE_TILE void add(const Team& team, C chunk, const Tile& x, const Tile& dy, const Tile& weight) {
    const Tile g = dy * weight;
    sums += g;
    products = fma(g, team.only(chunk, x, 0), products);
  }
};
struct LayerNormMeans {
  float g, product;  // Σ g / N, Σ g·x̂ / N
};

/// One chunk of a row: dx = rstd · (g - Σ g / N - x̂ · Σ g·x̂ / N), and its part of the columns' sums. `first`:
/// these begin with it.
template <class Team, class T, class C>
ROOFTILE_TILE void layer_norm_backward_write(const Team& team, const LayerNormBackwardRow<T>& row,
                                             const LayerNormMeans& means, Row<float> dweight,
                                             Row<float> dbias, bool first, C chunk,
                                             const typename Team::Tile& x, const typename Team::Tile& dy,
                                             const typename Team::Tile& weight) {
  if (dweight.data) team.columns(dweight, first).add_product(chunk, dy, x);
  if (dbias.data) team.columns(dbias, first).add(chunk, dy);
  team.store(row.dx, chunk, fma(x, -means.product, fma(dy, weight, -means.g)) * row.rstd);
}

/// Rows `begin` to `end`, a block of rows where weight gradients are asked for: each column's sums of dy·x̂
/// and dy go to `dweight` and `dbias`, one row after the other. One row's dx is written while the next row is
/// read. `kHeld`: x̂ and dy wait as floats in scratch; else both are read again.
template <class T, bool kHeld, class Team, class RowAt, class Weight>
ROOFTILE_TILE void layer_norm_backward(Team team, std::int64_t begin, std::int64_t end, RowAt row_at,
                                       Weight weight, Row<float> dweight, Row<float> dbias) {
  using Tile = typename Team::Tile;
  LayerNormBackwardRow<T> coming = row_at(begin), row = coming;
  const std::int64_t size = coming.x.size;
  const float each_one = 1 / static_cast<float>(size);
  LayerNormProducts<Team> gathered;
  LayerNormMeans means{};
  const auto held_x = team.scratch(kHeld ? size : 0), held_dy = team.scratch(kHeld ? size : 0);

  // Row i is read, row i - 1 written.
  for (std::int64_t i = begin; i <= end; ++i) {
    const bool reads = i < end;
    const bool writes = i > begin;
    if (writes) {
      row = coming;
      means = {team.sum(gathered.sums) * each_one, team.sum(gathered.products) * each_one};
    }
    Team reader = team;
    if (reads) {
      coming = row_at(i);
      if (writes) {
        reader.walk_once();
        reader.hold(coming.x, 0);
        reader.hold(coming.dy, 0);
      }
      gathered.begin(team);
    }
    reader.each(size, [&](auto chunk) ROOFTILE_INLINE {
      const Tile w = weight.load(team, chunk);
      const auto write = [&](const Tile& x, const Tile& dy) ROOFTILE_INLINE {
        layer_norm_backward_write(team, row, means, dweight, dbias, i - 1 == begin, chunk, x, dy, w);
      };
      if constexpr (kHeld) {
        if (writes) write(held_x[chunk], held_dy[chunk]);
        if (!reads) return;
        held_x[chunk] = coming.normalized(team, chunk);
        held_dy[chunk] = team.load(coming.dy, chunk);
        gathered.add(team, chunk, held_x[chunk], held_dy[chunk], w);
      } else {
        if (writes) write(row.normalized(team, chunk), team.load(row.dy, chunk));
        if (reads) gathered.add(team, chunk, coming.normalized(team, chunk), team.load(coming.dy, chunk), w);
      }
    });
  }
}

/// The same arithmetic for rows that come from memory: four are read, then written below each other in
/// blocks, so that a block of the weight and of the columns' sums stays in the first cache (see
/// layer_norm_by_blocks).
template <class T, class Team, class RowAt, class Weight>
ROOFTILE_TILE void layer_norm_backward_by_blocks(Team team, std::int64_t begin, std::int64_t end,
                                                 RowAt row_at, Weight weight, Row<float> dweight,
                                                 Row<float> dbias) {
  using Groups = LayerNormGroups<T>;
  const Groups groups{row_at(begin).x.size};
  const float each_one = 1 / static_cast<float>(groups.size);
  LayerNormBackwardRow<T> coming[Groups::kRows], rows[Groups::kRows];
  LayerNormMeans found[Groups::kRows], means[Groups::kRows];
  LayerNormProducts<Team> gathered;

  int to_write = 0;
  for (std::int64_t first = begin; first < end || to_write > 0; first += groups.rows) {
    const int to_read = first + groups.rows <= end ? groups.rows
                        : first < end              ? static_cast<int>(end - first)
                                                   : 0;
    for (int r = 0; r < to_read; ++r) coming[r] = row_at(first + r);
    groups.each(to_read, to_write, [&](const typename Groups::Step& s) ROOFTILE_INLINE {
      const std::int64_t from = s.read_block * Groups::kBlock, to = s.write_block * Groups::kBlock;
      LayerNormBackwardRow<T> in = coming[s.reading ? s.read_row : 0].part(from, Groups::kBlock);
      const LayerNormBackwardRow<T> out = rows[s.write_row].part(to, Groups::kBlock);
      const LayerNormMeans mean = means[s.write_row];
      const Weight w_in = weight.part(from, Groups::kBlock), w_out = weight.part(to, Groups::kBlock);
      const Row<float> dw = part_or_none(dweight, to, Groups::kBlock),
                       db = part_or_none(dbias, to, Groups::kBlock);
      const bool begins = first - groups.rows == begin && s.write_row == 0;
      Team reader = team;
      if (s.reading) {
        if (s.read_block == 0) gathered.begin(team);
        const std::int64_t row = first + s.read_row;
        in.x.ahead =
            groups.ahead(s, row, end, [&](std::int64_t i) ROOFTILE_INLINE { return row_at(i).x.data; });
        in.dy.ahead =
            groups.ahead(s, row, end, [&](std::int64_t i) ROOFTILE_INLINE { return row_at(i).dy.data; });
        reader.hold(in.x, 0);
        reader.hold(in.dy, 0);
        reader.walk_once();
      }
      layer_norm_step(reader, s.reading ? in.x.size : 0, s.writing ? out.x.size : 0,
                      [&](auto chunk, bool reads, bool writes) ROOFTILE_INLINE {
                        if (writes)
                          layer_norm_backward_write(team, out, mean, dw, db, begins, chunk,
                                                    out.normalized(team, chunk), team.load(out.dy, chunk),
                                                    w_out.load(team, chunk));
                        if (reads)
                          gathered.add(team, chunk, in.normalized(team, chunk), team.load(in.dy, chunk),
                                       w_in.load(team, chunk));
                      });
      if (s.reading && s.read_block + 1 == groups.blocks)
        found[s.read_row] = {team.sum(gathered.sums) * each_one, team.sum(gathered.products) * each_one};
    });
    for (int r = 0; r < to_read; ++r) {
      rows[r] = coming[r];
      means[r] = found[r];
    }
    to_write = to_read;
  }
}

/// A part of the columns: the sums of all blocks, added in the blocks' order.
template <class Team, class T>
ROOFTILE_TILE void layer_norm_add_blocks(Team team, Row<const float> first, std::int64_t blocks,
                                         std::int64_t stride, Row<T> out) {
  team.each(out.size, [&](auto chunk) ROOFTILE_INLINE {
    typename Team::Tile total = team.fill(0);
    for (std::int64_t block = 0; block < blocks; ++block)
      total += team.load(Row<const float>{first.data + block * stride, first.size}, chunk);
    team.store(out, chunk, total);
  });
}

}  // namespace rooftile::kernels
