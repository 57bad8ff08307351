#pragma once
// A matrix product as its equation reads, in any scalar.
#include "rooftile/harness/spec.h"
#include "rooftile/ops/gemm/gemm.h"

namespace rooftile::harness {

/// For all but f64, alpha and beta are what f32 holds.
inline double gemm_factor(const Case& c, const char* name, double otherwise) {
  const double value = c.parameter(name, otherwise);
  return c.dtype == DType::f64 ? value : static_cast<double>(static_cast<float>(value));
}
inline double gemm_alpha(const Case& c) { return gemm_factor(c, "alpha", 1); }
inline double gemm_beta(const Case& c) { return gemm_factor(c, "beta", 0); }
/// BLAS's transposes: whether a is kept as {…, K, M}, b as {…, N, K}.
inline bool gemm_turned(const Case& c, char operand) {
  return (static_cast<int>(c.parameter("turned")) >> (operand == 'b' ? 1 : 0) & 1) != 0;
}
inline GemmActivation gemm_activation(const Case& c) {
  return static_cast<GemmActivation>(static_cast<int>(c.parameter("activation")));
}

inline bool gemm_gate(const Case& c) { return c.parameter("gate") != 0; }

/// y[…, i, j] = activation(alpha · Σ_p a[…, i, p]·b[…, p, j] + bias[j]) + beta · c[…, i, j], or … · c[…, i,
/// j].
struct GemmOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& arrays) {
    const std::size_t rank = c.shape.size();
    const std::int64_t k = c.shape[rank - 2], n = c.shape[rank - 1];
    const Array<S>& b = arrays["b"];
    const bool turned = gemm_turned(c, 'b');
    product(c, arrays, [&](std::int64_t batch, std::int64_t p, std::int64_t j) {
      return b.load(batch * k * n + (turned ? j * k + p : p * n + j));
    });
  }

  /// load_b(batch, p, j): an element of B.
  template <class S, class LoadB>
  static void product(const Case& c, Arrays<S>& arrays, const LoadB& load_b) {
    const std::size_t rank = c.shape.size();
    const std::int64_t m = c.shape[rank - 3], k = c.shape[rank - 2], n = c.shape[rank - 1];
    std::int64_t matrices = 1;
    for (std::size_t d = 0; d + 3 < rank; ++d) matrices *= c.shape[d];
    Array<S>&a = arrays["a"], &y = arrays["y"];
    const Array<S>*bias = arrays.find("bias"), *old = arrays.find("c");
    const double alpha = gemm_alpha(c), beta = gemm_beta(c);
    // Below the smallest normal number a product's rounding is an absolute one.
    const double least = c.dtype == DType::f64 ? 0x1p-1022 : c.dtype == DType::i8 ? 0 : 0x1p-126;
    const bool a_turned = gemm_turned(c, 'a');
    for (std::int64_t batch = 0; batch < matrices; ++batch)
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          S sum(0);
          double terms = 0;
          for (std::int64_t p = 0; p < k; ++p) {
            const S product =
                a.load(batch * m * k + (a_turned ? p * m + i : i * k + p)) * load_b(batch, p, j);
            sum += product;
            terms += std::fmax(std::fabs(to_double(product)), least);
          }
          if (alpha != 1) sum = S(alpha) * sum, terms *= std::fabs(alpha);
          if (bias) {
            sum = sum + bias->load(j);
            terms += std::fabs(to_double(bias->load(j)));
          }
          S value = activation_of(gemm_activation(c), sum);
          // No activation's slope is above 1.13; its own rounding is a few of its value's.
          if (gemm_activation(c) != GemmActivation::none) terms = 1.13 * terms + std::fabs(to_double(value));
          const std::int64_t at = (batch * m + i) * n + j;
          if (beta != 0) {
            const S term = S(beta) * old->load(at);
            value = value + term;
            terms += std::fabs(to_double(term));
          }
          if (gemm_gate(c)) {
            value = value * old->load(at);
            terms *= std::fabs(to_double(old->load(at)));
          }
          y.store(at, value, terms);
        }
  }

 private:
  template <class S>
  static S sigmoid(const S& v) {
    return S(1) / (S(1) + exp(-v));
  }
  /// x·share, and where the share is 0 the limit 0.
  template <class S>
  static S shared(const S& x, const S& share) {
    const S y = x * share;
    return to_double(share) == 0 ? S(0) : y;
  }

 public:
  template <class S>
  static S activation_of(GemmActivation which, const S& x) {
    if (which == GemmActivation::none) return x;
    if (which == GemmActivation::relu) return std::isnan(to_double(x)) ? x : max(x, S(0));
    if constexpr (!std::is_same_v<S, Quad>) {  // f64 has no other
      if (which == GemmActivation::gelu) return shared(x, S(0.5) * erfc(-x * S(0.7071067811865476)));
      if (which == GemmActivation::gelu_tanh)
        return shared(x, sigmoid(x * (S(1.5957691216057308) + S(0.07135481282988) * (x * x))));
      if (which == GemmActivation::silu) return shared(x, sigmoid(x));
      if (which == GemmActivation::sigmoid) return sigmoid(x);
      if (which == GemmActivation::tanh) return tanh(x);
    }
    return x;
  }
};

}  // namespace rooftile::harness
