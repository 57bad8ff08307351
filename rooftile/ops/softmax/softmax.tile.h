#pragma once
#include "rooftile/ops/softmax/softmax.problem.h"
#include "rooftile/tile/rows.h"

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
    [[maybe_unused]] const float shift = total.row_max, inverse = total.factor / total.sum,
                                 log_sum = kLog ? log(total.sum) : 0;
    Team reader = team;
    row = coming;
    written = x;
    typename Team::RowMax row_max{};
    if (reads) {
      coming = row_at(i);
      x = reader.hold(coming.x, team.below_all(scale));  // read from memory once
      row_max = reader.row_max(x, size, scale);
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
      const Tile e = team.only(chunk, exp_below(below(x, row_max.value), scale, row_max.deep), 0);
      if constexpr (!kLog) exps[chunk] = e;
      sums += e;
    });
    if (reads) total = team.total(row_max, sums, scale);
  });
}

/// A row too long to hold: its maximum and sum in one pass, segment by segment, the output in a second.
/// Within a segment, which stays in the first cache, the maximum is known before the exponentials; between
/// segments the sums so far are rescaled. One exponential an element, where a running maximum for each lane
/// would take two. Of a row that sees its first keys alone, x and y are these; `unseen` is the rest of y, and
/// `masked` says that a row may have no element above -inf.
template <class Team, class T>
ROOFTILE_TILE void softmax_online(Team team, Row<const T> x, Row<T> y, Row<T> unseen,
                                  const SplitScaleOf<typename Team::Real>& scale, bool log_of_it,
                                  bool masked) {
  using Tile = typename Team::Tile;
  using Real = typename Team::Real;
  constexpr std::int64_t kSegment = 4096;
  Real row_max = -kInfinity;
  // A segment's sum and what its addition to the others rounds off: else errors would grow with the row.
  Tile sums = team.fill(0), lost = team.fill(0);
  for (std::int64_t begin = 0; begin < x.size; begin += kSegment) {
    const Row<const T> part = x.part(begin, kSegment);
    Tile maxima = team.fill(-kInfinity);
    team.each(part.size, [&](auto chunk) {
      maxima = max(maxima, team.only(chunk, team.load(part, chunk) * scale.unit, -kInfinity));
    });
    // [online]
    const Real here = team.max(maxima);
    if (here > row_max) {
      const Real factor = exp((row_max - here) * scale.rest);
      sums *= factor;
      lost *= factor;
      row_max = here;
    }
    // While all elements were -inf, their exponentials are 0 with any finite shift; -inf - -inf would be NaN.
    const Real shift = row_max == -kInfinity ? 0 : row_max;
    Tile its = team.fill(0);
    team.each(part.size, [&](auto chunk) {
      its += team.only(chunk, exp_below(fma(team.load(part, chunk), scale.unit, -shift), scale), 0);
    });
    const Tile whole = sums + its, added = whole - sums;
    lost += (sums - (whole - added)) + (its - added);
    sums = whole;
    // [/online]
  }
  const Real sum = team.sum(sums + lost);
  const auto fill_masked = [&](const Row<T>& row) {
    const Tile nothing = team.fill(log_of_it ? -kInfinity : 0);
    team.each(row.size, [&](auto chunk) { team.store(row, chunk, nothing); });
  };
  fill_masked(unseen);
  if (masked && sum == 0) return fill_masked(y);
  if (log_of_it) {
    const Real log_sum = log(sum);
    team.each(x.size, [&](auto chunk) {
      team.store(y, chunk, fma(fma(team.load(x, chunk), scale.unit, -row_max), scale.rest, -log_sum));
    });
  } else {
    const Real inverse = 1 / sum;
    team.each(x.size, [&](auto chunk) {
      team.store(y, chunk, exp_below(fma(team.load(x, chunk), scale.unit, -row_max), scale) * inverse);
    });
  }
}

/// One row: dx = s·y·(dy - Σ y·dy); of the logarithm (`log`) dx = s·(dy - exp(y)·Σ dy). Elements whose y is
/// `masked` have no part in it; where there are none, that is a NaN, which equals nothing. `Log` is bool, one
/// kernel for both, or a constant: a CPU would lose a fifth of its speed by asking.
template <class Real, class Log>
struct SoftmaxBackward {
  using Problem = SoftmaxBackwardProblem;
  static constexpr bool kAddsResidual = false, kReadsAgain = true;
  enum { kY, kDy };
  Real scale, masked;
  Log log;
  SoftmaxBackward(const Problem& p, Log is_log)
      : scale(p.real<Real>(0)),
        masked(!p.flag(2) && !p.flag(3) ? __builtin_nanf("")
               : is_log                 ? -kInfinity
                                        : 0),
        log(is_log) {}

  ROOFTILE_TILE void read(auto& sums, const auto& at) const {
    const auto& y = at.in[kY];
    const auto dy = select(y == masked, like(y, 0), at.in[kDy]);
    if (log)
      sums[at.chunk] += dy;
    else
      sums[at.chunk] = fma(y, dy, sums[at.chunk]);
  }
  ROOFTILE_TILE Real measure(const auto& team, const auto& sums, const auto&, Real) const {
    return team.sum(sums);
  }
  ROOFTILE_TILE auto write(Real sum, const auto& at, const auto&) const {
    const auto &y = at.in[kY], &dy = at.in[kDy];
    const auto dx = log ? (dy - exp(y) * sum) * scale : y * (dy - sum) * scale;
    return select(y == masked, like(dx, 0), dx);
  }
};

}  // namespace rooftile::kernels
