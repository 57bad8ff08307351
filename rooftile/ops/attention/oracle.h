#pragma once
// Attention as the equations read, in any scalar: the oracle.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "rooftile/core/philox.h"
#include "rooftile/harness/spec.h"
#include "rooftile/harness/tensor.h"

namespace rooftile::harness {

/// A case's sizes and options; of cut ones those of one sequence, which are rows from q_first and k_first on.
struct AttentionCase {
  std::int64_t b, s, h, d, t, g, e, left, right;
  std::int64_t q_rows, k_rows, q_first = 0, k_first = 0;  ///< rows of a batch
  double scale, cap, dropout;
  double least_weight;    ///< of a row's largest: below it the data's dtype has fewer digits for weights
  double least_gradient;  ///< the same of their gradients, on their own
  double exponent;        ///< to 2, of what tensor cores take for a weight of 1
  const char *keys_name = "k", *values_name = "v";
  std::optional<double> value_scale;  ///< what a weighted mean of values is multiplied with

  explicit AttentionCase(const Case& c)
      : b(c.shape[0]),
        s(c.shape[1]),
        h(c.shape[2]),
        d(c.shape[3]),
        t(c.shape[4]),
        g(c.shape[5]),
        e(c.shape[6]),
        q_rows(s),
        k_rows(t) {
    left = static_cast<std::int64_t>(c.parameter("window_left", -1));
    right = c.parameter("causal") != 0 ? 0 : static_cast<std::int64_t>(c.parameter("window_right", -1));
    scale = c.parameter("scale");
    scale =
        static_cast<double>(static_cast<float>(scale == 0 ? 1 / std::sqrt(static_cast<double>(d)) : scale));
    cap = static_cast<double>(static_cast<float>(c.parameter("softcap")));
    dropout = c.parameter("dropout");
    least_weight = c.dtype == DType::f16 ? 0x1p-21 : 0x1p-126;
    least_gradient = c.dtype == DType::f16 ? 0x1p-38 : 0x1p-126;
    exponent = c.dtype == DType::f16 ? 7 : 0;
  }
  bool sees(std::int64_t i, std::int64_t j) const {
    const std::int64_t own = i + t - s;
    return (left < 0 || j >= own - left) && (right < 0 || j <= own + right);
  }
  /// Of query i the first key and that past the last; none: equal.
  std::pair<std::int64_t, std::int64_t> keys(std::int64_t i) const {
    const std::int64_t own = i + t - s, first = left < 0 ? 0 : std::max<std::int64_t>(0, own - left),
                       end = right < 0 ? t : std::min(t, own + right + 1);
    return {first, std::max(first, end)};
  }
  double pairs() const {
    double n = 0;
    for (std::int64_t i = 0; i < s; ++i) n += static_cast<double>(keys(i).second - keys(i).first);
    return n * static_cast<double>(b * h);
  }
  /// Of one head: queries that see a key, and keys that are seen.
  double seeing() const {
    double n = 0;
    for (std::int64_t i = 0; i < s; ++i) n += keys(i).second > keys(i).first;
    return n;
  }
  double seen() const {
    std::int64_t n = 0, from = 0;
    for (std::int64_t i = 0; i < s; ++i) {
      const auto [first, end] = keys(i);
      if (end > std::max(first, from)) n += end - std::max(first, from), from = end;
    }
    return static_cast<double>(n);
  }
  // Where elements begin.
  std::int64_t query(std::int64_t n, std::int64_t i, std::int64_t head) const {
    return (n * q_rows + q_first + i) * h + head;
  }
  std::int64_t key(std::int64_t n, std::int64_t j, std::int64_t head) const {
    return (n * k_rows + k_first + j) * g + key_head(head);
  }
  std::int64_t key_head(std::int64_t head) const {
    return std::min(head / std::max<std::int64_t>(h / g, 1), g - 1);
  }
  std::int64_t row(std::int64_t n, std::int64_t i, std::int64_t head) const {
    return (n * h + head) * q_rows + q_first + i;
  }

