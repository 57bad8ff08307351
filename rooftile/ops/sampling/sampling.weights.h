#pragma once
// What makes a token, in whole numbers, the same on every machine: the order of logits, their weights, and
// what temperature, top_k, top_p and min_p leave.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "rooftile/core/philox.h"

namespace rooftile {

inline constexpr int kMaxListed = 64;

/// Whole numbers in the order of floats: a NaN's is the largest, 0 and -0 have one.
inline constexpr std::uint32_t kNanKey = 0xFFFFFFFF, kLeastKey = 0x007FFFFF, kMostKey = 0xFF800000;  // ±∞'s
constexpr std::uint32_t key_of(float x) {
  if (x != x) return kNanKey;
  const auto bits = std::bit_cast<std::uint32_t>(x + 0.0f);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
/// Of keys from kLeastKey to kMostKey.
constexpr float value_of(std::uint32_t key) {
  return std::bit_cast<float>(key >> 31 ? key & 0x7FFFFFFFu : ~key);
}
/// A logit with its place: the larger logit is larger, and of equal ones the one that comes first.
constexpr std::uint64_t placed_key(float x, std::int64_t place) {
  return std::uint64_t{key_of(x)} << 32 | static_cast<std::uint32_t>(~static_cast<std::uint32_t>(place));
}
constexpr std::int64_t place_of(std::uint64_t placed) {
  return static_cast<std::int64_t>(~static_cast<std::uint32_t>(placed));
}

/// 2^f for -1 <= f <= 0, of floats or tiles of them: 1 + f·(c0 + c1·f + …), within 2e-7. Products and sums
/// are rounded one by one: no fused one, which not every CPU has. So all machines have the same bits.
template <class F>
constexpr F exp2_below(const F& f) {
  F p = f * 0x1.c946aap-14f + 0x1.4e2ae2p-10f;
  p = p * f + 0x1.39e3fap-7f;
  p = p * f + 0x1.c6948ep-5f;
  p = p * f + 0x1.ebfacp-3f;
  p = p * f + 0x1.62e42cp-1f;
  return p * f + 1.0f;
}

/// log2 of a logit's share of the largest one's probability; 0 for it, though it be infinite.
constexpr float log2_share(float x, float row_max, float scale) {
  return x == row_max ? 0 : (x - row_max) * scale;
}
/// ⌊2^30 · 2^t⌋ for t <= 0.
constexpr std::uint32_t weight_of(float t) {
  if (!(t > -31)) return 0;
  const int n = static_cast<int>(t);  // toward 0
  const float p = exp2_below(t - static_cast<float>(n));
  return static_cast<std::uint32_t>(p * std::bit_cast<float>(static_cast<std::uint32_t>(n + 157) << 23));
}

/// a · b / 2^64, and whether anything is left.
struct UpperProduct {
  std::uint64_t upper;
  bool rest;
};
constexpr UpperProduct upper_product(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t low = 0xFFFFFFFF, al = a & low, ah = a >> 32, bl = b & low, bh = b >> 32;
  const std::uint64_t middle = ah * bl + (al * bl >> 32), middle2 = al * bh + (middle & low);
  return {ah * bh + (middle >> 32) + (middle2 >> 32), a * b != 0};
}

/// The random number of a row.
constexpr std::uint64_t sample_random(std::uint64_t seed, std::uint64_t counter) {
  const PhiloxWords r =
      philox({{static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 1, 0}}, seed);
  return std::uint64_t{r.word[0]} << 32 | r.word[1];
}

/// A call's options, as kernels take them.
struct SampleRule {
  float scale;          ///< log2 e / temperature
  std::int64_t top_k;   ///< 0: all
  std::uint64_t top_p;  ///< ⌊p · 2^32⌋ · 2^32
  bool nucleus;         ///< p < 1
  float min_share;      ///< log2 of min_p; -∞: none

  /// The sum that the tokens which top_p leaves reach, of those that have `mass`.
  constexpr std::uint64_t reached(std::uint64_t mass) const {
    const UpperProduct product = upper_product(mass, top_p);
    const std::uint64_t its = product.upper + product.rest;
    return its > 0 ? its : 1;
  }
  /// What is drawn: the token up to which weights sum up to more than this.
  static constexpr std::uint64_t drawn(std::uint64_t random, std::uint64_t mass) {
    return upper_product(random, mass).upper;
  }
};

inline SampleRule sample_rule(double temperature, std::int64_t top_k, double top_p, double min_p) {
  constexpr double kLog2E = 1.4426950408889634;
  // Of a scale of 0 or ∞, -∞ · 0 and 0 · ∞ were NaN.
  constexpr double kLeast = std::numeric_limits<float>::min(), kMost = std::numeric_limits<float>::max();
  SampleRule rule{};
  rule.scale = static_cast<float>(temperature > 0 ? std::clamp(kLog2E / temperature, kLeast, kMost) : 1);
  rule.top_k = temperature > 0 ? top_k : 1;
  rule.nucleus = top_p < 1;
  rule.top_p = rule.nucleus ? static_cast<std::uint64_t>(top_p * 0x1p32) << 32 : 0;
  rule.min_share = min_p > 0 ? static_cast<float>(std::log2(min_p)) : -std::numeric_limits<float>::infinity();
  return rule;
}

/// Whether a row whose largest key this is has a distribution.
constexpr bool has_tokens(std::uint32_t largest) { return largest > kLeastKey && largest != kNanKey; }

}  // namespace rooftile
