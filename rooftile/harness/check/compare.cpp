#include "rooftile/harness/check/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace rooftile::harness {

double smallest_normal(DType type) {
  return std::ldexp(smallest_subnormal(type), significand_bits(type) - 1);
}

namespace {

double unit_roundoff(DType type) { return is_floating(type) ? std::ldexp(1, -significand_bits(type)) : 0; }

/// From here on a number rounds to infinity.
double overflow_from(DType type) {
  switch (type) {
    case DType::f32:
      return 0x1.ffffffp127;
    case DType::tf32:
      return 0x1.ffep127;
    case DType::bf16:
      return 0x1.ffp127;
    case DType::f16:
      return 65520;
    case DType::f8e4m3:
      return 464;
    case DType::f8e5m2:
      return 61440;
    default:
      return HUGE_VAL;
  }
}

template <std::size_t kWidth>
std::uint64_t code_at(const Bytes& bytes, std::size_t i) {
  std::uint64_t code = 0;
  std::memcpy(&code, bytes.data() + i * kWidth, kWidth);
  return code;
}

/// Bits as an integer that grows with the number: neighbours differ by 1.
std::int64_t ordered(std::uint64_t bits_of_it, DType type) {
  const int shift = 64 - bits(type);
  const std::int64_t code = static_cast<std::int64_t>(bits_of_it) << shift >> shift;
  if (!is_floating(type)) return code;
  const std::int64_t magnitude = static_cast<std::int64_t>((std::uint64_t{1} << (bits(type) - 1)) - 1);
  return code >= 0 ? code : -(code & magnitude);
}

/// Of f64 they may be 2^64 apart, less two steps.
std::uint64_t steps_between(std::int64_t a, std::int64_t b) {
  const auto from = static_cast<std::uint64_t>(std::min(a, b)),
             to = static_cast<std::uint64_t>(std::max(a, b));
  return to - from;
}

std::size_t bin_of(std::uint64_t ulps) {
  std::size_t bin = 0;
  for (std::uint64_t edge = 1; ulps > 0 && bin + 1 < kUlpBins; edge *= 2) {
    ++bin;
    if (ulps <= edge) break;
  }
  return bin;
}

/// Whether at least half of 256 elements, taken evenly, differ from each other: few values, few independent
/// errors.
bool varied(const std::vector<double>& values) {
  constexpr std::size_t kSamples = 256;
  if (values.size() < kSamples) return false;
  std::vector<double> sample;
  for (std::size_t i = 0; i < kSamples; ++i) {
    const double v = values[i * (values.size() - 1) / (kSamples - 1)];
    if (std::isfinite(v)) sample.push_back(v);
  }
  std::sort(sample.begin(), sample.end());
  return std::unique(sample.begin(), sample.end()) - sample.begin() >= std::ptrdiff_t{kSamples / 2};
}

}  // namespace

Limits limits_of(const Spec& spec, const Case& c, std::string_view variant, bool alike) {
  const Tolerance& t = spec.tolerance;
  if (t.exact) return {true};
  const DType accumulator = t.accumulator ? t.accumulator(c) : DType::f32;
  const double stated = t.chain ? t.chain(c, variant) : 1, chain = stated > 1 ? stated : 1;
  return {false, t.c * (alike ? chain : std::sqrt(chain)) * unit_roundoff(accumulator),
          smallest_normal(accumulator), overflow_from(accumulator),
          t.factor_rounding ? t.factor_rounding(c, variant) : 0};
}

std::int64_t first_difference(DType type, const std::byte* a, const std::byte* b, std::size_t bytes) {
  if (bytes == 0 || std::memcmp(a, b, bytes) == 0) return -1;
  const std::size_t width = width_of(type);
  for (std::size_t at = 0; at + width <= bytes; at += width) {
    if (std::memcmp(a + at, b + at, width) == 0) continue;
    double x = 0, y = 0;
    if (is_floating(type)) {
      decode(type, a + at, 1, &x);
      decode(type, b + at, 1, &y);
    }
    if (!(std::isnan(x) && std::isnan(y))) return static_cast<std::int64_t>(at / width);
  }
  return -1;
}

std::string value_text(double value) { return std::isnan(value) ? "nan" : fmt::format("{:.9g}", value); }

std::string element_name(const Operand& operand, std::int64_t index) {
  std::string text;
  for (std::size_t d = operand.shape.size(); d-- > 0;) {
    text = fmt::format("{}{}{}", index % operand.shape[d], text.empty() ? "" : ", ", text);
    index /= operand.shape[d];
  }
  return text.empty() ? operand.name : fmt::format("{}[{}]", operand.name, text);
}

