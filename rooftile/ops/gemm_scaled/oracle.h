#pragma once
// The product of codes with scales as its equation reads. A scale's product is one of f32, whatever the
// scalar.
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

/// y[…, i, j] = Σ_t (Σ_p a[…, i, p]·b[…, p, j], p in block t) · s[t] + bias[j].
struct GemmScaledOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& arrays) {
    const std::size_t rank = c.shape.size();
    const std::int64_t m = c.shape[rank - 3], k = c.shape[rank - 2], n = c.shape[rank - 1];
    const auto block = static_cast<std::int64_t>(c.parameter("block", 128)),
               block_n = static_cast<std::int64_t>(c.parameter("block_n", 1));
    const std::int64_t blocks = (k + block - 1) / block, blocks_n = (n + block_n - 1) / block_n;
    const Array<S>&a = arrays["a"], &b = arrays["b"], &scale_a = arrays["scale_a"],
          &scale_b = arrays["scale_b"];
    const Array<S>* const bias = arrays.find("bias");
    Array<S>& y = arrays["y"];
    // Kept by columns: {…, N, K}, {…, ⌈N/block_n⌉, ⌈K/block⌉}.
    const bool turned = c.parameter("turned") != 0;
    const auto place = [turned](std::int64_t matrix, std::int64_t row, std::int64_t rows, std::int64_t column,
                                std::int64_t columns) {
      return matrix * rows * columns + (turned ? column * rows + row : row * columns + column);
    };
    const auto number = [](const Array<S>& array, std::int64_t at) {
      return static_cast<float>(to_double(array.load(at)));
    };
    for (std::int64_t at = 0; at < y.size(); ++at) {
      const std::int64_t matrix = at / n / m, row = at / n, j = at % n;
      S total(0);
      double terms = 0, products = 0;
      for (std::int64_t t = 0; t < blocks; ++t) {
        S sum(0);
        double sizes = 0;
        for (std::int64_t p = t * block; p < std::min(k, (t + 1) * block); ++p) {
          const S product = a.load(row * k + p) * b.load(place(matrix, p, k, j, n));
          sum += product;
          sizes += std::fabs(to_double(product));
        }
        const float scale = number(scale_a, row * blocks + t) *
                            number(scale_b, place(matrix, t, blocks, j / block_n, blocks_n));
        total += sum * S(double(scale));
        products += sizes * std::fabs(double(scale));
        // Below the smallest normal number the rounding is an absolute one.
        terms += std::fmax(sizes * std::fabs(double(scale)), 0x1p-126);
      }
      if (bias) {
        total = total + bias->load(j);
        terms += std::fabs(to_double(bias->load(j)));
      }
      y.store(at, total, terms, products);
    }
  }
};

}  // namespace rooftile::harness
