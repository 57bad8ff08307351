#pragma once
// A row of logits is read once. Its sum of exponentials is kept from the largest logit so far: segment by
// segment, a larger one rescales what was summed before, once for each segment (Milakov and Gimelshein,
// arXiv:1805.02867, who rescale for each element). On a GPU the warps keep maxima of their own, and come
// together at the row's end. The backward takes the log-sum-exp from the forward, so that every element is
// one exponential of its own logit.
#include "rooftile/ops/cross_entropy/cross_entropy.problem.h"
#include "rooftile/tile/tile.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

/// What a loss needs of a row's logits: lse = row_max + log_sum, Σ w·x / scale and Σ w, w = 1 without
/// weights.
struct CrossEntropySums {
  float row_max, log_sum, logits, weights;
};

// [pass]
/// One pass over a row, in segments short enough that no lane adds up more than a segment's terms before they
/// join the row's. `scale`: a power of two that keeps Σ w·x from overflowing where no w·x does.
template <class Team, class T>
ROOFTILE_TILE CrossEntropySums cross_entropy_pass(const Team& team, const Row<const T>& x,
                                                  std::int64_t segment, bool smooths,
                                                  const Row<const float>& weight, float scale) {
  using Tile = typename Team::Tile;
  float most = -kInfinity;  // so far; on a GPU this warp's
  Tile sums = team.fill(0), logits = team.fill(0), weights = team.fill(0);
  for (std::int64_t begin = 0; begin < x.size; begin += segment) {
    Team reader = team;
    Row<const T> part = x.part(begin, segment);
    if (x.size - begin > segment) part.ahead = segment;  // on a CPU: what to ask memory for
    const auto row = reader.hold(part, -kInfinity);  // lanes past the end read -inf, whose exponential is 0
    const float here = part_max(reader, part, row, part.size);
    if (here > most) {
      sums *= exp(most - here);
      most = here;
    }
    const float from = most == -kInfinity ? 0 : most;  // -inf - -inf would be NaN
    Tile part_sums = team.fill(0), part_logits = team.fill(0), part_weights = team.fill(0);
    if (!smooths) {
      reader.each(part.size,
                  [&](auto chunk) ROOFTILE_INLINE { part_sums += exp_below(row[chunk] - from, false); });
    } else if (!weight.data) {
      reader.each(part.size, [&](auto chunk) ROOFTILE_INLINE {
        part_sums += exp_below(row[chunk] - from, false);
        part_logits = fma(team.only(chunk, row[chunk], 0), scale, part_logits);
      });
    } else {
      const Row<const float> w = weight.part(begin, segment);
      reader.each(part.size, [&](auto chunk) ROOFTILE_INLINE {
        const Tile its = team.load(w, chunk);
        part_sums += exp_below(row[chunk] - from, false);
        part_logits = fma(team.only(chunk, row[chunk], 0), its * scale, part_logits);
        part_weights += its;
      });
    }
    sums += part_sums;
    logits += part_logits;
    weights += part_weights;
  }
  const float row_max = team.max(team.fill(most)), from = row_max == -kInfinity ? 0 : row_max;
  const float sum = team.sum(sums * exp(most - from));
  if (!smooths) return {from, log(sum), 0, 0};
  const auto both = team.sums(logits, weights);
  return {from, log(sum), both.first, weight.data ? both.second : static_cast<float>(team.length(x))};
}
// [/pass]

/// Where a row's single values lie.
struct CrossEntropyPlaces {
  std::int64_t target, losses, lse;
};

/// One row: its loss and its log-sum-exp. `smooths`: terms.smooths(), or false where a kernel serves no other
/// calls.
template <class Team, class T>
ROOFTILE_TILE void cross_entropy(const Team& team, const Row<const T>& x, std::int64_t segment, bool smooths,
                                 const CrossEntropyProblem& p, const CrossEntropyPlaces& at) {
  const CrossEntropyTerms& terms = p.terms;
  const std::int64_t target = terms.target_at(at.target);
  const bool known = terms.is_class(target);
  const float picked = known ? element(team, x, target) : 0;
  const double weight = known ? terms.weight_of(target) : 0;

  const Row<const float> weights{static_cast<const float*>(terms.weight.data), x.size, terms.weight.stride};
  const CrossEntropySums row = cross_entropy_pass(team, x, segment, smooths, weights, terms.scale);

  // Of single numbers, in f64: where the target is all but certain, its loss is a small difference.
  const double lse = double(row.row_max) + row.log_sum;
  double loss = weight * (1 - double(terms.label_smoothing)) * (double(row.row_max) - picked + row.log_sum);
  if (smooths)
    loss += terms.label_smoothing / double(x.size) * (row.weights * lse - double(row.logits) / terms.scale);
  if (terms.z_loss > 0) loss += terms.z_loss * lse * lse;
  if (!known) loss = kInfinity - kInfinity;
  if (target == terms.ignore_index) loss = 0;
  team.store_scalars(p.losses + at.losses, static_cast<float>(loss), p.lse ? p.lse + at.lse : nullptr,
                     static_cast<float>(lse));
}

/// A row's gradient: all·p_c - [c = target]·hit - spread·w_c.
struct CrossEntropyFactors {
  std::int64_t target;
  float lse, all, hit, spread;
  bool ignored;
};
ROOFTILE_TILE CrossEntropyFactors cross_entropy_factors(const CrossEntropyBackwardProblem& p,
                                                        const CrossEntropyShared& shared,
                                                        std::int64_t target_at, std::int64_t lse_at,
                                                        std::int64_t dlosses_at) {
  const CrossEntropyTerms& terms = p.terms;
  const std::int64_t target = terms.target_at(target_at);
  if (target == terms.ignore_index) return {-1, 0, 0, 0, 0, true};
  const bool known = terms.is_class(target);
  double gradient = shared.gradient + (p.dlosses ? double(p.dlosses[dlosses_at]) : 0);
  if (!known) gradient = double(kInfinity - kInfinity);
  const float lse = p.lse[lse_at];
  const double hit = (known ? terms.weight_of(target) : 0) * (1 - double(terms.label_smoothing));
  const double spread = terms.label_smoothing / double(terms.classes);
  const double all = hit + spread * shared.weights + 2 * double(terms.z_loss) * lse;
  return {target,
          lse,
          static_cast<float>(gradient * all),
          static_cast<float>(gradient * hit),
          static_cast<float>(gradient * spread),
          false};
}

// [backward]
/// A row, or a part of it that begins with class `first`.
template <class Team, class T>
ROOFTILE_TILE void cross_entropy_backward(Team team, const Row<const T>& logits, const Row<T>& dlogits,
                                          const Row<const float>& weight, std::int64_t first,
                                          const CrossEntropyFactors& f) {
  if (f.ignored)
    return team.each(dlogits.size, [&](auto chunk) { team.store(dlogits, chunk, team.fill(0)); });
  const auto row = team.hold(logits, 0);
  const std::int64_t distance = f.target - first;
  const auto hit = static_cast<typename Team::Integer>(distance < dlogits.size ? distance : -1);
  team.each(dlogits.size, [&](auto chunk) ROOFTILE_INLINE {
    const auto p = exp_below(min(0, row[chunk] - f.lse), false);  // a NaN passes
    const auto spread = weight.data ? team.load(weight, chunk) * f.spread : team.fill(f.spread);
    const auto all = p * f.all - spread;
    team.store(dlogits, chunk, select(team.iota(chunk) == hit, all - f.hit, all));
  });
}
// [/backward]

}  // namespace rooftile::kernels