  /// Of a case that is cut, each sequence, by where they begin; rows before and after all of them are two
  /// more, without pairs.
  std::vector<AttentionCase> cut(const std::vector<double>& cu_q, const std::vector<double>& cu_k) const {
    const auto at = [](const std::vector<double>& cu, std::size_t m, std::int64_t rows) {
      if (m == 0) return std::int64_t{0};
      return m > cu.size() ? rows : std::clamp(static_cast<std::int64_t>(cu[m - 1]), std::int64_t{0}, rows);
    };
    std::vector<AttentionCase> all;
    for (std::size_t m = 0; m <= cu_q.size(); ++m) {
      const bool pairs = m > 0 && m < cu_q.size();
      AttentionCase its = *this;
      its.q_first = at(cu_q, m, q_rows), its.k_first = at(cu_k, m, k_rows);
      its.s = std::max<std::int64_t>(at(cu_q, m + 1, q_rows) - its.q_first, 0);
      its.t = pairs ? std::max<std::int64_t>(at(cu_k, m + 1, k_rows) - its.k_first, 0) : 0;
      all.push_back(its);
    }
    return all;
  }
  template <class S>
  std::vector<AttentionCase> sequences(Arrays<S>& arrays) const {
    if (!arrays.has("cu_seqlens_q")) return {*this};
    const auto numbers = [&](const char* name) {
      std::vector<double> list;
      for (std::int64_t i = 0; i < arrays[name].size(); ++i) list.push_back(to_double(arrays[name].load(i)));
      return list;
    };
    return cut(numbers("cu_seqlens_q"), numbers("cu_seqlens_k"));
  }
};

/// Which weights meet their values, and times what.
template <class S>
class AttentionMask {
 public:
  template <class Its>
  AttentionMask(const Its& a, Arrays<S>& arrays) : p_(a.dropout) {
    if (!drops()) return;
    counters_ = (a.k_rows + 3) / 4;
    stream_.seed = whole(arrays["seed"]);
    stream_.offset = arrays.has("offset") ? whole(arrays["offset"]) : 0;
  }
  bool drops() const { return p_ != 0; }
  /// `row`: a query's, of all batches and heads; j: a key of its sequence.
  bool kept(std::int64_t row, std::int64_t j) const {
    return stream_.word(static_cast<std::uint64_t>(4 * row * counters_ + j)) * 0x1p-32 >= p_;
  }
  double scale() const { return p_ < 1 ? 1 / (1 - p_) : 0; }
  /// x, times the scale where it is kept; a flop, kept or not.
  S of(std::int64_t row, std::int64_t j, const S& x) const {
    if (!drops()) return x;
    const S scaled = x * S(scale());
    return kept(row, j) ? scaled : S(0);
  }

 private:
  static std::uint64_t whole(const Array<S>& number) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(to_double(number.load(0))));
  }
  double p_;
  std::int64_t counters_ = 0;
  PhiloxStream stream_{};
};

/// Tensor cores take weights of the data's dtype.
inline double rounding_of_weights(const Case& c, std::string_view variant) {
  return variant == "wgmma" || variant == "mma" || variant == "05_mma"
             ? std::ldexp(1, -significand_bits(c.dtype))
             : 0;
}

/// Below the normal numbers a rounding errs by as much as at the smallest of them.
inline constexpr double kSmallest = 0x1p-126;

template <class S>
struct AttentionScore {
  S value, slope;  ///< slope: by the product
  double terms;    ///< Σ|terms| of the product, and what is added to it
};

/// s = softcap(scale · q·k) + bias - alibi · |i + T - S - j|.
template <class Its, class S>
AttentionScore<S> attention_score(const Its& a, Arrays<S>& arrays, std::int64_t n, std::int64_t i,
                                  std::int64_t j, std::int64_t head) {
  Array<S>&q = arrays["q"], &k = arrays[a.keys_name];
  const std::int64_t at_q = a.query(n, i, head) * a.d, at_k = a.key(n, j, head) * a.d;
  S sum(0);
  double terms = 0;
  for (std::int64_t c = 0; c < a.d; ++c) {
    const S product = q.load(at_q + c) * k.load(at_k + c);
    sum += product;
    terms += std::fabs(to_double(product));
  }
  S value = sum * S(a.scale), slope(a.scale);
  terms *= std::fabs(a.scale);
  if (a.cap != 0) {
    const S bent = tanh(value / S(a.cap));
    value = bent * S(a.cap);
    slope = slope * (S(1.0) - bent * bent);
    terms += a.cap;
  }
  if (arrays.has("bias")) {
    const S bias = arrays["bias"].load(a.row(n, i, head) * a.t + j);
    value = value + bias;
    if (std::isfinite(to_double(bias))) terms += std::fabs(to_double(bias));
  }
  if (arrays.has("alibi")) {
    const S m = arrays["alibi"].load(head);
    const double distance = std::fabs(double(i + a.t - a.s - j));
    value = value - m * S(distance);
    terms += std::fabs(to_double(m)) * distance;
  }
  return {value, slope, terms};
}

