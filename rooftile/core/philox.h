#pragma once
// Philox 4x32-10: random words that are a function of a seed and a counter. Source: Salmon, Moraes, Dror and
// Shaw, Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011.
#include <cstdint>

namespace rooftile {

/// A counter, or what it becomes.
struct PhiloxWords {
  std::uint32_t word[4];
};

inline constexpr std::uint64_t kPhiloxFactor = 0xD2511F53, kPhiloxFactor2 = 0xCD9E8D57;
inline constexpr std::uint32_t kPhiloxStep = 0x9E3779B9, kPhiloxStep2 = 0xBB67AE85;  // of the key, a round
inline constexpr int kPhiloxRounds = 10;

/// `key`: its first word in the lower half.
constexpr PhiloxWords philox(PhiloxWords c, std::uint64_t key) {
  auto first = static_cast<std::uint32_t>(key), second = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t a = kPhiloxFactor * c.word[0], b = kPhiloxFactor2 * c.word[2];
    c = {{static_cast<std::uint32_t>(b >> 32) ^ c.word[1] ^ first, static_cast<std::uint32_t>(b),
          static_cast<std::uint32_t>(a >> 32) ^ c.word[3] ^ second, static_cast<std::uint32_t>(a)}};
    first += kPhiloxStep;
    second += kPhiloxStep2;
  }
  return c;
}

/// The words of a tensor's elements, in row-major order: element i has word i % 4 of the counter offset +
/// i/4, which wraps at 2^64. Nothing else has a say in them: no machine, no stride, no number of threads.
struct PhiloxStream {
  std::uint64_t seed, offset;

  /// The words of elements 4·group to 4·group + 3.
  constexpr PhiloxWords group(std::uint64_t group) const {
    const std::uint64_t counter = offset + group;
    return philox({{static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0, 0}},
                  seed);
  }
  constexpr std::uint32_t word(std::uint64_t element) const { return group(element / 4).word[element % 4]; }
};

/// A probability p as kernels compare words with it, exactly: of word/2^32 >= p.
struct PhiloxKeep {
  std::uint32_t least = 0, words = 0;  ///< kept: (word & words) >= least. So nothing is dropped
  float scale = 1;                     ///< of what is kept: 1/(1 - p)

  /// word/2^32 >= p is word >= ⌈p·2^32⌉: both are exact. With 1, which keeps none, the bound has 33 bits.
  static PhiloxKeep of(double p) {
    const double scaled = p * 0x1p32;
    const auto whole = static_cast<std::uint64_t>(scaled);
    const std::uint64_t least = whole + (static_cast<double>(whole) < scaled);
    if (least >> 32 != 0) return {1, 0, 0};
    return {static_cast<std::uint32_t>(least), ~std::uint32_t{0}, static_cast<float>(1 / (1 - p))};
  }
  constexpr bool operator()(std::uint32_t word) const { return (word & words) >= least; }
};

/// A stream's numbers while they are in the device's memory, so that a captured graph draws anew.
struct PhiloxNumbers {
  const void* seed = nullptr;
  const void* offset = nullptr;  ///< null: 0
  bool wide = true;              ///< they are i64; else i32, extended by their signs

  /// Number `at` of those at p, which are as wide; 0 of none.
  constexpr std::uint64_t whole(const void* p, std::int64_t at = 0) const {
    if (!p) return 0;
    return wide ? static_cast<std::uint64_t>(static_cast<const std::int64_t*>(p)[at])
                : static_cast<std::uint64_t>(std::int64_t{static_cast<const std::int32_t*>(p)[at]});
  }
  constexpr PhiloxStream stream() const { return {whole(seed), whole(offset)}; }
};

}  // namespace rooftile
