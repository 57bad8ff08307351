#pragma once
#include "rooftile/tile/tile.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

/// Operands of one row.
template <class T>
struct SoftmaxRow {
  Row<const T> x;
  Row<T> y;
};

/// Rows `begin` to `end`: y = exp(s·x - max) / Σ exp(s·x - max), or its logarithm. Differences come before
/// the scale (SplitScale says why): (u·x - max u·x)·(s / u). `row_at(i)` gives row i's operands. Row i - 1 is
/// written beside the exponentials of row i: one keeps the memory busy, the other the arithmetic.
template <class T, bool kLog, class Team, class RowAt>
ROOFTILE_TILE void softmax(Team team, std::int64_t begin, std::int64_t end, RowAt row_at,
                           const SplitScale& scale) {
  using Tile = typename Team::Tile;
  SoftmaxRow<T> coming = row_at(begin), row = coming;
  const std::int64_t size = coming.x.size;
  const auto exps = team.scratch(kLog ? 0 : size);  // row i - 1's, chunk by chunk replaced by row i's
  typename Team::Total total{0, 1, 1};

  typename Team::template Held<T> x{}, written{};
  team.rows(begin, end, [&](std::int64_t i, auto reads, auto writes) ROOFTILE_INLINE {
    [[maybe_unused]] const float shift = total.peak, inverse = total.factor / total.sum,
                                 log_sum = kLog ? log(total.sum) : 0;
    Team reader = team;
    row = coming;
    written = x;
    typename Team::Peak peak{};
    if (reads) {
      coming = row_at(i);
      x = reader.hold(coming.x, team.below_all(scale));  // read from memory once
      peak = reader.peak(x, size, scale);
    }
    Tile sums = team.fill(0);
    reader.each(size, [&](auto chunk) ROOFTILE_INLINE {
      const auto below = [&](const auto& held, float most)
                             ROOFTILE_INLINE { return fma(held[chunk], scale.unit, -most); };
      if (writes) {
        if constexpr (kLog) {
          team.store(row.y, chunk, fma(below(written, shift), scale.rest, -log_sum));
        } else {
          team.store(row.y, chunk, exps[chunk] * inverse);
        }
      }
      if (!reads) return;
      const Tile e = team.only(chunk, exp_below(below(x, peak.value), scale, peak.deep), 0);
      if constexpr (!kLog) exps[chunk] = e;
      sums += e;
    });
    if (reads) total = team.total(peak, sums, scale);
  });
}

/// A row too long to hold: its maximum and sum in one reading, segment by segment, the output in a second.
/// Within a segment, which stays in the first cache, the maximum is known before the exponentials; between
/// segments the sums so far are rescaled. One exponential an element, where a running maximum for each lane
/// would take two.
template <class Team, class T>
ROOFTILE_TILE void softmax_online(Team team, Row<const T> x, Row<T> y, const SplitScale& scale,
                                  bool log_of_it) {
  using Tile = typename Team::Tile;
  constexpr std::int64_t kSegment = 4096;
  float peak = -kInfinity;
  Tile sums = team.fill(0);
  for (std::int64_t begin = 0; begin < x.size; begin += kSegment) {
    const Row<const T> part = x.part(begin, kSegment);
    Tile peaks = team.fill(-kInfinity);
    team.each(part.size, [&](auto chunk) {
      peaks = max(peaks, team.only(chunk, team.load(part, chunk) * scale.unit, -kInfinity));
    });
    const float here = team.max(peaks);
    if (here > peak) {
      sums *= exp((peak - here) * scale.rest);
      peak = here;
    }
    // While all elements were -inf, their exponentials are 0 with any finite shift; -inf - -inf would be NaN.
    const float shift = peak == -kInfinity ? 0 : peak;
    team.each(part.size, [&](auto chunk) {
      sums += team.only(chunk, exp_below(fma(team.load(part, chunk), scale.unit, -shift), scale), 0);
    });
  }
  const float sum = team.sum(sums);
  if (log_of_it) {
    const float log_sum = log(sum);
    team.each(x.size, [&](auto chunk) {
      team.store(y, chunk, fma(fma(team.load(x, chunk), scale.unit, -peak), scale.rest, -log_sum));
    });
  } else {
    const float inverse = 1 / sum;
    team.each(x.size, [&](auto chunk) {
      team.store(y, chunk, exp_below(fma(team.load(x, chunk), scale.unit, -peak), scale) * inverse);
    });
  }
}

template <class T>
struct SoftmaxBackwardRow {
  Row<const T> y, dy;
  Row<T> dx;
};

/// Rows `begin` to `end`: dx = s·y·(dy - Σ y·dy); of the logarithm dx = s·(dy - exp(y)·Σ dy). One row is
/// written while the next is read.
template <class T, bool kLog, class Team, class RowAt>
ROOFTILE_TILE void softmax_backward(Team team, std::int64_t begin, std::int64_t end, RowAt row_at,
                                    float scale) {
  using Tile = typename Team::Tile;
  SoftmaxBackwardRow<T> coming = row_at(begin), row = coming;
  const std::int64_t size = coming.y.size;
  float sum = 0;

  typename Team::template Held<T> y{}, dy{}, written_y{}, written_dy{};
  team.rows(begin, end, [&](std::int64_t i, auto reads, auto writes) ROOFTILE_INLINE {
    Team reader = team;
    row = coming;
    written_y = y;
    written_dy = dy;
    if (reads) {
      coming = row_at(i);
      y = reader.hold(coming.y, 0);
      dy = reader.hold(coming.dy, 0);
      reader.walk_once();
    }
    Tile sums = team.fill(0);
    reader.each(size, [&](auto chunk) ROOFTILE_INLINE {
      if (writes) {
        const Tile p = written_y[chunk], dp = written_dy[chunk];
        if constexpr (kLog) {
          team.store(row.dx, chunk, (dp - exp(p) * sum) * scale);
        } else {
          team.store(row.dx, chunk, p * (dp - sum) * scale);
        }
      }
      if (!reads) return;
      const Tile d = dy[chunk];
      if constexpr (kLog) {
        sums += d;
      } else {
        sums = fma(y[chunk], d, sums);
      }
    });
    if (reads) sum = team.sum(sums);
  });
}

}  // namespace rooftile::kernels