/// y = Σ z e^s v / Σ e^s over the keys that a query sees, z the dropout's mask; lse = ln Σ e^s.
///
/// Errors: a score's is its terms' roundings, δ ≤ √D·u·terms, and shifts its weight by as much: Σ p·δ·|v -
/// y|. The exponential's (2 roundings), the sum's and the division's come to a few of Σ p·|v|. Tensor cores
/// take weights of the data's dtype: Σ p·|v| times its rounding (Tolerance::factor_rounding). For f16's small
/// weights they compute 2^7 · p as e^(s - m + 7·ln 2): that exponent is rounded where it is near 7·ln 2, not
/// 0, which shifts lse by as much.
struct AttentionOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& arrays) {
    const AttentionCase all(c);
    std::vector<S> weight(static_cast<std::size_t>(all.t));
    std::vector<double> terms(static_cast<std::size_t>(all.t));
    for (const AttentionCase& a : all.sequences(arrays))
      for (std::int64_t n = 0; n < a.b; ++n)
        for (std::int64_t head = 0; head < a.h; ++head)
          for (std::int64_t i = 0; i < a.s; ++i) row(a, arrays, n, i, head, weight, terms);
  }

  /// One query's row. `a` says which keys it sees and where those are; weight and terms have room for them.
  template <class Its, class S>
  static void row(const Its& a, Arrays<S>& arrays, std::int64_t n, std::int64_t i, std::int64_t head,
                  std::vector<S>& weight, std::vector<double>& terms) {
    bool any = false;
    S most(-HUGE_VAL);
    for (std::int64_t j = 0; j < a.t; ++j) {
      if (!a.sees(i, j)) continue;
      const auto at = static_cast<std::size_t>(j);
      const AttentionScore<S> score = attention_score(a, arrays, n, i, j, head);
      weight[at] = score.value;
      terms[at] = score.terms;
      most = any ? max(most, score.value) : score.value;
      any = true;
    }
    any = any && to_double(most) != -HUGE_VAL;
    S sum(0);
    double shift = 0;          // Σ p·(1 + terms)
    if (arrays.has("sink")) {  // one more score, of a value of 0
      const S sink = arrays["sink"].load(head);
      if (to_double(sink) != -HUGE_VAL) {
        most = any ? max(most, sink) : sink;
        any = true;
        sum = exp(sink - most);
        shift = to_double(sum);
      }
    }
    for (std::int64_t j = 0; any && j < a.t; ++j) {
      if (!a.sees(i, j)) continue;
      const auto at = static_cast<std::size_t>(j);
      weight[at] = exp(weight[at] - most);
      sum += weight[at];
      shift += to_double(weight[at]) * (1 + terms[at]);
    }
    if (arrays.has("lse")) {
      const S lse = any ? log(sum) + most : S(-HUGE_VAL);
      constexpr double kOfF16 = 0x1p-13;  // f32's rounding in units of f16's
      arrays["lse"].store(a.row(n, i, head), lse,
                          any ? shift / to_double(sum) + std::fabs(to_double(lse)) : 0,
                          any ? a.exponent * std::log(2.) * kOfF16 : 0);
    }
    const AttentionMask<S> mask(a, arrays);
    for (std::int64_t j = 0; any && mask.drops() && j < a.t; ++j)
      if (auto& its = weight[static_cast<std::size_t>(j)]; a.sees(i, j))
        its = mask.of(a.row(n, i, head), j, its);
    const double of = any ? to_double(sum) : 1, larger = std::fmax(mask.scale(), 1);
    const double value_scale = std::fabs(a.value_scale.value_or(1));
    const S divisor = any && a.value_scale ? sum / S(*a.value_scale) : sum;
    for (std::int64_t c = 0; c < a.e; ++c) {
      S y(0);
      double size = 0, shifts = 0, rounded = 0;  // of y; of what a weight's error and its rounding do to it
      for (std::int64_t j = 0; any && j < a.t; ++j) {
        if (!a.sees(i, j)) continue;
        const auto at = static_cast<std::size_t>(j);
        const S term = weight[at] * arrays[a.values_name].load(a.key(n, j, head) * a.e + c);
        y += term;
        // A weight may round below the normal numbers, before it is divided or after.
        const double value = std::fabs(to_double(arrays[a.values_name].load(a.key(n, j, head) * a.e + c)));
        size += std::fmax(std::fmax(to_double(weight[at]), kSmallest * larger) * value, kSmallest * of);
        shifts += std::fabs(to_double(term)) * terms[at];
        rounded += std::fmax(to_double(weight[at]), a.least_weight * larger) * value;
      }
      if (any) y = y / divisor;
      const double terms_of_y = (size + shifts) / of * value_scale + std::fabs(to_double(y)) * shift / of;
      arrays["y"].store(a.query(n, i, head) * a.e + c, y,
                        a.value_scale ? std::fmax(terms_of_y, kSmallest) : terms_of_y,
                        rounded / of * value_scale);
    }
  }
};

