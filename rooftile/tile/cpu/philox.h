#pragma once
// Random words on a CPU: a counter in each 64-bit lane, whose products need no widening.
#include "rooftile/core/philox.h"
#include "rooftile/tile/cpu/tile.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// Counters of a vector, and vectors of counters whose words fill a tile: every instruction set has two.
inline constexpr int kCounters = kVecLanes<std::uint64_t>, kCounterVectors = 2;
inline constexpr int kWordsOfTile = 4 * kCounters * kCounterVectors;
static_assert(kWordsOfTile == kLanes<std::uint32_t>);

template <std::size_t... I>
ROOFTILE_TILE constexpr Vec<std::uint64_t> counter_order(std::index_sequence<I...>) {
  return Vec<std::uint64_t>{(I / 2 + I % 2 * (sizeof...(I) / 2))...};
}
/// {a[kAt], b[kAt], a[kAt + 2], b[kAt + 2], …}.
template <int kAt, std::size_t... I>
ROOFTILE_TILE Vec<std::uint64_t> interleaved(Vec<std::uint64_t> a, Vec<std::uint64_t> b,
                                             std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, (I % 2 * sizeof...(I) + I / 2 * 2 + kAt)...);
}

/// The words of kCounterVectors · kCounters counters from `counter` on, in the elements' order. A call: ten
/// rounds in each place that needs words would be most of an op's code.
__attribute__((noinline)) inline void random_words_to(std::uint32_t* to, std::uint64_t seed,
                                                      std::uint64_t counter) {
  using Wide = Vec<std::uint64_t>;
  constexpr auto kAll = std::make_index_sequence<kCounters>();
  constexpr std::uint64_t kLow = 0xFFFFFFFF;
  // Of a lane the lower half counts, the upper one holds what is left there. The counters' order is the one
  // that the last step's shuffles, which stay within 128 bits, undo.
  Wide a[kCounterVectors], b[kCounterVectors], c[kCounterVectors], d[kCounterVectors];
  for (int v = 0; v < kCounterVectors; ++v) {
    a[v] = counter_order(kAll) + (counter + static_cast<std::uint64_t>(v * kCounters));
    b[v] = a[v] >> 32;
    c[v] = d[v] = Wide{};
  }
  Wide key = splat(seed & kLow), key2 = splat(seed >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < kPhiloxRounds; ++round) {
    for (int v = 0; v < kCounterVectors; ++v) {
      const Wide first = vmul_low(a[v], splat(kPhiloxFactor)), second = vmul_low(c[v], splat(kPhiloxFactor2));
      a[v] = (second >> 32) ^ b[v] ^ key;
      c[v] = (first >> 32) ^ d[v] ^ key2;
      b[v] = second;
      d[v] = first;
    }
    key += std::uint64_t{kPhiloxStep};
    key2 += std::uint64_t{kPhiloxStep2};
  }
  for (int v = 0; v < kCounterVectors; ++v, to += 4 * kCounters) {
    const Wide lower = (a[v] & kLow) | b[v] << 32, upper = (c[v] & kLow) | d[v] << 32;
    store_unaligned(to, interleaved<0>(lower, upper, kAll));
    store_unaligned(to + 2 * kCounters, interleaved<1>(lower, upper, kAll));
  }
}

/// `first` is a multiple of 4 but in rows of a length that is none, and in a thread's first few elements.
template <Lanes X>
ROOFTILE_TILE Tile<std::uint32_t> random_words(const PhiloxStream& stream, std::uint64_t first) {
  alignas(64) std::uint32_t words[2 * kWordsOfTile];
  const std::uint64_t counter = stream.offset + first / 4;
  random_words_to(words, stream.seed, counter);
  if (first % 4 != 0)  // a counter more, with its neighbours
    random_words_to(words + kWordsOfTile, stream.seed, counter + kWordsOfTile / 4);
  Tile<std::uint32_t> r;
  const std::uint32_t* from = words + first % 4;
  ROOFTILE_EACH_VECTOR(r.v[i] = load_unaligned<Vec<std::uint32_t>>(from + i * kVecLanes<std::uint32_t>));
  return r;
}

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
