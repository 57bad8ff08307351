#pragma once
// Batch norm as the equations read, in any scalar.
#include <limits>

#include "rooftile/harness/spec.h"
#include "rooftile/ops/batch_norm/batch_norm.problem.h"

namespace rooftile::harness {

/// A case's sizes, and where channel c has its element i of N·S.
struct NormCase {
  std::int64_t n, c, s;
  explicit NormCase(const Case& of) : n(of.shape[0]), c(of.shape[1]), s(of.shape[2]) {}
  std::int64_t size() const { return n * s; }
  std::int64_t at(std::int64_t channel, std::int64_t i) const { return (i / s * c + channel) * s + i % s; }
  NormSegments segments() const { return s == 1 ? NormSegments(1, n) : NormSegments(n, s); }
  double elements() const { return static_cast<double>(n * c * s); }
};

/// Σ |x - k| / M and Σ (x - k)² / M with k the first element of each segment: what a kernel's sums lose is a
/// multiple of these; and 2^-29 of Σ |x| / M, as f64 loses of sums that cancel.
struct NormTerms {
  double distances = 0, squares = 0;
  template <class Value>
  NormTerms(const NormSegments& segments, Value value) {
    double count = 0;
    for (std::int64_t k = 0; k < segments.count; ++k) {
      const NormSegment g = segments.at(k);
      const double shift = value(g.n_begin * segments.s + g.s_begin);
      for (std::int64_t n = g.n_begin; n < g.n_end; ++n)
        for (std::int64_t s = g.s_begin; s < g.s_end; ++s) {
          const double its = value(n * segments.s + s), off = std::fabs(its - shift);
          distances += off + std::fabs(its) * 0x1p-29, squares += off * off, ++count;
        }
    }
    if (count > 0) distances /= count, squares /= count;
  }
};

struct BatchNormOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const NormCase sizes(c);
    const std::int64_t size = sizes.size();
    const double m = static_cast<double>(size), momentum = c.parameter("momentum", 0.1f);
    const Array<S>&x = a["x"], *weight = a.find("weight"), *bias = a.find("bias");
    for (std::int64_t channel = 0; channel < sizes.c; ++channel) {
      const auto element = [&](std::int64_t i) { return x.load(sizes.at(channel, i)); };
      S total(0), squares(0);
      for (std::int64_t i = 0; i < size; ++i) total += element(i);
      const S mean = total / S(m);
      for (std::int64_t i = 0; i < size; ++i) {
        const S off = element(i) - mean;
        squares += off * off;
      }
      const S var = squares / S(m), rstd = S(1.0) / sqrt(var + S(c.parameter("eps", 1e-5f)));
      const NormTerms terms(sizes.segments(), [&](std::int64_t i) { return to_double(element(i)); });
      // The root halves the relative error of the variance, whose terms are squares of a difference.
      const double r = to_double(rstd), root = r * (1 + 1.5 * terms.squares * r * r);
      if (a.has("mean")) a["mean"].store(channel, mean, terms.distances);
      if (a.has("rstd")) a["rstd"].store(channel, rstd, root);
      for (std::int64_t i = 0; i < size; ++i) {
        const S off = element(i) - mean;
        S y = off * rstd;
        const double distance = std::fmax(std::fabs(to_double(off)), 0x1p-126);
        double magnitude = r * (2 * distance + terms.distances) + distance * root;
        if (weight) {
          y = y * weight->load(channel);
          magnitude *= std::fabs(to_double(weight->load(channel)));
        }
        if (bias) {
          y = y + bias->load(channel);
          magnitude += std::fabs(to_double(bias->load(channel)));
        }
        a["y"].store(sizes.at(channel, i), y, magnitude);
      }
      const auto update = [&](const char* name, const char* from, const S& now, double magnitude) {
        if (!a.has(name)) return;
        const S before = a[from].load(channel);
        a[name].store(channel, size > 0 ? S(1 - momentum) * before + S(momentum) * now : before,
                      momentum * magnitude);
      };
      update("new_running_mean", "running_mean", mean, terms.distances);
      if (a.has("new_running_var"))
        update("new_running_var", "running_var", squares / S(m - 1), 3 * terms.squares * m / (m - 1));
    }
  }
};

struct BatchNormInferenceOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const NormCase sizes(c);
    const Array<S>&x = a["x"], *weight = a.find("weight"), *bias = a.find("bias");
    for (std::int64_t channel = 0; channel < sizes.c; ++channel) {
      const S mean = a["running_mean"].load(channel), var = a["running_var"].load(channel);
      S scale = S(1.0) / sqrt(var + S(c.parameter("eps", 1e-5f)));
      if (weight) scale = scale * weight->load(channel);
      for (std::int64_t i = 0; i < sizes.size(); ++i) {
        S y = (x.load(sizes.at(channel, i)) - mean) * scale;
        double magnitude = 3 * std::fmax(std::fabs(to_double(y)), std::fabs(to_double(scale)) * 0x1p-126);
        if (bias) {
          y = y + bias->load(channel);
          magnitude += std::fabs(to_double(bias->load(channel)));
        }
        a["y"].store(sizes.at(channel, i), y, magnitude);
      }
    }
  }
};

/// With d = x - mean: dbias = Σ dy, dweight = rstd · Σ dy·d, and
/// dx = rstd · weight · (dy - Σ dy / M - d · rstd² · Σ dy·d / M).
struct BatchNormBackwardOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const NormCase sizes(c);
    const std::int64_t size = sizes.size();
    const double m = static_cast<double>(size);
    const Array<S>&x = a["x"], &dy = a["dy"], *weight = a.find("weight");
    for (std::int64_t channel = 0; channel < sizes.c; ++channel) {
      const S mean = a["mean"].load(channel), rstd = a["rstd"].load(channel);
      S sum(0), products(0);
      double terms = 0, product_terms = 0;
      for (std::int64_t i = 0; i < size; ++i) {
        const std::int64_t at = sizes.at(channel, i);
        const S product = dy.load(at) * (x.load(at) - mean);
        sum += dy.load(at), products += product;
        terms += std::fabs(to_double(dy.load(at))), product_terms += std::fabs(to_double(product));
      }
      const S part = sum / S(m), slope = rstd * rstd * products / S(m);
      S scale = rstd;
      if (weight) scale = scale * weight->load(channel);
      const double r = std::fabs(to_double(rstd));
      for (std::int64_t i = 0; i < size; ++i) {
        const std::int64_t at = sizes.at(channel, i);
        const S off = x.load(at) - mean;
        const double magnitude = std::fabs(to_double(dy.load(at))) + terms / m +
                                 2 * std::fabs(to_double(off)) * r * r * product_terms / m;
        a["dx"].store(at, (dy.load(at) - part - off * slope) * scale,
                      std::fabs(to_double(scale)) * magnitude);
      }
      if (a.has("dweight")) a["dweight"].store(channel, products * rstd, 2 * r * product_terms);
      if (a.has("dbias")) a["dbias"].store(channel, sum, terms);
    }
  }
};

}  // namespace rooftile::harness
