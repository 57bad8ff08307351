#pragma once
// Group norm as the equations read, in any scalar.
#include "rooftile/ops/batch_norm/oracle.h"

namespace rooftile::harness {

/// A case's groups: element i of sample n's group g, i in 0 … M - 1, and its channel.
struct GroupCase : NormCase {
  std::int64_t groups, channels;
  explicit GroupCase(const Case& of)
      : NormCase(of), groups(static_cast<std::int64_t>(of.parameter("groups", 1))), channels(c / groups) {}
  std::int64_t size() const { return channels * s; }
  std::int64_t channel(std::int64_t group, std::int64_t i) const { return group * channels + i / s; }
  std::int64_t at(std::int64_t sample, std::int64_t group, std::int64_t i) const {
    return (sample * c + group * channels) * s + i;
  }
  NormSegments segments() const { return {1, s, false}; }  // of a plane
};

struct GroupNormOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const GroupCase sizes(c);
    const std::int64_t size = sizes.size();
    const double m = static_cast<double>(size);
    const Array<S>&x = a["x"], *weight = a.find("weight"), *bias = a.find("bias");
    for (std::int64_t set = 0; set < sizes.n * sizes.groups; ++set) {
      const std::int64_t n = set / sizes.groups, group = set % sizes.groups;
      const auto element = [&](std::int64_t i) { return x.load(sizes.at(n, group, i)); };
      S total(0), squares(0);
      for (std::int64_t i = 0; i < size; ++i) total += element(i);
      const S mean = total / S(m);
      for (std::int64_t i = 0; i < size; ++i) {
        const S off = element(i) - mean;
        squares += off * off;
      }
      const S rstd = S(1.0) / sqrt(squares / S(m) + S(c.parameter("eps", 1e-5f)));
      double distances = 0, spread = 0;
      for (std::int64_t k = 0; k < sizes.channels; ++k) {
        const NormTerms terms(sizes.segments(),
                              [&](std::int64_t i) { return to_double(element(k * sizes.s + i)); });
        distances += terms.distances / static_cast<double>(sizes.channels);
        spread += terms.squares / static_cast<double>(sizes.channels);
      }
      const double r = to_double(rstd), root = r * (1 + 1.5 * spread * r * r);
      if (a.has("mean")) a["mean"].store(set, mean, distances);
      if (a.has("rstd")) a["rstd"].store(set, rstd, root);
      for (std::int64_t i = 0; i < size; ++i) {
        const S off = element(i) - mean;
        S y = off * rstd;
        const double distance = std::fmax(std::fabs(to_double(off)), 0x1p-126);
        double magnitude = r * (2 * distance + distances) + distance * root;
        if (weight) {
          const S w = weight->load(sizes.channel(group, i));
          y = y * w, magnitude *= std::fabs(to_double(w));
        }
        if (bias) {
          const S b = bias->load(sizes.channel(group, i));
          y = y + b, magnitude += std::fabs(to_double(b));
        }
        a["y"].store(sizes.at(n, group, i), y, magnitude);
      }
    }
  }
};

/// With d = x - mean and g = dy · weight: dx = rstd · (g - Σ g / M - d · rstd² · Σ g·d / M).
struct GroupNormBackwardOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const GroupCase sizes(c);
    const std::int64_t size = sizes.size();
    const double m = static_cast<double>(size);
    const Array<S>&x = a["x"], &dy = a["dy"], *weight = a.find("weight");
    const auto width = static_cast<std::size_t>(sizes.c);
    std::vector<S> dweight(width, S(0)), dbias(width, S(0));
    std::vector<double> weight_terms(width), bias_terms(width);
    for (std::int64_t set = 0; set < sizes.n * sizes.groups; ++set) {
      const std::int64_t n = set / sizes.groups, group = set % sizes.groups;
      const S mean = a["mean"].load(set), rstd = a["rstd"].load(set);
      const double r = std::fabs(to_double(rstd));
      const auto gradient = [&](std::int64_t i) {
        const S its = dy.load(sizes.at(n, group, i));
        return weight ? its * weight->load(sizes.channel(group, i)) : its;
      };
      S sum(0), products(0);
      double terms = 0, product_terms = 0;
      for (std::int64_t i = 0; i < size; ++i) {
        const S g = gradient(i), off = x.load(sizes.at(n, group, i)) - mean, product = g * off;
        sum += g, products += product;
        terms += std::fabs(to_double(g)), product_terms += std::fabs(to_double(product));
        const auto k = static_cast<std::size_t>(sizes.channel(group, i));
        const S its = dy.load(sizes.at(n, group, i));
        if (a.has("dweight")) {
          const S term = its * off * rstd;
          dweight[k] += term, weight_terms[k] += std::fabs(to_double(term));
        }
        if (a.has("dbias")) dbias[k] += its, bias_terms[k] += std::fabs(to_double(its));
      }
      const S part = sum / S(m), slope = rstd * rstd * products / S(m);
      for (std::int64_t i = 0; i < size; ++i) {
        const S g = gradient(i), off = x.load(sizes.at(n, group, i)) - mean;
        const double magnitude =
            std::fabs(to_double(g)) + terms / m + 2 * std::fabs(to_double(off)) * r * r * product_terms / m;
        a["dx"].store(sizes.at(n, group, i), (g - part - off * slope) * rstd, r * magnitude);
      }
    }
    for (std::size_t k = 0; k < width; ++k) {
      const auto at = static_cast<std::int64_t>(k);
      if (a.has("dweight")) a["dweight"].store(at, dweight[k], 2 * weight_terms[k]);
      if (a.has("dbias")) a["dbias"].store(at, dbias[k], bias_terms[k]);
    }
  }
};

}  // namespace rooftile::harness
