#pragma once
#include "rooftile/tile/tile.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

/// One row: y = exp(s·x - max) / Σ exp(s·x - max).
template <class Team, class T>
ROOFTILE_TILE void softmax(Team team, Row<const T> x, Row<T> y, float scale) {
  using Tile = typename Team::Tile;
  auto row = team.hold(x, -kInfinity);  // read from memory once
  auto exps = team.scratch(x.size);     // float32, on chip

  Tile peaks = team.fill(-kInfinity);
  team.each(x.size,
            [&](auto chunk) { peaks = max(peaks, team.only(chunk, row[chunk] * scale, -kInfinity)); });
  const float peak = team.max(peaks);

  Tile sums = team.fill(0);
  team.each(x.size, [&](auto chunk) {
    sums += exps[chunk] = team.only(chunk, exp_below(fma(row[chunk], scale, -peak)), 0);
  });
  const float inverse = 1 / team.sum(sums);

  team.each(x.size, [&](auto chunk) { team.store(y, chunk, exps[chunk] * inverse); });
}

/// One row: y = s·x - max - log Σ exp(s·x - max).
template <class Team, class T>
ROOFTILE_TILE void log_softmax(Team team, Row<const T> x, Row<T> y, float scale) {
  using Tile = typename Team::Tile;
  auto row = team.hold(x, -kInfinity);

  Tile peaks = team.fill(-kInfinity);
  team.each(x.size,
            [&](auto chunk) { peaks = max(peaks, team.only(chunk, row[chunk] * scale, -kInfinity)); });
  const float peak = team.max(peaks);

  Tile sums = team.fill(0);
  team.each(x.size,
            [&](auto chunk) { sums += team.only(chunk, exp_below(fma(row[chunk], scale, -peak)), 0); });
  const float log_sum = log(team.sum(sums));

  // In this order: s·x - peak is exact for close values, and log Σ is small beside a large peak.
  team.each(x.size, [&](auto chunk) { team.store(y, chunk, fma(row[chunk], scale, -peak) - log_sum); });
}

/// A row too long to hold: its maximum and sum in one reading, segment by segment, the output in a second.
/// Within a segment, which stays in the first cache, the maximum is known before the exponentials; between
/// segments the sums so far are rescaled. One exponential an element, where a running maximum for each lane
/// would take two.
template <class Team, class T>
ROOFTILE_TILE void softmax_online(Team team, Row<const T> x, Row<T> y, float scale, bool log_of_it) {
  using Tile = typename Team::Tile;
  constexpr std::int64_t kSegment = 4096;
  float peak = -kInfinity;
  Tile sums = team.fill(0);
  for (std::int64_t begin = 0; begin < x.size; begin += kSegment) {
    const Row<const T> part = x.part(begin, kSegment);
    Tile peaks = team.fill(-kInfinity);
    team.each(part.size, [&](auto chunk) {
      peaks = max(peaks, team.only(chunk, team.load(part, chunk) * scale, -kInfinity));
    });
    const float here = team.max(peaks);
    if (here > peak) {
      sums *= exp(peak - here);
      peak = here;
    }
    // While all elements were -inf, their exponentials are 0 with any finite shift; -inf - -inf would be NaN.
    const float shift = peak == -kInfinity ? 0 : peak;
    team.each(part.size, [&](auto chunk) {
      sums += team.only(chunk, exp_below(fma(team.load(part, chunk), scale, -shift)), 0);
    });
  }
  const float sum = team.sum(sums);
  if (log_of_it) {
    const float log_sum = log(sum);
    team.each(x.size,
              [&](auto chunk) { team.store(y, chunk, fma(team.load(x, chunk), scale, -peak) - log_sum); });
  } else {
    const float inverse = 1 / sum;
    team.each(x.size, [&](auto chunk) {
      team.store(y, chunk, exp_below(fma(team.load(x, chunk), scale, -peak)) * inverse);
    });
  }
}

/// One row: dx = s·y·(dy - Σ y·dy).
template <class Team, class T>
ROOFTILE_TILE void softmax_backward(Team team, Row<const T> y, Row<const T> dy, Row<T> dx, float scale) {
  using Tile = typename Team::Tile;
  auto out = team.hold(y, 0);
  auto gradient = team.hold(dy, 0);

  Tile products = team.fill(0);
  team.each(y.size, [&](auto chunk) { products = fma(out[chunk], gradient[chunk], products); });
  const float dot = team.sum(products);

  team.each(y.size, [&](auto chunk) { team.store(dx, chunk, out[chunk] * (gradient[chunk] - dot) * scale); });
}

/// One row: dx = s·(dy - exp(y)·Σ dy).
template <class Team, class T>
ROOFTILE_TILE void log_softmax_backward(Team team, Row<const T> y, Row<const T> dy, Row<T> dx, float scale) {
  using Tile = typename Team::Tile;
  auto gradient = team.hold(dy, 0);

  Tile sums = team.fill(0);
  team.each(y.size, [&](auto chunk) { sums += gradient[chunk]; });
  const float sum = team.sum(sums);

  team.each(y.size, [&](auto chunk) {
    team.store(dx, chunk, (gradient[chunk] - exp(team.load(y, chunk)) * sum) * scale);
  });
}

}  // namespace rooftile::kernels
