#pragma once
// A row is read once, segment by segment. A segment's sums join the row's, so that no lane adds up more than
// a segment's terms and the number of segments.
#include "rooftile/ops/row_reduce/row_reduce.h"
#include "rooftile/ops/row_reduce/row_reduce.problem.h"
#include "rooftile/tile/tile.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

/// Calls body(reader, held part, part's first index, part's length) for each segment; lanes past the end read
/// `other`.
template <class Team, class T, class Body>
ROOFTILE_TILE void for_segments(const Team& team, const Row<const T>& x, std::int64_t segment, float other,
                                Body&& body) {
  for (std::int64_t begin = 0; begin < x.size; begin += segment) {
    Team reader = team;
    Row<const T> part = x.part(begin, segment);
    if (x.size - begin > segment) part.ahead = segment;  // on a CPU: what to ask memory for
    const auto held = reader.hold(part, other);
    body(reader, held, begin, part.size);
  }
}

template <class Team, class T>
ROOFTILE_TILE float row_sum(const Team& team, const Row<const T>& x, std::int64_t segment) {
  auto sums = team.fill(0);
  for_segments(team, x, segment, 0,
               [&](auto& reader, const auto& held, std::int64_t, std::int64_t size) ROOFTILE_INLINE {
                 auto part = team.fill(0);
                 reader.each(size, [&](auto chunk) ROOFTILE_INLINE { part += held[chunk]; });
                 sums += part;
               });
  return team.sum(sums);
}

/// A segment's product joins the row's, as sums do.
template <class Team, class T>
ROOFTILE_TILE float row_product(const Team& team, const Row<const T>& x, std::int64_t segment) {
  auto products = team.fill(1);
  for_segments(team, x, segment, 1,
               [&](auto& reader, const auto& held, std::int64_t, std::int64_t size) ROOFTILE_INLINE {
                 auto part = team.fill(1);
                 reader.each(size, [&](auto chunk) ROOFTILE_INLINE { part = part * held[chunk]; });
                 products = products * part;
               });
  return team.product(products);
}

// [largest]
/// The largest of sign · x, and NaN where one is: a lane that met a NaN keeps it, as nothing is larger.
template <class Team, class T>
ROOFTILE_TILE float row_largest(const Team& team, const Row<const T>& x, std::int64_t segment, float sign) {
  auto most = team.fill(-kInfinity);
  for_segments(team, x, segment, -kInfinity * sign,
               [&](auto& reader, const auto& held, std::int64_t, std::int64_t size) ROOFTILE_INLINE {
                 reader.each(size, [&](auto chunk) ROOFTILE_INLINE {
                   const auto its = held[chunk] * sign;
                   most = select((its > most) | (its != its), its, most);
                 });
               });
  const float nans = team.sum(select(most != most, team.fill(1), team.fill(0)));
  const float largest = team.max(select(most == most, most, team.fill(-kInfinity)));
  return nans > 0 ? __builtin_nanf("") : largest;
}
// [/largest]

template <class Team, class T>
ROOFTILE_TILE float row_log_sum_exp(const Team& team, const Row<const T>& x, std::int64_t segment) {
  float most = -kInfinity;  // so far; on a GPU this warp's
  auto sums = team.fill(0), nans = team.fill(0);
  for_segments(team, x, segment, -kInfinity,
               [&](auto& reader, const auto& held, std::int64_t begin, std::int64_t size) ROOFTILE_INLINE {
                 const float here = part_max(reader, x.part(begin, segment), held, size);
                 if (here > most) {
                   sums *= exp(most - here);
                   most = here;
                 }
                 // Of ±∞ no difference is taken; what +∞ gives is known without the sum.
                 const float from = most == -kInfinity || most == kInfinity ? 0 : most;
                 auto part = team.fill(0);
                 reader.each(size, [&](auto chunk) ROOFTILE_INLINE {
                   const auto its = held[chunk];
                   part += exp_below(min(0, its - from), false);
                   nans = select(its != its, team.fill(1), nans);
                 });
                 sums += part;
               });
  const float row_max = team.max(team.fill(most));
  const float from = row_max == -kInfinity || row_max == kInfinity ? 0 : row_max;
  const float sum = team.sum(sums * exp((most == kInfinity ? 0 : most) - from));
  if (team.sum(nans) > 0) return __builtin_nanf("");
  return row_max == kInfinity || row_max == -kInfinity ? row_max : from + log(sum);
}

