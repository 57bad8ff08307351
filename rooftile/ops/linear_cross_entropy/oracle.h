#pragma once
// The logits as their equation reads, then cross_entropy's oracle on them, in any scalar. A logit is off by a
// few roundings of Σ|terms|, and what follows from it by as much as it depends on it.
#include "rooftile/ops/cross_entropy/oracle.h"

namespace rooftile::harness {

struct LinearCrossEntropySizes {
  std::int64_t channels, classes;
  Shape logits;  ///< {…, V}
  explicit LinearCrossEntropySizes(const Case& c)
      : channels(c.shape[c.shape.size() - 2]), classes(c.shape.back()), logits(c.shape) {
    logits.erase(logits.end() - 2);
  }
};

/// cross_entropy's case and operands, and of each logit Σ|terms|.
template <class S>
struct LinearCrossEntropyRows {
  LinearCrossEntropySizes sizes;
  Case inner;
  Arrays<S> arrays;
  std::vector<double> terms;

  LinearCrossEntropyRows(const Case& c, Arrays<S>& a) : sizes(c), inner(c) {
    inner.shape = sizes.logits;
    const Array<S>&hidden = a["hidden"], &weight = a["weight"];
    const Array<S>* bias = a.find("bias");
    // Below the smallest normal number a product's rounding is an absolute one.
    constexpr double kMin = 0x1p-126;
    std::vector<S> logits;
    for (std::int64_t row = 0; row < a["target"].size(); ++row)
      for (std::int64_t y = 0; y < sizes.classes; ++y) {
        S sum(0);
        double size = 0;
        for (std::int64_t d = 0; d < sizes.channels; ++d) {
          const S product = hidden.load(row * sizes.channels + d) * weight.load(y * sizes.channels + d);
          sum += product;
          size += std::fmax(std::fabs(to_double(product)), kMin);
        }
        if (bias) {
          sum += bias->load(y);
          size += std::fabs(to_double(bias->load(y)));
        }
        logits.push_back(sum);
        terms.push_back(size);
      }
    arrays["logits"] = Array<S>(std::move(logits));
    give(a, "target", "target");
    give(a, "class_weight", "weight");
  }
  /// An operand as cross_entropy's of another name.
  void give(Arrays<S>& a, const char* name, const char* its) {
    const Array<S>* from = a.find(name);
    if (!from) return;
    std::vector<S> values;
    for (std::int64_t i = 0; i < from->size(); ++i) values.push_back(from->load(i));
    arrays[its] = Array<S>(std::move(values));
  }
  std::int64_t rows() { return arrays["target"].size(); }
  /// -1: none, or ignored.
  std::int64_t class_of(std::int64_t row) {
    const double index = to_double(arrays["target"].values()[static_cast<std::size_t>(row)]);
    const bool counts = index >= 0 && index < static_cast<double>(sizes.classes) &&
                        index != static_cast<double>(CrossEntropyNumbers(inner).ignored);
    return counts ? static_cast<std::int64_t>(index) : -1;
  }
  double class_weight(std::int64_t y) {
    return arrays.has("weight") ? to_double(arrays["weight"].values()[static_cast<std::size_t>(y)]) : 1;
  }
  double logit(std::int64_t at) { return to_double(arrays["logits"].values()[static_cast<std::size_t>(at)]); }
};

struct LinearCrossEntropyOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    LinearCrossEntropyRows<S> r(c, a);
    const CrossEntropyNumbers n(c);
    const auto rows = static_cast<std::size_t>(r.rows());
    for (const char* name : {"losses", "lse"}) r.arrays[name] = Array<S>(std::vector<S>(rows));
    r.arrays["loss"] = Array<S>(std::vector<S>(1));
    CrossEntropyOracle::run(r.inner, r.arrays);

    double shift_of_loss = 0, divisor = 0;
    for (std::int64_t row = 0; row < r.rows(); ++row) {
      const std::int64_t at = row * r.sizes.classes, y = r.class_of(row);
      const S lse = r.arrays["lse"].values()[static_cast<std::size_t>(row)];
      const double of_lse = to_double(lse);
      double shift = 0, spread = 0;  // of lse; Σ w·terms
      for (std::int64_t k = 0; k < r.sizes.classes; ++k) {
        const double p = std::exp(r.logit(at + k) - of_lse),
                     terms = r.terms[static_cast<std::size_t>(at + k)];
        if (p > 0) shift += p * terms;
        spread += r.class_weight(k) * (shift_at(n, terms));
      }
      store(a, r, "lse", row, shift);
      double moved = 0;
      if (y >= 0) {
        const double its = (1 - n.smoothing) * r.class_weight(y);
        double weights = 0;
        for (std::int64_t k = 0; n.smoothing > 0 && k < r.sizes.classes; ++k) weights += r.class_weight(k);
        moved =
            its * (shift + r.terms[static_cast<std::size_t>(at + y)]) + 2 * n.z * std::fabs(of_lse) * shift;
        if (n.smoothing > 0)
          moved += n.smoothing / static_cast<double>(r.sizes.classes) * (weights * shift + spread);
        divisor += r.class_weight(y);
      }
      store(a, r, "losses", row, moved);
      shift_of_loss += moved;
    }
    store(a, r, "loss", 0, n.mean ? shift_of_loss / divisor : shift_of_loss);
  }

 private:
  static double shift_at(const CrossEntropyNumbers& n, double terms) { return n.smoothing > 0 ? terms : 0; }
  /// cross_entropy's answer and its magnitude, and what the logits' roundings do.
  template <class S>
  static void store(Arrays<S>& a, LinearCrossEntropyRows<S>& r, const char* name, std::int64_t i,
                    double shift) {
    Array<S>* to = a.find(name);
    const auto at = static_cast<std::size_t>(i);
    if (to) to->store(i, r.arrays[name].values()[at], r.arrays[name].magnitudes()[at] + shift);
  }
};

