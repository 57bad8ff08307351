#pragma once
// Groups of 4-bit codes as their definition reads. Every operation is one of f32, whatever the scalar that
// values are kept in.
#include <algorithm>
#include <cmath>

#include "rooftile/core/convert.h"
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

inline std::int64_t int4_group(const Case& c) { return static_cast<std::int64_t>(c.parameter("group", 128)); }

/// As the dtype of a case's letter has it: "S", the scales', 0 f32, 1 f16, 2 bf16.
inline float int4_as(double x, int type) {
  return type == 1   ? to_float(from_double<f16>(x))
         : type == 2 ? to_float(from_double<bf16>(x))
                     : static_cast<float>(x);
}

struct QuantizeInt4Oracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t k = c.shape.back(), group = int4_group(c), groups = (k + group - 1) / group;
    const Array<S>& x = a["x"];
    Array<S>* const zeros = a.find("zeros");
    const auto clamp = [](float v) { return std::fmin(std::fmax(v, 0.0f), 15.0f); };
    for (std::int64_t at = 0; at < a["scales"].size(); ++at) {
      const std::int64_t begin = at / groups * k + at % groups * group,
                         end = std::min(begin + group, (at / groups + 1) * k);
      const auto value = [&](std::int64_t i) { return static_cast<float>(to_double(x.load(i))); };
      float low = 0, high = 0;
      bool finite = true;
      for (std::int64_t i = begin; i < end; ++i) {
        low = std::fmin(low, value(i));
        high = std::fmax(high, value(i));
        finite = finite && std::isfinite(value(i));
      }
      const float exact = !finite ? std::nanf("") : zeros ? (high - low) / 15 : std::fmax(-low, high) / 7;
      const float scale = int4_as(double(exact), int(c.parameter("S")));
      a["scales"].store(at, S(double(scale)));
      const auto rounded = [&](float v) {
        const float its = v / scale;
        return std::isnan(its) ? 0 : std::nearbyint(its);
      };
      const float zero = zeros ? clamp(rounded(-low)) : 8;
      if (zeros) zeros->store(at, S(double(zero)));
      const auto code = [&](std::int64_t i) { return i < end ? clamp(rounded(value(i)) + zero) : 0; };
      const std::int64_t bytes = (k + 1) / 2, first = at / groups * bytes + at % groups * group / 2;
      for (std::int64_t i = begin; i < end; i += 2)
        a["packed"].store(first + (i - begin) / 2, S(double(code(i) + 16 * code(i + 1))));
    }
  }
};

/// Element k of row `row`, in f32.
template <class S>
float int4_weight(const Case& c, Arrays<S>& a, std::int64_t row, std::int64_t k, std::int64_t columns) {
  const std::int64_t group = int4_group(c), at = row * ((columns + group - 1) / group) + k / group;
  const int byte = static_cast<int>(to_double(a["packed"].load(row * ((columns + 1) / 2) + k / 2)));
  const Array<S>* const zeros = a.find("zeros");
  const auto zero = zeros ? static_cast<float>(to_double(zeros->load(at))) : 8;
  const auto scale = static_cast<float>(to_double(a["scales"].load(at)));
  return (static_cast<float>(k % 2 ? byte >> 4 : byte & 15) - zero) * scale;
}

struct DequantizeInt4Oracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    Array<S>& y = a["y"];
    const std::int64_t k = c.shape.back();
    for (std::int64_t i = 0; i < y.size(); ++i) y.store(i, S(double(int4_weight(c, a, i / k, i % k, k))));
  }
};

/// y[…, i, j] = Σ_p x[…, i, p]·w[j, p] + bias[j], w as dequantize_int4 has it in x's dtype.
struct GemmInt4Oracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::size_t rank = c.shape.size();
    const std::int64_t k = c.shape[rank - 2], n = c.shape[rank - 1];
    const Array<S>* const bias = a.find("bias");
    Array<S>&x = a["x"], &y = a["y"];
    const int type = c.dtype == DType::f16 ? 1 : c.dtype == DType::bf16 ? 2 : 0;
    std::vector<S> w;
    for (std::int64_t at = 0; at < n * k; ++at)
      w.push_back(S(int4_as(double(int4_weight(c, a, at / k, at % k, k)), type)));
    for (std::int64_t at = 0; at < y.size(); ++at) {
      const std::int64_t i = at / n, j = at % n;
      S sum(0);
      double terms = 0;
      for (std::int64_t p = 0; p < k; ++p) {
        const S product = x.load(i * k + p) * w[static_cast<std::size_t>(j * k + p)];
        sum += product;
        // Below the smallest normal number a product's rounding is an absolute one.
        terms += std::fmax(std::fabs(to_double(product)), 0x1p-126);
      }
      if (bias) {
        sum = sum + bias->load(j);
        terms += std::fabs(to_double(bias->load(j)));
      }
      y.store(at, sum, terms);
    }
  }
};

}  // namespace rooftile::harness
