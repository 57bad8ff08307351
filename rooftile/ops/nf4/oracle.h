#pragma once
// NF4 as its definition reads. Every operation is one of f32, whatever the scalar that values are kept in.
#include "rooftile/core/convert.h"
#include "rooftile/harness/spec.h"
#include "rooftile/ops/nf4/nf4.problem.h"
#include "rooftile/ops/nf4/nf4.scales.h"

namespace rooftile::harness {

inline std::int64_t nf4_block(const Case& c) { return static_cast<std::int64_t>(c.parameter("block", 64)); }
inline std::int64_t nf4_first(const Case& c) { return static_cast<std::int64_t>(c.parameter("first")); }

struct QuantizeNf4Oracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const Array<S>& x = a["x"];
    const std::int64_t n = x.size(), block = nf4_block(c);
    const auto value = [&](std::int64_t i) { return static_cast<float>(to_double(x.load(i))); };
    for (std::int64_t begin = 0; begin < n; begin += block) {
      const std::int64_t end = std::min(n, begin + block);
      float most = 0;
      for (std::int64_t i = begin; i < end; ++i) most = std::fmax(most, std::fabs(value(i)));
      a["absmax"].store(begin / block, S(static_cast<double>(most)));
      const float each_one = 1 / most;
      const auto code = [&](std::int64_t i) {
        if (i >= end) return 7;  // the level 0
        const float scaled = value(i) * each_one;
        int nearest = 0;
        while (nearest < 15 && scaled > kNf4Thresholds[nearest]) ++nearest;
        return nearest;
      };
      for (std::int64_t i = begin; i < end; i += 2)
        a["packed"].store(i / 2, S(double(code(i) * 16 + code(i + 1))));
    }
  }
};

struct DequantizeNf4Oracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    Array<S>& y = a["y"];
    const std::int64_t block = nf4_block(c), first = nf4_first(c);
    for (std::int64_t i = 0; i < y.size(); ++i) {
      const std::int64_t at = first + i;
      const int byte = static_cast<int>(to_double(a["packed"].load(at / 2)));
      const float scale = static_cast<float>(to_double(a["absmax"].load(at / block)));
      y.store(i, S(double(kNf4Levels[at % 2 ? byte & 15 : byte >> 4] * scale)));
    }
  }
};

/// y[…, i, j] = Σ_p x[…, i, p]·w[j, p] + bias[j], w as dequantize_nf4 has it in x's dtype.
struct GemmNf4Oracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::size_t rank = c.shape.size();
    const std::int64_t k = c.shape[rank - 2], n = c.shape[rank - 1], block = nf4_block(c);
    const Array<S>* const bias = a.find("bias");
    Array<S>&x = a["x"], &y = a["y"];
    std::vector<S> w;
    for (std::int64_t at = 0; at < n * k; ++at) {
      const int byte = static_cast<int>(to_double(a["packed"].load(at / 2)));
      const float scale = static_cast<float>(to_double(a["absmax"].load(at / block)));
      const float weight = kNf4Levels[at % 2 ? byte & 15 : byte >> 4] * scale;
      w.push_back(S(c.dtype == DType::f16    ? to_float(from_double<f16>(double(weight)))
                    : c.dtype == DType::bf16 ? to_float(from_double<bf16>(double(weight)))
                                             : weight));
    }
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

struct QuantizeScalesOracle {
  template <class S>
  static void run(const Case&, Arrays<S>& a) {
    const Array<S>& scales = a["scales"];
    const float offset = static_cast<float>(to_double(a["offset"].load(0)));
    for (std::int64_t begin = 0; begin < scales.size(); begin += kScaleBlock) {
      const std::int64_t end = std::min(scales.size(), begin + kScaleBlock);
      const auto above = [&](std::int64_t i) {
        return static_cast<float>(to_double(scales.load(i))) - offset;
      };
      float most = 0;
      for (std::int64_t i = begin; i < end; ++i) most = std::fmax(most, std::fabs(above(i)));
      a["absmax"].store(begin / kScaleBlock, S(static_cast<double>(most)));
      for (std::int64_t i = begin; i < end; ++i)
        a["codes"].store(i, S(double(nf4_scale_code(kNf4ScaleMap.at, above(i) * (1 / most)))));
    }
  }
};

struct DequantizeScalesOracle {
  template <class S>
  static void run(const Case&, Arrays<S>& a) {
    Array<S>& scales = a["scales"];
    const float offset = static_cast<float>(to_double(a["offset"].load(0)));
    for (std::int64_t i = 0; i < scales.size(); ++i) {
      const float absmax = static_cast<float>(to_double(a["absmax"].load(i / kScaleBlock)));
      const float number = kNf4ScaleMap.at[static_cast<int>(to_double(a["codes"].load(i)))];
      const float product = number * absmax;
      scales.store(i, S(static_cast<double>(product + offset)));
    }
  }
};

}  // namespace rooftile::harness
