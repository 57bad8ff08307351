#pragma once
// Blurs as their equations read: the oracle, and rung 0 of the ladder.
#include "rooftile/harness/spec.h"
#include "rooftile/ops/blur/blur.border.h"
#include "rooftile/ops/blur/blur.weights.h"

namespace rooftile::harness {

/// y = ⌊(sum + ⌊n/2⌋) / n⌋, n = (2r + 1)²: first along the rows, then down the columns. A window larger than
/// the picture meets each pixel several times.
struct BoxBlurOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::size_t rank = c.shape.size();
    const std::int64_t h = c.shape[rank - 3], w = c.shape[rank - 2], channels = c.shape[rank - 1];
    const auto r = static_cast<std::int64_t>(c.parameter("radius", 1));
    const auto border = static_cast<BlurBorder>(static_cast<int>(c.parameter("border")));
    const std::int64_t picture = h * w * channels, n = (2 * r + 1) * (2 * r + 1);
    if (picture == 0) return;
    // Σ of a line's pixels, each as often as the window around `at` meets it.
    const auto window = [&](std::int64_t size, std::int64_t at, auto pixel) {
      S sum(0.0);
      for (std::int64_t i = std::max<std::int64_t>(0, at - r); i <= std::min(size - 1, at + r); ++i)
        sum = sum + S(static_cast<double>(border_times(border, size, i, at - r, at + r))) * pixel(i);
      return sum;
    };
    for (std::int64_t first = 0; first < a["x"].size(); first += picture)
      for (std::int64_t k = 0; k < channels; ++k) {
        const auto at = [&](std::int64_t i, std::int64_t j) { return first + (i * w + j) * channels + k; };
        std::vector<S> across;
        for (std::int64_t i = 0; i < h; ++i)
          for (std::int64_t j = 0; j < w; ++j)
            across.push_back(window(w, j, [&](std::int64_t from) { return a["x"].load(at(i, from)); }));
        for (std::int64_t j = 0; j < w; ++j)
          for (std::int64_t i = 0; i < h; ++i) {
            const S sum = window(
                h, i, [&](std::int64_t from) { return across[static_cast<std::size_t>(from * w + j)]; });
            // Whole numbers below 2^33: the quotient lies on the right side of each whole number.
            const S quotient = (sum + S(static_cast<double>(n / 2))) / S(static_cast<double>(n));
            a["y"].store(at(i, j), S(std::floor(to_double(quotient))));
          }
      }
  }
};

/// m = ⌊(Σ w_k·x + ½) / 2^(bits - 4)⌋ down the columns, y = ⌊(Σ w_k·m + ½) / 2^(bits + 4)⌋ along the rows: ½
/// of what is then divided by.
struct GaussianBlurOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::size_t rank = c.shape.size();
    const std::int64_t h = c.shape[rank - 3], w = c.shape[rank - 2], channels = c.shape[rank - 1];
    const GaussianWeights weights = gaussian_weights(c.parameter("sigma", 1));
    const auto border = static_cast<BlurBorder>(static_cast<int>(c.parameter("border")));
    const std::int64_t picture = h * w * channels, r = weights.radius;
    if (picture == 0) return;
    const auto weighed = [&](std::int64_t size, std::int64_t at, int shift, auto pixel) {
      S sum(std::ldexp(1, shift - 1));
      for (std::int64_t k = -r; k <= r; ++k) {
        const std::int64_t i = border_pixel(border, size, at + k);
        sum = sum + S(double(weights.at[std::abs(k)])) * (i == kNoPixel ? S(0.0) : pixel(i));
      }
      return S(std::floor(std::ldexp(to_double(sum), -shift)));
    };
    for (std::int64_t first = 0; first < a["x"].size(); first += picture)
      for (std::int64_t k = 0; k < channels; ++k) {
        const auto at = [&](std::int64_t i, std::int64_t j) { return first + (i * w + j) * channels + k; };
        std::vector<S> middle;
        for (std::int64_t i = 0; i < h; ++i)
          for (std::int64_t j = 0; j < w; ++j)
            middle.push_back(weighed(h, i, weights.bits - kGaussianFraction,
                                     [&](std::int64_t from) { return a["x"].load(at(from, j)); }));
        for (std::int64_t i = 0; i < h; ++i)
          for (std::int64_t j = 0; j < w; ++j)
            a["y"].store(at(i, j), weighed(w, j, weights.bits + kGaussianFraction, [&](std::int64_t from) {
                           return middle[static_cast<std::size_t>(i * w + from)];
                         }));
      }
  }
};

}  // namespace rooftile::harness
