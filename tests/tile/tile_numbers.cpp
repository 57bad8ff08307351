// The exponential, and conversions from and to memory's formats, over all numbers or a dense sample.
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>

#include "rooftile/core/convert.h"
#include "rooftile/core/element.h"
#include "rooftile/tile/tile.h"
#include "tests/tile/tile_checks.h"

namespace {
using namespace rooftile;
using namespace rooftile::tile;

constexpr int kWidth = kLanes<float>;
constexpr std::uint64_t kFloats = std::uint64_t{1} << 32;

float of_bits(std::uint64_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits)); }
unsigned bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

/// Calls body(in, first) with tiles of every step-th float.
template <class Body>
void sweep(std::uint64_t step, Body body) {
  float in[kWidth];
  for (std::uint64_t b = 0; b < kFloats; b += step * kWidth) {
    for (std::uint64_t k = 0; k < kWidth; ++k) in[k] = of_bits(b + k * step);
    body(in);
  }
}

void check_exp(Checker& checker, float x, float y) {
  if (x != x) return checker.expect(y != y, "exp(NaN) is %g", double(y));
  if (x <= -104) return checker.expect(bits_of(y) == 0, "exp(%a) is %a, not 0", double(x), double(y));
  if (x >= 89) return checker.expect(y == HUGE_VALF, "exp(%a) is %a, not infinite", double(x), double(y));
  const double exact = std::exp(double(x)), error = std::fabs(double(y) - exact);
  constexpr double kRelative = 2e-7;
  if (std::isinf(y))
    return checker.expect(exact > FLT_MAX * (1 - kRelative), "exp(%a) is infinite", double(x));
  // Below the normal numbers, half a step of the subnormal ones.
  const double allowed = kRelative * exact + (exact < 0x1p-126 * (1 + kRelative) ? 0x1p-150 : 0);
  checker.expect(error <= allowed, "exp(%a) is %a, off by %.3g of it", double(x), double(y), error / exact);
}

void exp_of_all(const TileReport& report) {
  Checker checker(report);
  sweep(report.all_floats ? 1 : 97, [&](const float* in) {
    float out[kWidth];
    store_whole(out, exp(load_whole<float>(in)));
    for (int k = 0; k < kWidth; ++k) check_exp(checker, in[k], out[k]);
    float below[kWidth];
    store_whole(below, exp_below(load_whole<float>(in)));
    for (int k = 0; k < kWidth; ++k)
      checker.expect(in[k] > 89 || bits_of(below[k]) == bits_of(out[k]) || out[k] != out[k],
                     "exp_below(%a) is %a, not %a", double(in[k]), double(below[k]), double(out[k]));
  });
  const float special[] = {0.f,           -0.f,      1.f,      -1.f,      HUGE_VALF, -HUGE_VALF,
                           std::nanf(""), 88.72283f, 88.7229f, -87.3366f, -88.f,     -103.97f,
                           -103.98f,      -104.1f,   FLT_MAX,  -FLT_MAX};
  for (const float x : special) {
    float out[kWidth];
    store_whole(out, exp(fill(x)));
    for (int k = 0; k < kWidth; ++k) check_exp(checker, x, out[k]);
    checker.expect(x != 0 || out[0] == 1, "exp(0) is %a", double(out[0]));
  }
}

template <class T>
void widen_all(const TileReport& report) {
  Checker checker(report);
  for (std::uint32_t code = 0; code < 65536; code += kWidth) {
    T in[kWidth];
    float out[kWidth];
    for (std::uint32_t k = 0; k < kWidth; ++k) in[k] = {static_cast<std::uint16_t>(code + k)};
    store_whole(out, load_whole<float>(in));
    for (int k = 0; k < kWidth; ++k) {
      const float expected = to_float(in[k]);
      checker.expect(expected != expected ? out[k] != out[k] : bits_of(out[k]) == bits_of(expected),
                     "code %#x widens to %a, not %a", in[k].bits, double(out[k]), double(expected));
    }
  }
}