/// dhidden = dx·weight, dweight = dxᵀ·hidden, dbias = Σ dx. With 16 bits both products take dx rounded:
/// Σ|dx|·|weight| and Σ|dx|·|hidden| times its rounding (Tolerance::factor_rounding).
struct LinearCrossEntropyBackwardOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    LinearCrossEntropyRows<S> r(c, a);
    for (const char* name : {"lse", "dlosses", "dloss"}) r.give(a, name, name);
    const std::int64_t rows = r.rows(), classes = r.sizes.classes, channels = r.sizes.channels;
    r.arrays["dlogits"] = Array<S>(std::vector<S>(static_cast<std::size_t>(rows * classes)));
    CrossEntropyBackwardOracle::run(r.inner, r.arrays);
    const std::vector<S>& dx = r.arrays["dlogits"].values();
    const std::vector<double> off = errors_of_dx(r);
    // Below the one dx is rounded absolutely, above the other to infinity.
    const double least = c.dtype == DType::f16 ? 0x1p-14 : 0x1p-126,
                 most = c.dtype == DType::f16 ? 65504 : 0x1.fep127;

    const Array<S>&hidden = a["hidden"], &weight = a["weight"];
    Array<S>*dweight = a.find("dweight"), *dbias = a.find("dbias");
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t d = 0; d < channels; ++d) {
        Sum<S> sum;
        for (std::int64_t y = 0; y < classes; ++y)
          sum.add(dx, off, row * classes + y, weight.load(y * channels + d), least, most);
        a["dhidden"].store(row * channels + d, sum.value, sum.size, sum.factors);
      }
    for (std::int64_t y = 0; dweight && y < classes; ++y)
      for (std::int64_t d = 0; d < channels; ++d) {
        Sum<S> sum;
        for (std::int64_t row = 0; row < rows; ++row)
          sum.add(dx, off, row * classes + y, hidden.load(row * channels + d), least, most);
        dweight->store(y * channels + d, sum.value, sum.size, sum.factors);
      }
    for (std::int64_t y = 0; dbias && y < classes; ++y) {
      S sum(0);
      double size = 0;
      for (std::int64_t row = 0; row < rows; ++row) {
        const auto at = static_cast<std::size_t>(row * classes + y);
        sum += dx[at];
        size += std::fabs(to_double(dx[at])) + off[at];
      }
      dbias->store(y, sum, size);
    }
  }

 private:
  template <class S>
  struct Sum {
    S value = S(0);
    double size = 0, factors = 0;
    void add(const std::vector<S>& dx, const std::vector<double>& off, std::int64_t i, const S& by,
             double least, double most) {
      const auto at = static_cast<std::size_t>(i);
      value += dx[at] * by;
      const double its = std::fabs(to_double(dx[at])), factor = std::fabs(to_double(by));
      size += its + off[at] > most ? HUGE_VAL : std::fmax((its + off[at]) * factor, 0x1p-126);
      factors += std::fmax(its, least) * factor;
    }
  };
  /// cross_entropy's own magnitudes, and what the logits' roundings do: |g·(A + 2·z·lse)|·p·terms.
  template <class S>
  static std::vector<double> errors_of_dx(LinearCrossEntropyRows<S>& r) {
    const CrossEntropyNumbers n(r.inner);
    std::vector<double> off = r.arrays["dlogits"].magnitudes();
    const auto value = [&](const char* name, std::int64_t i) {
      return r.arrays.has(name) ? to_double(r.arrays[name].values()[static_cast<std::size_t>(i)]) : 0;
    };
    double divisor = 0, weights = 0;
    for (std::int64_t row = 0; row < r.rows(); ++row)
      if (const std::int64_t y = r.class_of(row); y >= 0) divisor += r.class_weight(y);
    for (std::int64_t y = 0; y < r.sizes.classes; ++y) weights += r.class_weight(y);
    const bool reduces = r.arrays.has("dloss") || !r.arrays.has("dlosses");
    const double dloss = r.arrays.has("dloss") ? value("dloss", 0) : 1,
                 shared = reduces ? (n.mean ? dloss / divisor : dloss) : 0;
    for (std::int64_t row = 0; row < r.rows(); ++row) {
      const std::int64_t y = r.class_of(row);
      if (y < 0) continue;
      const double lse = value("lse", row), g = shared + value("dlosses", row);
      const double all = (1 - n.smoothing) * r.class_weight(y) +
                         n.smoothing / static_cast<double>(r.sizes.classes) * weights + 2 * n.z * lse;
      for (std::int64_t k = 0; k < r.sizes.classes; ++k) {
        const auto at = static_cast<std::size_t>(row * r.sizes.classes + k);
        const double p = std::exp(std::fmin(r.logit(static_cast<std::int64_t>(at)) - lse, 0));
        if (p > 0) off[at] += std::fabs(g * all) * p * r.terms[at];
      }
    }
    return off;
  }
};

}  // namespace rooftile::harness
