#pragma once
// The token of a row too long to sort. What top_k, top_p and min_p leave begins the sorted row, so the sum of
// its weights tells all of it; and each step asks for one element: up to which do counts, or weights, sum up
// to more than a target? A key's digits answer it from the highest on: a histogram by digit, the digit in
// which the target falls, and the next digit of the keys that have this one.
//
// A Row is the machine's:  largest()                      the largest key; 0 of no element
//                          find(level, prefix, weighs, target, above)
//                                                         the digit; `above` grows by what is larger
//                          weights_from(key), weights_of(share)   sums of the weights of keys or shares from
//                          there nth(key, n)                    the place of the n-th element with this key
#include "rooftile/ops/sampling/sampling.weights.h"
#include "rooftile/tile/tile.h"

namespace rooftile::kernels {

inline constexpr int kDigits = 1 << 11;
/// Digits of 11, 11 and 10 bits.
constexpr int digit_shift(int level) { return level == 0 ? 21 : level == 1 ? 10 : 0; }

/// Whether a key has the digits of a prefix above a level's.
constexpr bool has_prefix(std::uint32_t key, std::uint32_t prefix, int level) {
  return level == 0 || (key ^ prefix) >> digit_shift(level - 1) == 0;
}
constexpr int digit_of(std::uint32_t key, int level) {
  return static_cast<int>(key >> digit_shift(level) & (level == 2 ? kDigits / 2 - 1 : kDigits - 1));
}

/// The key up to which more than `target` comes, and what all larger ones have.
struct FoundKey {
  std::uint32_t key;
  std::uint64_t above;
};

// [search]
template <class Row>
ROOFTILE_TILE FoundKey found_key(Row& row, bool weighs, std::uint64_t target) {
  FoundKey found{0, 0};
  for (int level = 0; level < 3; ++level) {
    const int digit = row.find(level, found.key, weighs, target, found.above);
    found.key |= static_cast<std::uint32_t>(digit) << digit_shift(level);
  }
  return found;
}
// [/search]

template <class Row>
ROOFTILE_TILE std::int64_t token_of_row(Row& row, std::int64_t columns, const SampleRule& rule,
                                        std::uint64_t random) {
  const std::uint32_t largest = row.largest();
  if (!has_tokens(largest)) return -1;
  const float row_max = value_of(largest);
  const auto weight = [&](std::uint32_t key) {
    return std::uint64_t{weight_of(log2_share(value_of(key), row_max, rule.scale))};
  };
  row.scaled_by(row_max, rule.scale);
  std::uint64_t mass = 0;
  if (rule.top_k > 0 && rule.top_k < columns) {
    const auto k = static_cast<std::uint64_t>(rule.top_k);
    const FoundKey last = found_key(row, false, k - 1);
    mass = row.weights_from(last.key + 1) + (k - last.above) * weight(last.key);
  } else {
    mass = row.weights_from(kLeastKey);
  }
  if (rule.nucleus) {
    // As many of the equal ones that reach it as it takes.
    const std::uint64_t enough = rule.reached(mass);
    const FoundKey last = found_key(row, true, enough - 1);
    const std::uint64_t each = weight(last.key), missing = enough - last.above;
    mass = last.above + (missing + each - 1) / each * each;
  }
  if (rule.min_share > -31) {
    const std::uint64_t its = row.weights_of(rule.min_share);
    mass = its < mass ? its : mass;
  }
  const std::uint64_t target = SampleRule::drawn(random, mass);
  const FoundKey drawn = found_key(row, true, target);
  return row.nth(drawn.key, (target - drawn.above) / weight(drawn.key));
}

/// The token of a row of which a sorted list has all that count: keys(i) for i < n.
template <class Keys>
ROOFTILE_TILE std::int64_t token_of_list(const Keys& keys, int n, const SampleRule& rule,
                                         std::uint64_t random) {
  if (n == 0) return -1;
  const auto largest = static_cast<std::uint32_t>(keys(0) >> 32);
  if (!has_tokens(largest)) return -1;
  const float row_max = value_of(largest);
  const auto share = [&](int i) {
    const auto key = static_cast<std::uint32_t>(keys(i) >> 32);
    return log2_share(value_of(key), row_max, rule.scale);
  };
  std::uint64_t mass = 0, kept = 0;
  for (int i = 0; i < n; ++i) mass += weight_of(share(i));
  const std::uint64_t enough = rule.nucleus ? rule.reached(mass) : mass;
  for (int i = 0; i < n && kept < enough; ++i) {
    const float t = share(i);
    if (!(t >= rule.min_share)) break;
    kept += weight_of(t);
  }
  const std::uint64_t target = SampleRule::drawn(random, kept);
  std::uint64_t sum = 0;
  for (int i = 0; i < n; ++i) {
    sum += weight_of(share(i));
    if (sum > target) return place_of(keys(i));
  }
  return -1;
}

}  // namespace rooftile::kernels
