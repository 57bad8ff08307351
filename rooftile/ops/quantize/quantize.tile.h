#pragma once
// A block is a row of its own: its largest magnitude gives the scale, then each element becomes a code. What
// a GPU's registers hold is read once; of a longer block the rest is read twice.
#include <bit>

#include "rooftile/ops/quantize/quantize.problem.h"
#include "rooftile/tile/philox.h"
#include "rooftile/tile/reduction.h"
#include "rooftile/tile/tile.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

// [encode]
/// To the nearest code, ties to even, in the lower 8 bits.
template <Lanes X>
ROOFTILE_TILE auto encode(const X& x, const CodeFormat& f) {
  using Integer = std::int32_t;
#if defined(ROOFTILE_HAS_F8_CODES)
  if (!f.integer) return f8_codes(x, f.shift == 21);
#endif
  if (f.integer) {  // by a sum whose last bit weighs 1
    const auto number = select(x == x, x, like(x, 0.0f));
    return bit_cast<Integer>(min(max(number, -127), 127) + 0x1.8p23f) & 0xFF;
  }
  const auto size = min(abs(x), f.largest);
  const auto bits = bit_cast<Integer>(size);
  // The last bit that stays gets half a unit, less one where it is even. Its carry may raise the exponent.
  const auto normal = ((bits + ((1 << (f.shift - 1)) - 1) + ((bits >> f.shift) & 1)) >> f.shift) - f.rebias;
  // Subnormal ones are multiples of one number: a sum that is, too, is rounded to it.
  const auto small = bit_cast<Integer>(size + f.magic) - bit_cast<Integer>(like(size, f.magic));
  const auto code = select(size < f.smallest_normal, small, normal);
  return select(x == x, code | ((bit_cast<Integer>(x) >> 24) & 0x80), like(code, 0x7F));
}
// [/encode]

// [by_chance]
/// To one of the two codes beside x, away from 0 as often as x is far from the other: where x is the share
/// `rest` of a step beyond it, where ⌊rest · 2^31⌋ + ⌊word / 2⌋ has a carry.
template <Lanes X, Lanes W>
ROOFTILE_TILE auto encode_by_chance(const X& x, const W& words, const CodeFormat& f) {
  using Integer = std::int32_t;
  const auto size = min(select(x == x, abs(x), like(x, 0.0f)), f.largest);
  const auto steps = min(size, f.even_to) * f.per_step;
  const auto whole = convert<Integer>(steps);
  const auto rest = convert<Integer>((steps - convert<float>(whole)) * 0x1p31f);
  const auto even = whole + bit_cast<Integer>((bit_cast<std::uint32_t>(rest) + (words >> 1)) >> 31);
  if (f.integer) return select(x < 0, -even, even) & 0xFF;
  // Of other codes the steps are the last bit that stays, and the bits below it are the rest.
  const auto random = bit_cast<Integer>(words >> (32 - f.shift));
  const auto normal = ((bit_cast<Integer>(size) + random) >> f.shift) - f.rebias;
  const auto code = select(size < f.even_to, even, normal);
  return select(x == x, code | ((bit_cast<Integer>(x) >> 24) & 0x80), like(code, 0x7F));
}
// [/by_chance]

/// How products become codes; `index`: of the first lane's element, in row-major order.
struct ToNearest {
  template <Lanes X>
  ROOFTILE_TILE auto operator()(const X& x, std::int64_t, const CodeFormat& f) const {
    return encode(x, f);
  }
};
struct ByChance {
  PhiloxStream stream;
  template <Lanes X>
  ROOFTILE_TILE auto operator()(const X& x, std::int64_t index, const CodeFormat& f) const {
    return encode_by_chance(x, random_words<X>(stream, static_cast<std::uint64_t>(index)), f);
  }
};

/// Codes from 0 to 255 as what they stand for, exactly.
template <Lanes C>
ROOFTILE_TILE auto decode(const C& code, const CodeFormat& f) {
  using Integer = std::int32_t;
  if (f.integer) return convert<float>((code << 24) >> 24);
  const auto size = code & 0x7F, bits = size << f.shift;
  // One product corrects the exponent, and makes subnormal ones normal.
  const auto number = bit_cast<Integer>(bit_cast<float>(bits) * f.unit);
  const auto magnitude = select(size >= f.special, bits | 0x7F800000, number);
  return bit_cast<float>(magnitude | ((code & 0x80) << 24));
}

/// A scale of which neither itself nor 1/it is subnormal. A NaN stays.
ROOFTILE_TILE float scale_of(float largest, const CodeFormat& f) {
  const float scale = largest / f.largest;
  return scale < 0x1p-126f ? 0x1p-126f : scale;
}

