#pragma once
#include "rooftile/ops/layer_norm/layer_norm.tile.h"

namespace rooftile::kernels {

template <class T>
struct LayerNormBackwardRow {
  Row<const T> x, dy;
  Row<T> dx;
  float mean, rstd;
  bool there = true;  ///< false: a team of a warp has none, but comes to its shuffles

  /// x̂ = (x - mean) · rstd, of elements of x.
  template <class Tile>
  ROOFTILE_TILE Tile normalized(const Tile& elements) const {
    return (elements - mean) * rstd;
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
  template <class Tile>
  ROOFTILE_TILE Tile dx(const Tile& x, const Tile& dy, const Tile& weight, float rstd) const {
    return fma(x, -product, fma(dy, weight, -g)) * rstd;
  }
};

/// Rows `begin` to `end`, a block of rows where weight gradients are asked for: each column's sums of dy·x̂
/// and dy go to `dweight` and `dbias`, one row after the other. One row's dx is written while the next row is
/// read: dx = rstd · (g - Σ g / N - x̂ · Σ g·x̂ / N). `kHeld`: x̂ and dy wait as floats in scratch; else both
/// are read again.
template <class T, bool kHeld, class Team, class RowAt, class Weight>
ROOFTILE_TILE void layer_norm_backward(Team team, std::int64_t begin, std::int64_t end, RowAt row_at,
                                       Weight weight, Row<float> dweight, Row<float> dbias) {
  using Tile = typename Team::Tile;
  LayerNormBackwardRow<T> coming = row_at(begin), row = coming;
  const std::int64_t size = coming.x.size;
  const float each_one = 1 / static_cast<float>(team.length(coming.x));
  LayerNormProducts<Team> gathered;
  LayerNormMeans means{};
  const auto held_x = team.scratch(kHeld ? size : 0), held_dy = team.scratch(kHeld ? size : 0);
  auto dweights = team.columns(dweight), dbiases = team.columns(dbias);

  team.rows(begin, end, [&](std::int64_t i, auto reads, auto writes) ROOFTILE_INLINE {
    if (writes) {
      row = coming;
      const auto both = team.sums(gathered.sums, gathered.products);
      means = {both.first * each_one, both.second * each_one};
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
    const bool first = i - 1 == begin;
    reader.each(size, [&](auto chunk) ROOFTILE_INLINE {
      const Tile w = weight.load(team, chunk);
      const auto write = [&](const Tile& x, const Tile& dy) ROOFTILE_INLINE {
        if (dweight.data) dweights.add_product(chunk, dy, x, first);
        if (dbias.data) dbiases.add(chunk, dy, first);
        team.store(row.dx, chunk, means.dx(x, dy, w, row.rstd));
      };
      if constexpr (kHeld) {
        if (writes) write(held_x[chunk], held_dy[chunk]);
        if (!reads) return;
        held_x[chunk] = coming.normalized(team.load(coming.x, chunk));
        held_dy[chunk] = team.load(coming.dy, chunk);
        gathered.add(team, chunk, held_x[chunk], held_dy[chunk], w);
      } else {
        if (writes) write(row.normalized(team.load(row.x, chunk)), team.load(row.dy, chunk));
        if (reads)
          gathered.add(team, chunk, coming.normalized(team.load(coming.x, chunk)),
                       team.load(coming.dy, chunk), w);
      }
    });
  });
  dweights.write();
  dbiases.write();
}

/// The sums of both gradients, of a team that holds rows, in registers as memory has them. They are taken
/// also where nobody asks for them: a branch for each chunk costs more.
template <class Team>
struct LayerNormGradients {
  typename Team::Columns weights, biases;

  ROOFTILE_TILE void write() const {
    weights.write();
    biases.write();
  }
  ROOFTILE_TILE void write_together(int teams) const {
    weights.write_together(teams);
    biases.write_together(teams);
  }
  ROOFTILE_TILE void write_of_warps(int teams) const {
    weights.write_of_warps(teams);
    biases.write_of_warps(teams);
  }
  /// One row: its dx, and what it adds.
  template <class T, class Held, class Weight>
  ROOFTILE_TILE void add(const Team& team, const LayerNormBackwardRow<T>& row, const Held& x, const Held& dy,
                         const Weight& weight, float each_one, bool first) {
    using Tile = typename Team::Tile;
    const std::int64_t size = row.x.size;
    // Of staged rows as floats: their instructions are what takes time.
    const auto offs = team.scratch(size), gradients = team.scratch(size);
    const auto off = [&](auto chunk) ROOFTILE_INLINE -> Tile {
      if constexpr (Team::kStaged)
        return offs[chunk];
      else
        return x[chunk] - row.mean;
    };
    const auto gradient_of = [&](auto chunk) ROOFTILE_INLINE -> Tile {
      if constexpr (Team::kStaged)
        return gradients[chunk];
      else
        return dy[chunk];
    };
    LayerNormProducts<Team> gathered;
    gathered.begin(team);
    team.each(size, [&](auto chunk) ROOFTILE_INLINE {
      if constexpr (Team::kStaged) {
        offs[chunk] = x[chunk] - row.mean;
        gradients[chunk] = dy[chunk];
      }
      gathered.add(team, chunk, off(chunk), gradient_of(chunk), weight.load(team, chunk));
    });
    const auto both = team.sums(gathered.sums, gathered.products);
    // dx = rstd·dy·weight - rstd·Σ g/N - (x - mean)·rstd²·Σ g·x̂/N, where x̂ = (x - mean)·rstd is not needed.
    const float shift = both.first * each_one * row.rstd;
    // Where rstd is infinite, x̂ is so with both signs, and all of it NaN.
    const float slope = both.second * each_one * row.rstd * row.rstd * row.rstd + (row.rstd - row.rstd);
    team.each(size, [&](auto chunk) ROOFTILE_INLINE {
      const Tile centered = off(chunk), gradient = gradient_of(chunk), scaled = gradient * row.rstd;
      weights.add_product(chunk, scaled, centered, first);
      biases.add(chunk, gradient, first);
      team.store(row.dx, chunk, fma(centered, -slope, fma(scaled, weight.load(team, chunk), -shift)));
    });
  }
};

/// The same for `count` rows and a team that holds them. `after(row, i)` is row i, the one after `row`.
template <class T, class Team, class Count, class After, class Weight>
ROOFTILE_TILE void layer_norm_backward_held(Team team, Count count, LayerNormBackwardRow<T> next, After after,
                                            const Weight& weight, LayerNormGradients<Team>& gradients) {
  const float each_one = 1 / static_cast<float>(team.length(next.x));
  team.ask(next.x);  // `next`: whose mean and rstd are on their way
  team.ask(next.dy);
  team.ask_no_vectors();
  using Held = typename Team::template Held<T>;
  Held next_x, next_dy;
  const auto hold_next = [&] {
    const Team its = team.of_row(next.there);
    next_x = its.hold(next.x, 0);
    next_dy = its.hold(next.dy, 0);
  };
  if constexpr (Team::kHoldsNext) hold_next();

  for (Count i = 0; i < count; ++i) {
    const LayerNormBackwardRow<T> row = next;
    if constexpr (!Team::kHoldsNext) hold_next();
    const Held x = next_x, dy = next_dy;
    if (i + 1 < count) {
      next = after(row, i + 1);
      if constexpr (Team::kHoldsNext) hold_next();
    }
    gradients.add(team.of_row(row.there), row, x, dy, weight, each_one, i == 0);
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