template <class T>
void check_narrow(Checker& checker, const float* in) {
  T out[kWidth];
  const Tile<float> tile = load_whole<float>(in);
  store_whole(out, tile);
  float rounded[kWidth];
  store_whole(rounded, CpuTeam<float, Access::cached>(nullptr).round_to<T>(tile));
  for (int k = 0; k < kWidth; ++k) {
    const T expected = from_double<T>(double(in[k]));
    const bool right = in[k] != in[k] ? std::isnan(to_float(out[k])) : out[k].bits == expected.bits;
    checker.expect(right, "%a narrows to code %#x, not %#x", double(in[k]), out[k].bits, expected.bits);
    const float again = to_float(out[k]);
    checker.expect(again != again ? rounded[k] != rounded[k] : bits_of(rounded[k]) == bits_of(again),
                   "%a is rounded to %a, not %a", double(in[k]), double(rounded[k]), double(again));
  }
}

template <class T>
void narrow_all(const TileReport& report) {
  Checker checker(report);
  sweep(report.all_floats ? 1 : 997, [&](const float* in) { check_narrow<T>(checker, in); });
  // Each number of the format, the middle to the next (a tie) and the floats beside it, of both signs.
  float in[kWidth];
  int count = 0;
  const auto add = [&](float x) {
    in[count++] = x;
    if (count == kWidth) check_narrow<T>(checker, in), count = 0;
  };
  for (std::uint32_t code = 0; code < 65535; ++code) {
    const float here = to_float(T{static_cast<std::uint16_t>(code)}),
                next = to_float(T{static_cast<std::uint16_t>(code + 1)});
    if (here != here || next != next) continue;
    const float middle = std::isinf(next) ? here : here / 2 + next / 2;
    for (const float x :
         {here, middle, std::nextafter(middle, -HUGE_VALF), std::nextafter(middle, HUGE_VALF)})
      add(x);
  }
  const float tie = dtype_of<T> == DType::f16 ? 65520.f : 0x1.ffp127f;  // where infinity begins
  for (const float x : {tie, std::nextafter(tie, 0.f), -tie, -std::nextafter(tie, 0.f), FLT_MAX, -FLT_MAX,
                        HUGE_VALF, -HUGE_VALF, std::nanf(""), of_bits(0xffffffff), of_bits(0x7f800001),
                        of_bits(0xff800001), FLT_TRUE_MIN, -FLT_TRUE_MIN, 0.f, -0.f})
    add(x);
  while (count != 0) add(1);
}

void doubles(const TileReport& report) {
  Checker checker(report);
  constexpr int kDoubles = kLanes<double>;
  std::uint64_t state = 7;
  for (int trial = 0; trial < 200000; ++trial) {
    double in[kDoubles], again[kDoubles];
    float narrowed[kDoubles];
    int exponent = 0;
    for (double& x : in) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      // Any bits; floats and the ties between them; subnormal floats.
      x = std::bit_cast<double>(state);
      if (trial % 3 == 1)
        x = std::bit_cast<double>((state & 0xffffffffe0000000u) | (state & 1 ? 0x10000000u : 0u));
      if (trial % 3 >= 1) x = std::ldexp(std::frexp(x, &exponent), static_cast<int>(state >> 40) % 300 - 160);
    }
    store_whole(narrowed, load_whole<double>(in));
    store_whole(again, load_whole<double>(narrowed));
    for (int k = 0; k < kDoubles; ++k) {
      const float expected = static_cast<float>(in[k]);
      checker.expect(in[k] != in[k] ? narrowed[k] != narrowed[k] : bits_of(narrowed[k]) == bits_of(expected),
                     "%a narrows to %a, not %a", in[k], double(narrowed[k]), double(expected));
      checker.expect(in[k] != in[k] || again[k] == double(expected), "%a widens to %a", double(expected),
                     again[k]);
    }
  }
}

}  // namespace

extern const TileCheck tile_number_checks[] = {{"exp", exp_of_all},
                                               {"widen_f16", widen_all<f16>},
                                               {"widen_bf16", widen_all<bf16>},
                                               {"narrow_f16", narrow_all<f16>},
                                               {"narrow_bf16", narrow_all<bf16>},
                                               {"narrow_and_widen_f64", doubles},
                                               {}};
