// Arithmetic lane by lane and across the lanes, against the same on scalars.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "rooftile/tile/tile.h"
#include "tests/tile/tile_checks.h"

namespace {
using namespace rooftile;
using namespace rooftile::tile;

template <class S>
bool same(S a, S b) {
  return std::memcmp(&a, &b, sizeof(S)) == 0 || (a != a && b != b);
}

/// A tile's lanes in memory, to look at.
template <class S>
struct Values {
  S at[kLanes<S>];
  Tile<S> tile() const {
    Tile<S> t;
    std::memcpy(&t, at, sizeof t);
    return t;
  }
};
template <class S>
Values<S> lanes(const Tile<S>& t) {
  Values<S> l;
  static_assert(sizeof l == sizeof t);
  std::memcpy(&l, &t, sizeof l);
  return l;
}
template <class S>
Values<IntegerOf<S>> lanes(const Mask<S>& m) {
  Values<IntegerOf<S>> l;
  std::memcpy(&l, &m, sizeof l);
  return l;
}

std::uint64_t state = 1;
std::uint64_t random_bits() {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 20;
}

/// Numbers of many sizes, and the special ones; integers of 15 bits, so that products fit.
template <class S>
S number() {
  const std::uint64_t r = random_bits();
  if constexpr (std::is_integral_v<S>) {
    return static_cast<S>(static_cast<S>(r % 65536) - S(32768));
  } else {
    constexpr S kInf = std::numeric_limits<S>::infinity(), kNaN = std::numeric_limits<S>::quiet_NaN();
    constexpr S special[] = {S(0), -S(0), kInf,  -kInf,
                             kNaN, S(1),  S(-1), std::numeric_limits<S>::denorm_min()};
    if (r % 6 == 0) return special[r / 6 % 8];
    const std::int64_t whole = static_cast<std::int64_t>(random_bits() % 2000001) - 1000000;
    return std::ldexp(static_cast<S>(whole), int(r % 61) - 30);
  }
}
template <class S>
Values<S> numbers() {
  Values<S> l;
  for (S& x : l.at) x = number<S>();
  return l;
}

/// Whether lane k of `result` is expected(k).
template <class S, class F>
void check_lanes(Checker& checker, const char* what, const Values<S>& result, F expected) {
  for (int k = 0; k < kLanes<S>; ++k)
    checker.expect(same<S>(result.at[k], expected(k)), "%s: lane %d is %.9g, not %.9g", what, k,
                   double(result.at[k]), double(expected(k)));
}

#define CHECK_BINARY(op)                                                                            \
  check_lanes(checker, "x " #op " y", lanes(x op y), [&](int k) { return S(a.at[k] op b.at[k]); }); \
  check_lanes(checker, "x " #op " 3", lanes(x op S(3)), [&](int k) { return S(a.at[k] op S(3)); }); \
  check_lanes(checker, "3 " #op " y", lanes(S(3) op y), [&](int k) { return S(S(3) op b.at[k]); })
#define CHECK_COMPARISON(op)                                                                                 \
  check_lanes(checker, "x " #op " y", lanes(x op y), [&](int k) { return I(a.at[k] op b.at[k] ? -1 : 0); }); \
  check_lanes(checker, "x " #op " 1", lanes(x op 1), [&](int k) { return I(a.at[k] op S(1) ? -1 : 0); })

template <class S>
void arithmetic(Checker& checker) {
  using I = IntegerOf<S>;
  for (int trial = 0; trial < 500; ++trial) {
    const Values<S> a = numbers<S>();
    Values<S> b = numbers<S>();
    for (int k = 0; k < kLanes<S>; k += 5) b.at[k] = a.at[k];
    const Tile<S> x = a.tile(), y = b.tile();
    CHECK_BINARY(+);
    CHECK_BINARY(-);
    CHECK_BINARY(*);
    CHECK_COMPARISON(<);
    CHECK_COMPARISON(<=);
    CHECK_COMPARISON(>);
    CHECK_COMPARISON(>=);
    CHECK_COMPARISON(==);
    CHECK_COMPARISON(!=);
    check_lanes(checker, "-x", lanes(-x), [&](int k) { return S(-a.at[k]); });
    Tile<S> z = x;
    z += y;
    z *= 2;
    check_lanes(checker, "(x += y) *= 2", lanes(z), [&](int k) { return S(S(a.at[k] + b.at[k]) * S(2)); });
    check_lanes(checker, "select", lanes(select(x < y, x, y)),
                [&](int k) { return a.at[k] < b.at[k] ? a.at[k] : b.at[k]; });
    const Mask<S> low = x < y, one = x != 1;
    check_lanes(checker, "mask & mask", lanes(low & one),
                [&](int k) { return I(a.at[k] < b.at[k] && a.at[k] != 1 ? -1 : 0); });
    check_lanes(checker, "mask | mask", lanes(low | one),
                [&](int k) { return I(a.at[k] < b.at[k] || a.at[k] != 1 ? -1 : 0); });
    check_lanes(checker, "!mask", lanes(!low), [&](int k) { return I(a.at[k] < b.at[k] ? 0 : -1); });
    check_lanes(checker, "abs", lanes(abs(x)), [&](int k) { return S(std::abs(a.at[k])); });
    check_lanes(checker, "fill", lanes(tile::fill(a.at[0])), [&](int) { return a.at[0]; });
    if constexpr (std::is_integral_v<S>) {
      CHECK_BINARY(&);
      CHECK_BINARY(|);
      CHECK_BINARY(^);
      check_lanes(checker, "x >> 3", lanes(x >> 3), [&](int k) { return S(a.at[k] >> 3); });
      check_lanes(checker, "x << 3", lanes(x << 3), [&](int k) { return S(a.at[k] * 8); });
    } else {
      CHECK_BINARY(/);
      // Where one operand is NaN, and for zeros of either sign: the second.
      check_lanes(checker, "max", lanes(max(x, y)),
                  [&](int k) { return a.at[k] > b.at[k] ? a.at[k] : b.at[k]; });
      check_lanes(checker, "min", lanes(min(x, y)),
                  [&](int k) { return a.at[k] < b.at[k] ? a.at[k] : b.at[k]; });
      check_lanes(checker, "max(2, y)", lanes(max(2, y)),
                  [&](int k) { return S(2) > b.at[k] ? S(2) : b.at[k]; });
      check_lanes(checker, "min(x, 2)", lanes(min(x, 2)),
                  [&](int k) { return a.at[k] < S(2) ? a.at[k] : S(2); });
      check_lanes(checker, "sqrt", lanes(sqrt(x)), [&](int k) { return std::sqrt(a.at[k]); });
      const Values<S> c = numbers<S>();
      constexpr bool kFused = kVectorBytes > 16;
      check_lanes(checker, "fma", lanes(fma(x, y, c.tile())), [&](int k) {
        return kFused ? std::fma(a.at[k], b.at[k], c.at[k]) : S(S(a.at[k] * b.at[k]) + c.at[k]);
      });
      check_lanes(checker, "fma(x, 3, 1)", lanes(fma(x, 3, 1)),
                  [&](int k) { return kFused ? std::fma(a.at[k], S(3), S(1)) : S(S(a.at[k] * 3) + S(1)); });
      check_lanes(checker, "bit_cast", lanes(tile::bit_cast<I>(x)),
                  [&](int k) { return std::bit_cast<I>(a.at[k]); });
    }
  }
}

void lane_arithmetic(const TileReport& report) {
  Checker checker(report);
  arithmetic<float>(checker);
  arithmetic<double>(checker);
  arithmetic<std::int32_t>(checker);
  arithmetic<std::int64_t>(checker);
  // Fused or not, where it shows: (1 + 2^-12)² - (1 + 2^-11) is 2^-24, or nothing once the product is
  // rounded.
  const Values<float> r = lanes(fma(tile::fill(1 + 0x1p-12f), 1 + 0x1p-12f, -(1 + 0x1p-11f)));
  check_lanes(checker, "one rounding", r, [&](int) { return kVectorBytes > 16 ? 0x1p-24f : 0.f; });
}

void conversions(const TileReport& report) {
  Checker checker(report);
  for (int trial = 0; trial < 500; ++trial) {
    Values<std::int32_t> i;
    Values<std::uint32_t> u;
    Values<std::int64_t> l;
    Values<float> f;
    Values<double> d;
    for (int k = 0; k < kLanes<float>; ++k) {
      u.at[k] = static_cast<std::uint32_t>(random_bits()) | (trial % 2 ? 0x80000001u : 0u);
      i.at[k] = static_cast<std::int32_t>(u.at[k]);
      f.at[k] = std::ldexp(static_cast<float>(i.at[k]), -int(random_bits() % 32) - 1);
    }
    for (int k = 0; k < kLanes<double>; ++k) {
      l.at[k] = static_cast<std::int64_t>(random_bits() << 20 | 1) >> (trial % 40);
      d.at[k] = std::ldexp(static_cast<double>(l.at[k]), -int(random_bits() % 64) - 1);
    }
    check_lanes(checker, "i32 to f32", lanes(convert<float>(i.tile())),
                [&](int k) { return float(i.at[k]); });
    check_lanes(checker, "u32 to f32", lanes(convert<float>(u.tile())),
                [&](int k) { return float(u.at[k]); });
    check_lanes(checker, "f32 to i32", lanes(convert<std::int32_t>(f.tile())),
                [&](int k) { return std::int32_t(f.at[k]); });
    check_lanes(checker, "i64 to f64", lanes(convert<double>(l.tile())),
                [&](int k) { return double(l.at[k]); });
    check_lanes(checker, "f64 to i64", lanes(convert<std::int64_t>(d.tile())),
                [&](int k) { return std::int64_t(d.at[k]); });
    check_lanes(checker, "u32 >> 7", lanes(u.tile() >> 7), [&](int k) { return u.at[k] >> 7; });
    check_lanes(checker, "u32 << 7", lanes(u.tile() << 7), [&](int k) { return u.at[k] << 7; });
    check_lanes(checker, "u32 * u32", lanes(u.tile() * u.tile()), [&](int k) { return u.at[k] * u.at[k]; });
    check_lanes(checker, "u32 < u32", lanes(u.tile() < 0x80000000u),
                [&](int k) { return u.at[k] < 0x80000000u ? -1 : 0; });
    check_lanes(checker, "float's mask on i32", lanes(select(f.tile() > 0, i.tile(), -i.tile())),
                [&](int k) { return f.at[k] > 0 ? i.at[k] : -i.at[k]; });
  }
}

/// The tree that every instruction set walks: vectors in pairs, then the upper half of the lanes onto the
/// lower.
template <class S, class F>
S tree(const Values<S>& l, F op) {
  constexpr int kWidth = kVecLanes<S>;
  S v[kWidth];
  for (int i = 0; i < kWidth; ++i)
    v[i] = op(op(l.at[i], l.at[kWidth + i]), op(l.at[2 * kWidth + i], l.at[3 * kWidth + i]));
  for (int half = kWidth / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) v[i] = op(v[i], v[i + half]);
  return v[0];
}

template <class S>
void reduce(Checker& checker) {
  const CpuTeam<S, Access::cached> team(nullptr);
  for (int trial = 0; trial < 3000; ++trial) {
    Values<S> l = numbers<S>();
    if (trial % 2) {  // finite, so that the order of additions shows
      for (S& x : l.at) x = x - x == 0 ? x : S(1);
    }
    const auto sum = [](S a, S b) { return a + b; };
    const auto most = [](S a, S b) { return a > b ? a : b; };
    const auto least = [](S a, S b) { return a < b ? a : b; };
    const S s = team.sum(l.tile()), m = team.max(l.tile()), n = team.min(l.tile());
    checker.expect(same(s, tree(l, sum)), "sum is %.17g, not %.17g", double(s), double(tree(l, sum)));
    checker.expect(same(m, tree(l, most)), "max is %.17g, not %.17g", double(m), double(tree(l, most)));
    checker.expect(same(n, tree(l, least)), "min is %.17g, not %.17g", double(n), double(tree(l, least)));
  }
}

void reductions(const TileReport& report) {
  Checker checker(report);
  reduce<float>(checker);
  reduce<double>(checker);
  for (int trial = 0; trial < 100; ++trial) {
    const Values<std::int32_t> l = numbers<std::int32_t>();
    std::int32_t sum = 0;
    for (const std::int32_t x : l.at) sum += x;
    checker.expect(reduce_sum(l.tile()) == sum, "sum of integers is %d, not %d", reduce_sum(l.tile()), sum);
  }
}

template <class S>
void indices(Checker& checker, std::int64_t first) {
  using Team = CpuTeam<S, Access::cached>;
  using I = typename Team::Integer;
  const Team team(nullptr);
  check_lanes(checker, "iota", lanes(team.iota(Chunk<true>{first, Team::kLanes})),
              [&](int k) { return I(first + k); });
  const Values<S> a = numbers<S>();
  check_lanes(checker, "only, all", lanes(team.only(Chunk<true>{first, Team::kLanes}, a.tile(), S(-5))),
              [&](int k) { return a.at[k]; });
  for (int live = 0; live <= Team::kLanes; ++live) {
    const Chunk<false> chunk{first, live};
    check_lanes(checker, "iota of a tail", lanes(team.iota(chunk)), [&](int k) { return I(first + k); });
    check_lanes(checker, "only", lanes(team.only(chunk, a.tile(), S(-5))),
                [&](int k) { return k < live ? a.at[k] : S(-5); });
  }
}

void chunks(const TileReport& report) {
  Checker checker(report);
  for (const std::int64_t first :
       {std::int64_t{0}, std::int64_t{64}, std::int64_t{1000003}, (std::int64_t{1} << 31) - 64})
    indices<float>(checker, first);
  for (const std::int64_t first : {std::int64_t{0}, std::int64_t{32}, (std::int64_t{1} << 40) + 3})
    indices<double>(checker, first);
  // Every element in one chunk, in order, and only the last in part.
  for (std::int64_t size = 0; size < 5 * kLanes<float>; ++size) {
    CpuTeam<float, Access::cached> team(nullptr);
    std::int64_t next = 0;
    bool ended = false;
    team.each(size, [&]<bool kFull>(Chunk<kFull> chunk) {
      checker.expect(chunk.first == next && !ended, "size %lld: a chunk at %lld, not %lld", (long long)size,
                     (long long)chunk.first, (long long)next);
      checker.expect(kFull ? chunk.live == kLanes<float> : chunk.live > 0 && chunk.live < kLanes<float>,
                     "size %lld: %d lanes", (long long)size, chunk.live);
      next += chunk.live;
      ended = !kFull;
    });
    checker.expect(next == size, "size %lld: chunks end at %lld", (long long)size, (long long)next);
  }
}

}  // namespace

extern const TileCheck tile_lane_checks[] = {{"lanes", lane_arithmetic},
                                             {"conversions", conversions},
                                             {"reductions", reductions},
                                             {"chunks", chunks},
                                             {}};