/// p = e^(s - lse), ds = p·(z·(dy·v) - dy·y)·slope; dv = Σ z·p·dy, dq = Σ ds·k, dk = Σ ds·q.
///
/// Errors: p's is a share of it, the score's terms and |lse| times u; ds's beside that the two products'
/// terms. Tensor cores take p and ds of the data's dtype: Σ p·|dy|, Σ |ds|·|k| and Σ |ds|·|q| times its
/// rounding.
struct AttentionBackwardOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& arrays) {
    const AttentionCase all(c);
    const AttentionMask<S> mask(all, arrays);
    const double larger = std::fmax(mask.scale(), 1);
    Array<S>&q = arrays["q"], &k = arrays["k"], &v = arrays["v"], &y = arrays["y"], &dy = arrays["dy"],
    &lse = arrays["lse"];
    const bool sinks = arrays.has("dsink");
    Sums<S> dsink(sinks ? all.h : 0);
    Sums<S> dq(all.b * all.s * all.h * all.d), dk(all.b * all.t * all.g * all.d),
        dv(all.b * all.t * all.g * all.e);
    for (const AttentionCase& a : all.sequences(arrays))
      for (std::int64_t n = 0; n < a.b; ++n)
        for (std::int64_t head = 0; head < a.h; ++head)
          for (std::int64_t i = 0; i < a.s; ++i) {
            const std::int64_t query = a.query(n, i, head);
            const S total = lse.load(a.row(n, i, head));
            S delta(0);
            double delta_terms = 0;
            for (std::int64_t c2 = 0; c2 < a.e; ++c2) {
              const S product = dy.load(query * a.e + c2) * y.load(query * a.e + c2);
              delta += product;
              delta_terms += std::fabs(to_double(product));
            }
            if (to_double(total) == -HUGE_VAL) continue;
            if (sinks) {
              const S sink = arrays.has("sink") ? arrays["sink"].load(head) : S(-HUGE_VAL);
              const S weight = exp(sink - total);
              dsink.add(head, S(0) - weight * delta,
                        to_double(weight) == 0
                            ? 0
                            : to_double(weight) * (delta_terms + std::fabs(to_double(delta)) *
                                                                     (1 + std::fabs(to_double(sink)) +
                                                                      std::fabs(to_double(total)))));
            }
            for (std::int64_t j = 0; j < a.t; ++j) {
              if (!a.sees(i, j)) continue;
              const std::int64_t key = a.key(n, j, head);
              const AttentionScore<S> score = attention_score(a, arrays, n, i, j, head);
              const S p = exp(score.value - total);
              // Below the normal numbers a weight has an absolute error.
              const double weight = std::fmax(to_double(p), kSmallest);
              const double doubt = 1 + score.terms + std::fabs(to_double(total));
              const std::int64_t row = a.row(n, i, head);
              const S meets = mask.of(row, j, p);
              S dp(0);
              double terms = 0;
              for (std::int64_t c2 = 0; c2 < a.e; ++c2) {
                const S g = dy.load(query * a.e + c2), product = g * v.load(key * a.e + c2);
                dp += product;
                terms += std::fabs(to_double(product));
                dv.add(key * a.e + c2, meets * g, weight * larger * std::fabs(to_double(g)) * doubt,
                       std::fmax(weight, a.least_weight) * larger * std::fabs(to_double(g)));
              }
              dp = mask.of(row, j, dp);
              terms = delta_terms + terms * larger;
              const S ds = p * (dp - delta) * score.slope;
              const double size = weight * a.scale * (terms + std::fabs(to_double(dp - delta)) * doubt);
              const double rounded = std::fmax(std::fabs(to_double(ds)), a.least_gradient * a.scale);
              for (std::int64_t c2 = 0; c2 < a.d; ++c2) {
                const S key_value = k.load(key * a.d + c2), query_value = q.load(query * a.d + c2);
                const double k_size = std::fabs(to_double(key_value)),
                             q_size = std::fabs(to_double(query_value));
                dq.add(query * a.d + c2, ds * key_value, size * k_size, rounded * k_size);
                dk.add(key * a.d + c2, ds * query_value, size * q_size, rounded * q_size);
              }
            }
          }
    if (sinks) dsink.store(arrays["dsink"]);
    dq.store(arrays["dq"]), dk.store(arrays["dk"]), dv.store(arrays["dv"]);
  }

 private:
  template <class S>
  struct Sums {
    std::vector<S> value;
    std::vector<double> terms, rounded;
    explicit Sums(std::int64_t size)
        : value(static_cast<std::size_t>(size), S(0)),
          terms(static_cast<std::size_t>(size)),
          rounded(static_cast<std::size_t>(size)) {}
    void add(std::int64_t i, const S& term, double magnitude, double factor = 0) {
      value[static_cast<std::size_t>(i)] += term;
      terms[static_cast<std::size_t>(i)] += std::fmax(magnitude, kSmallest);
      rounded[static_cast<std::size_t>(i)] += factor;
    }
    void store(Array<S>& to) const {
      for (std::size_t i = 0; i < value.size(); ++i)
        to.store(static_cast<std::int64_t>(i), value[i], terms[i], rounded[i]);
    }
  };
};

}  // namespace rooftile::harness