namespace {

template <std::size_t kWidth>
Comparison compare_elements(const Limits& limits, const Operand& output, const Answer& answer,
                            const Bytes& got_bytes) {
  Comparison result;
  const DType type = output.dtype;
  const std::vector<double> got = decode(type, got_bytes);
  const double u = unit_roundoff(type), overflow = overflow_from(type);
  const double half_step = std::max(smallest_subnormal(type) / 2, 0x1p-1074);  // f64's half is no double
  const double normal = is_floating(type) ? smallest_normal(type) : 0;
  const std::vector<double> nearest = decode(type, answer.rounded);
  double rounding = 0;  // Σ of squared shares of the right answer, rounded to the output alone
  // An element of all ones is a NaN that no arithmetic gives: what the memory held before the call. Of whole
  // numbers one of 4 bytes or more is as unlikely to be what it held; one of fewer is not.
  constexpr std::uint64_t kAllBytes = ~std::uint64_t{0} >> (64 - 8 * kWidth);
  const std::uint64_t unwritten = kAllBytes / 0xFF * std::to_integer<std::uint64_t>(poison(type));

  const auto fail = [&](std::size_t i, const std::string& how) {
    if (!result.failure.empty()) return;
    const bool untouched = (is_floating(type) || kWidth >= 4) && code_at<kWidth>(got_bytes, i) == unwritten;
    result.failure = fmt::format("{}: expected {}, {}{}", element_name(output, static_cast<std::int64_t>(i)),
                                 value_text(answer.value[i]),
                                 untouched ? "was never written" : "got " + value_text(got[i]), how);
    result.wrong = static_cast<std::int64_t>(i);
    result.worst = HUGE_VAL;
  };

  for (std::size_t i = 0; i < got.size(); ++i) {
    const double expected = answer.value[i], rest = answer.rest.empty() ? 0 : answer.rest[i], g = got[i];
    const std::uint64_t here = code_at<kWidth>(got_bytes, i), there = code_at<kWidth>(answer.rounded, i);
    if (is_floating(type) && here == unwritten && std::isnan(g)) {
      fail(i, "");
      continue;
    }
    if (std::isnan(expected) && is_floating(type)) {
      if (!std::isnan(g)) fail(i, "");
      continue;
    }
    if (limits.exact) {
      if (here != there)
        fail(i, ", every bit must match");
      else
        ++result.ulps[0];
      continue;
    }
    if (!std::isfinite(g) && std::fabs(answer.magnitude[i]) >= limits.overflow) continue;
    if (std::isnan(g) || (std::isinf(expected) && g != expected)) {
      fail(i, "");
      continue;
    }
    if (std::isinf(expected)) continue;
    const double magnitude = std::isfinite(answer.magnitude[i]) ? std::fabs(answer.magnitude[i]) : 0;
    const double tolerance = std::max(u * std::fabs(expected), half_step) +
                             limits.per_magnitude * std::max(magnitude, limits.least_magnitude) +
                             (answer.factors.empty() ? 0 : limits.per_factor * answer.factors[i]);
    // An infinity stands for all that rounds to it, from `overflow` on at its side of 0.
    const double error = std::isinf(g) ? std::max(0.0, overflow - std::copysign(1.0, g) * expected)
                                       : std::fabs(g - expected - rest);
    const double share = error / tolerance;
    // The last bits of `expected` and of the division are double's own.
    if (!(share <= 1 + 1e-9)) fail(i, fmt::format(", tolerance {:.3g}", tolerance));
    result.worst = std::max(result.worst, share);
    if (std::fabs(expected) >= normal && !std::isinf(g)) {
      result.squares += share * share;
      const double least = (nearest[i] - expected - rest) / tolerance;
      rounding += least * least;
      ++result.count;
    }
    ++result.ulps[here == there ? 0 : bin_of(steps_between(ordered(here, type), ordered(there, type)))];
  }

  result.gated = !limits.exact && result.count >= 256 && varied(answer.value);
  const auto root_mean = [&](double squares) {
    return result.count ? std::sqrt(squares / static_cast<double>(result.count)) : 0;
  };
  const double rms = root_mean(result.squares),
               most = std::max(kMaxRms, kMaxOfRounding * root_mean(rounding));
  if (result.failure.empty() && result.gated && rms > most)
    result.failure =
        fmt::format("{}: root mean square of error / tolerance is {:.3f} over {} elements, at most {:.3f}",
                    output.name, rms, result.count, most);
  return result;
}

}  // namespace

Comparison compare(const Limits& limits, const Operand& output, const Answer& answer,
                   const Bytes& got_bytes) {
  switch (width_of(output.dtype)) {
    case 1:
      return compare_elements<1>(limits, output, answer, got_bytes);
    case 2:
      return compare_elements<2>(limits, output, answer, got_bytes);
    case 4:
      return compare_elements<4>(limits, output, answer, got_bytes);
    default:
      return compare_elements<8>(limits, output, answer, got_bytes);
  }
}

}  // namespace rooftile::harness