/// The largest magnitude of a block, of which a team holds one segment at a time; NaN where one is. As
/// integers magnitudes have the same order, and a NaN is above all. What is below 2^-126 counts as that, and
/// has the same scale.
template <class Team>
struct Magnitudes {
  static constexpr std::int32_t kLeast = 0x00800000;  // 2^-126
  typename Team::Integers most;
  ROOFTILE_TILE explicit Magnitudes(const Team& team) : most(bit_cast<std::int32_t>(team.fill(0x1p-126f))) {}
  template <class Held>
  ROOFTILE_TILE void add(const Team& team, const Held& held, std::int64_t size) {
    team.each(size, [&](auto chunk) ROOFTILE_INLINE {
      const auto its = bit_cast<std::int32_t>(abs(held[chunk]));
      most = select(its > most, its, most);
    });
  }
  /// A power of two less in the exponent, NaNs are numbers too: one maximum serves.
  ROOFTILE_TILE float largest(const Team& team) const {
    const std::int32_t least = kLeast;  // a value: device code has no address of it
    const float all = team.max(bit_cast<float>(most - least));
    return std::bit_cast<float>(std::bit_cast<std::int32_t>(all) + least);
  }
};

/// The same of a whole tensor, as bits.
struct LargestMagnitude {
  using Partial = std::int32_t;
  template <class Team, class X>
  ROOFTILE_TILE static Partial chunk(Team team, const X& x) {
    Magnitudes magnitudes(team);
    magnitudes.add(team, team.hold(x, 0), x.size);
    return std::bit_cast<Partial>(magnitudes.largest(team));
  }
  ROOFTILE_TILE static Partial nothing() { return 0; }
  ROOFTILE_TILE static Partial join(Partial left, Partial right) { return left > right ? left : right; }
  ROOFTILE_TILE static double finish(Partial all) { return static_cast<double>(std::bit_cast<float>(all)); }
};

// [quantize]
/// Codes, or, without memory for them, y: what they stand for. `index`: of x's first element in its tensor.
template <class Team, class T, class Rounding>
ROOFTILE_TILE void quantize(Team team, const Row<const T>& x, const Row<std::uint8_t>& codes, const Row<T>& y,
                            float* scale_to, const float* given, std::int64_t segment, const CodeFormat& f,
                            const Rounding& rounded, std::int64_t index) {
  const auto first = x.part(0, segment);
  const auto held = team.hold(first, 0);
  float scale = given ? *given : 0;
  if (!given) {
    Magnitudes magnitudes(team);
    magnitudes.add(team, held, first.size);
    for (std::int64_t at = segment; at < x.size; at += segment) {
      const auto part = x.part(at, segment);
      Team reader = team;
      magnitudes.add(team, reader.hold(part, 0), part.size);
    }
    scale = scale_of(magnitudes.largest(team), f);
  }
  team.store_scalars(scale_to, scale, static_cast<float*>(nullptr), 0);
  const float each_one = 1 / scale;
  const auto put = [&](const auto& part, std::int64_t at) ROOFTILE_INLINE {
    const auto to = codes.part(at, segment);
    const auto y_to = y.part(at, segment);
    team.each(part.row.size, [&](auto chunk) ROOFTILE_INLINE {
      const auto code = rounded(part[chunk] * each_one, index + at + chunk.first, f);
      if (codes.data)
        team.store(to, chunk, code);
      else
        team.store(y_to, chunk, decode(code, f) * scale);
    });
  };
  put(held, 0);
  for (std::int64_t at = segment; at < x.size; at += segment) {
    Team reader = team;
    put(reader.hold(x.part(at, segment), 0), at);
  }
}
// [/quantize]

template <class Team, class T>
ROOFTILE_TILE void dequantize(const Team& team, const Row<const std::uint8_t>& codes, const Row<T>& y,
                              float scale, std::int64_t segment, const CodeFormat& f) {
  for (std::int64_t at = 0; at < y.size; at += segment) {
    const auto from = codes.part(at, segment);
    const auto to = y.part(at, segment);
    team.each(to.size, [&](auto chunk) ROOFTILE_INLINE {
      team.store(to, chunk, decode(team.load_integers(from, chunk), f) * scale);
    });
  }
}

/// dx = dy where the product with 1 / scale does not round beyond the largest, else 0.
template <class Team, class T>
ROOFTILE_TILE void fake_quantize_backward(Team team, const Row<const T>& x, const Row<const T>& dy,
                                          const Row<T>& dx, const float* given, std::int64_t segment,
                                          const CodeFormat& f) {
  const float each_one = given ? 1 / *given : 0;
  for (std::int64_t at = 0; at < dx.size; at += segment) {
    Team reader = team;
    const auto to = dx.part(at, segment);
    const auto gradient = reader.hold(dy.part(at, segment), 0), values = reader.hold(x.part(at, segment), 0);
    reader.each(to.size, [&](auto chunk) ROOFTILE_INLINE {
      const auto its = gradient[chunk];
      if (given)
        team.store(to, chunk, select(abs(values[chunk] * each_one) <= f.last_within, its, like(its, 0.0f)));
      else
        team.store(to, chunk, its);
    });
  }
}

}  // namespace rooftile::kernels
