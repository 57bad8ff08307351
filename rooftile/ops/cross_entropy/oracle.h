#pragma once
// Cross entropy as its equation reads, in any scalar.
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

/// The options as the kernels have them.
struct CrossEntropyNumbers {
  double smoothing, z;
  std::int64_t ignored;
  bool mean;
  explicit CrossEntropyNumbers(const Case& c)
      : smoothing(static_cast<float>(c.parameter("label_smoothing"))),
        z(static_cast<float>(c.parameter("z_loss"))),
        ignored(static_cast<std::int64_t>(c.parameter("ignore_index", -100))),
        mean(c.parameter("reduction") == 0) {}
};

/// What all rows share: the weights, Σ w and Σ |w|.
template <class S>
struct CrossEntropyWeights {
  std::int64_t classes;
  Array<S>* given;
  S sum;
  double size = 0;
  CrossEntropyWeights(const Case& c, Arrays<S>& a)
      : classes(c.shape.back()), given(a.find("weight")), sum(given ? 0. : static_cast<double>(classes)) {
    if (!given) size = static_cast<double>(classes);
    for (std::int64_t i = 0; given && i < classes; ++i) {
      sum += given->load(i);
      size += std::fabs(to_double(given->load(i)));
    }
  }
  S of(std::int64_t i) const { return given ? given->load(i) : S(1); }
};

/// lse = log Σ exp(x_c); l = (1 - ε)·w_y·(lse - x_y) + ε/C · Σ w_c·(lse - x_c) + z·lse²; loss = Σ l / Σ w_y,
/// or Σ l.
struct CrossEntropyOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const CrossEntropyNumbers n(c);
    const CrossEntropyWeights<S> weight(c, a);
    const Array<S>&x = a["logits"], &target = a["target"];
    Array<S>*losses = a.find("losses"), *lses = a.find("lse");
    S total(0), divisor(0);
    double total_size = 0;
    for (std::int64_t row = 0; row < target.size(); ++row) {
      const std::int64_t at = row * weight.classes;
      S most(-HUGE_VAL), sum(0), logits(0);
      double logits_size = 0;
      for (std::int64_t i = 0; i < weight.classes; ++i) most = max(most, x.load(at + i));
      const bool any = to_double(most) != -HUGE_VAL;  // -inf throughout: exponentials from 0
      for (std::int64_t i = 0; i < weight.classes; ++i) {
        sum += exp(any ? x.load(at + i) - most : x.load(at + i));
        if (n.smoothing == 0) continue;
        const S term = weight.given ? weight.of(i) * x.load(at + i) : x.load(at + i);
        logits += term;
        logits_size += std::fabs(to_double(term));
      }
      const S log_sum = log(sum), lse = any ? most + log_sum : log_sum;
      const double lse_size = 1 + std::fabs(to_double(most)) + std::fabs(to_double(log_sum));
      if (lses) lses->store(row, lse, lse_size);

      const double index = to_double(target.load(row));
      if (index == static_cast<double>(n.ignored)) {
        if (losses) losses->store(row, S(0));
        continue;
      }
      S its(HUGE_VAL - HUGE_VAL);
      double size = 0;
      if (index >= 0 && index < static_cast<double>(weight.classes)) {
        const auto y = static_cast<std::int64_t>(index);
        const S apart = most - x.load(at + y) + log_sum, factor = S(1 - n.smoothing) * weight.of(y);
        its = factor * apart;
        size = std::fabs(to_double(factor)) *
               (1 + std::fabs(to_double(most - x.load(at + y))) + std::fabs(to_double(log_sum)));
        if (n.smoothing > 0) {
          const S spread(n.smoothing / static_cast<double>(weight.classes));
          its += spread * (weight.sum * lse - logits);
          size += to_double(spread) * (weight.size * lse_size + logits_size);
        }
        if (n.z > 0) {
          its += S(n.z) * lse * lse;
          size += 2 * n.z * std::fabs(to_double(lse)) * lse_size;
        }
        divisor += weight.of(y);
      }
      if (losses) losses->store(row, its, size);
      // What is added up are losses as f32.
      constexpr double kMost = 0x1.ffffffp127;
      if (const double value = to_double(its); std::fabs(value) >= kMost)
        its = S(std::copysign(HUGE_VAL, value));
      total += its;
      total_size += size + 0x1p-125;  // one below the normal numbers is rounded by 2^-150
    }
    if (n.mean)
      a["loss"].store(0, total / divisor, total_size / std::fabs(to_double(divisor)));
    else
      a["loss"].store(0, total, total_size);
  }
};

/// dx_c = g·((A + 2·z·lse)·p_c - [c = y]·(1 - ε)·w_y - ε/C·w_c), A = (1 - ε)·w_y + ε/C·Σ w, p = exp(x - lse).
struct CrossEntropyBackwardOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const CrossEntropyNumbers n(c);
    const CrossEntropyWeights<S> weight(c, a);
    const Array<S>&x = a["logits"], &target = a["target"], &lses = a["lse"];
    Array<S>* dlosses = a.find("dlosses");
    Array<S>& dx = a["dlogits"];
    const auto class_of = [&](std::int64_t row) {
      const double index = to_double(target.load(row));
      return index >= 0 && index < static_cast<double>(weight.classes) ? static_cast<std::int64_t>(index)
                                                                       : -1;
    };
    const auto ignored = [&](std::int64_t row) {
      return to_double(target.load(row)) == static_cast<double>(n.ignored);
    };
    S shared(0);
    if (Array<S>* dloss = a.find("dloss"); dloss || !dlosses) {
      shared = dloss ? dloss->load(0) : S(1);
      S divisor(0);
      for (std::int64_t row = 0; n.mean && row < target.size(); ++row)
        if (const std::int64_t y = class_of(row); y >= 0 && !ignored(row)) divisor += weight.of(y);
      if (n.mean) shared = shared / divisor;
    }
    const S spread(n.smoothing / static_cast<double>(weight.classes));
    constexpr double kMin = 0x1p-102;  // exponentials below 2^-126 may be 0; in ulps
    for (std::int64_t row = 0; row < target.size(); ++row) {
      const std::int64_t at = row * weight.classes, y = class_of(row);
      const S lse = lses.load(row), g = dlosses ? shared + dlosses->load(row) : shared;
      const S hit = S(1 - n.smoothing) * (y >= 0 ? weight.of(y) : S(HUGE_VAL - HUGE_VAL));
      const S all = hit + spread * weight.sum + S(2 * n.z) * lse;
      const double all_size =
          std::fabs(to_double(hit)) + to_double(spread) * weight.size + std::fabs(2 * n.z * to_double(lse));
      for (std::int64_t i = 0; i < weight.classes; ++i) {
        S apart = x.load(at + i) - lse;
        if (to_double(apart) > 0) apart = S(0);
        const S p = exp(apart);
        const double distance = to_double(p) > 0 ? 1 + std::fabs(to_double(apart)) : 0;
        S value = all * p;
        if (n.smoothing > 0) value = value - spread * weight.of(i);
        if (i == y) value = value - hit;
        const double size = all_size * (kMin + to_double(p) * distance) +
                            to_double(spread) * std::fabs(to_double(weight.of(i))) +
                            (i == y ? std::fabs(to_double(hit)) : 0);
        const S scaled = g * value;
        if (ignored(row))
          dx.store(at + i, S(0));
        else
          dx.store(at + i, scaled, std::fabs(to_double(g)) * size);
      }
    }
  }
};

}  // namespace rooftile::harness