template <class Team, class T>
ROOFTILE_TILE float row_reduce(const Team& team, const Row<const T>& x, std::int64_t segment, int kind) {
  const auto size = static_cast<float>(team.length(x));
  switch (static_cast<RowReduction>(kind)) {
    case RowReduction::sum:
      return row_sum(team, x, segment);
    case RowReduction::mean: {
      const float sum = row_sum(team, x, segment);
      return size == 0 ? __builtin_nanf("") : sum / size;
    }
    case RowReduction::logsumexp:
      return row_log_sum_exp(team, x, segment);
    case RowReduction::product:
      return row_product(team, x, segment);
    default: {
      const float sign = static_cast<RowReduction>(kind) == RowReduction::max ? 1 : -1;
      return row_largest(team, x, segment, sign) * sign;
    }
  }
}

/// An index below 2^31 in halves of 16 bits, which floats hold.
struct RowPlace {
  float upper, lower;
};

/// The first index of the largest of sign · x, or of a NaN. Each lane has its first; of the lanes' the
/// smallest comes by halves.
template <class Team, class T>
ROOFTILE_TILE RowPlace row_arg(const Team& team, const Row<const T>& x, std::int64_t segment, float sign) {
  using Integer = typename Team::Integer;
  auto most = team.fill(-kInfinity);
  auto at = convert<Integer>(team.fill(0)) + Integer{INT32_MAX};
  for_segments(team, x, segment, -kInfinity * sign,
               [&](auto& reader, const auto& held, std::int64_t begin, std::int64_t size) ROOFTILE_INLINE {
                 reader.each(size, [&](auto chunk) ROOFTILE_INLINE {
                   const auto its = held[chunk] * sign;
                   const auto takes = (its > most) | ((its != its) & (most == most));
                   at = select(takes, reader.iota(chunk) + static_cast<Integer>(begin), at);
                   most = select(takes, its, most);
                 });
               });
  const auto one = team.fill(1), zero = team.fill(0), none = team.fill(kInfinity);
  const bool nan = team.sum(select(most != most, one, zero)) > 0;
  const float largest = team.max(select(most == most, most, team.fill(-kInfinity)));
  const auto chosen = nan ? select(most != most, one, zero) : select(most == largest, one, zero);
  const auto high = convert<float>(at >> 16), low = convert<float>(at & Integer{0xFFFF});
  float upper = team.min(select(chosen > 0, high, none));
  float lower = team.min(select((chosen > 0) & (high == upper), low, none));
  if (upper == 0x7FFF && lower == 0xFFFF) upper = lower = 0;  // all are -∞
  return {upper, lower};
}

// [product]
/// dx = dy times the product of the others. A zero is no divisor: the product leaves zeros out, and counts
/// them.
template <class Team, class T>
ROOFTILE_TILE void row_product_backward(const Team& team, const Row<const T>& x, const Row<T>& dx,
                                        std::int64_t segment, float dy) {
  const auto one = team.fill(1), none = team.fill(0);
  auto products = one, zeros = none;
  for_segments(team, x, segment, 1,
               [&](auto& reader, const auto& held, std::int64_t, std::int64_t size) ROOFTILE_INLINE {
                 auto part = one;
                 reader.each(size, [&](auto chunk) ROOFTILE_INLINE {
                   const auto its = held[chunk];
                   part = part * select(its == 0, one, its);
                   zeros += select(its == 0, one, none);
                 });
                 products = products * part;
               });
  const float product = team.product(products), count = team.sum(zeros);
  const auto at_zero = team.fill(count == 1 ? product * dy : product * 0 * dy);
  const auto elsewhere = team.fill(product * 0 * dy);
  for_segments(team, x, segment, 1,
               [&](auto& reader, const auto& held, std::int64_t begin, std::int64_t size) ROOFTILE_INLINE {
                 reader.each(size, [&](auto chunk) ROOFTILE_INLINE {
                   const auto its = held[chunk];
                   const auto others = count == 0 ? product / its * dy : select(its == 0, at_zero, elsewhere);
                   reader.store(dx.part(begin, segment), chunk, others);
                 });
               });
}
// [/product]

/// A row, or a part of one of `columns` elements: dx = dy, dy/N, or dy·e^(x - y).
template <class Team, class T>
ROOFTILE_TILE void row_reduce_backward(Team team, const Row<const T>& x, const Row<T>& dx, float y, float dy,
                                       std::int64_t columns, int kind) {
  const auto its = static_cast<RowReduction>(kind);
  if (its != RowReduction::logsumexp || y == -kInfinity) {
    const float all = its == RowReduction::sum    ? dy
                      : its == RowReduction::mean ? dy / static_cast<float>(columns)
                                                  : 0;
    return team.each(dx.size, [&](auto chunk) ROOFTILE_INLINE { team.store(dx, chunk, team.fill(all)); });
  }
  const auto row = team.hold(x, 0);
  team.each(dx.size, [&](auto chunk) ROOFTILE_INLINE { team.store(dx, chunk, exp(row[chunk] - y) * dy); });
}

}  // namespace rooftile::kernels
