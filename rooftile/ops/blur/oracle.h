#pragma once
// Blurs as their equations read: the oracle, and rung 0 of the ladder.
#include "rooftile/harness/spec.h"
#include "rooftile/ops/blur/blur.weights.h"

namespace rooftile::harness {

/// The pixels of a line of which positions at - r … at + r have the values, as found on the way there from
/// `at`; -1: none.
inline std::vector<std::int64_t> pixels_met(BlurBorder border, std::int64_t size, std::int64_t at,
                                            std::int64_t r) {
  std::vector<std::int64_t> pixels(static_cast<std::size_t>(2 * r + 1), at);
  for (const std::int64_t way : {-1, 1}) {
    std::int64_t i = at, step = way;
    for (std::int64_t k = 1; k <= r; ++k) {
      if (i >= 0 && (i + step < 0 || i + step >= size)) {
        if (border == BlurBorder::zero) i = -1;
        if (border == BlurBorder::replicate || size == 1) step = 0;
        if (border == BlurBorder::reflect_101) step = -step;
      }
      if (i >= 0) i += step;
      pixels[static_cast<std::size_t>(r + way * k)] = i;
    }
  }
  return pixels;
}
/// The same for each position of a line.
inline std::vector<std::vector<std::int64_t>> pixels_met(BlurBorder border, std::int64_t size,
                                                         std::int64_t r) {
  std::vector<std::vector<std::int64_t>> pixels;
  for (std::int64_t at = 0; at < size; ++at) pixels.push_back(pixels_met(border, size, at, r));
  return pixels;
}

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
    // How often the window around each position of a line meets each of its pixels.
    const auto times_of = [&](std::int64_t size) {
      std::vector<std::vector<double>> times;
      for (const auto& met : pixels_met(border, size, r)) {
        times.emplace_back(static_cast<std::size_t>(size), 0);
        for (const std::int64_t i : met)
          if (i >= 0) ++times.back()[static_cast<std::size_t>(i)];
      }
      return times;
    };
    const auto times_across = times_of(w), times_down = times_of(h);
    const auto window = [&](const std::vector<double>& times, std::int64_t at, auto pixel) {
      const auto size = static_cast<std::int64_t>(times.size());
      S sum(0.0);
      for (std::int64_t i = std::max<std::int64_t>(0, at - r); i <= std::min(size - 1, at + r); ++i)
        sum = sum + S(times[static_cast<std::size_t>(i)]) * pixel(i);
      return sum;
    };
    for (std::int64_t first = 0; first < a["x"].size(); first += picture)
      for (std::int64_t k = 0; k < channels; ++k) {
        const auto at = [&](std::int64_t i, std::int64_t j) { return first + (i * w + j) * channels + k; };
        std::vector<S> across;
        for (std::int64_t i = 0; i < h; ++i)
          for (std::int64_t j = 0; j < w; ++j)
            across.push_back(window(times_across[static_cast<std::size_t>(j)], j,
                                    [&](std::int64_t from) { return a["x"].load(at(i, from)); }));
        for (std::int64_t j = 0; j < w; ++j)
          for (std::int64_t i = 0; i < h; ++i) {
            const S sum = window(times_down[static_cast<std::size_t>(i)], i, [&](std::int64_t from) {
              return across[static_cast<std::size_t>(from * w + j)];
            });
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
    const auto met_across = pixels_met(border, w, r), met_down = pixels_met(border, h, r);
    const auto weighed = [&](const std::vector<std::int64_t>& met, int shift, auto pixel) {
      S sum(std::ldexp(1, shift - 1));
      for (std::int64_t k = -r; k <= r; ++k) {
        const std::int64_t i = met[static_cast<std::size_t>(r + k)];
        sum = sum + S(double(weights.at[std::abs(k)])) * (i < 0 ? S(0.0) : pixel(i));
      }
      return S(std::floor(std::ldexp(to_double(sum), -shift)));
    };
    for (std::int64_t first = 0; first < a["x"].size(); first += picture)
      for (std::int64_t k = 0; k < channels; ++k) {
        const auto at = [&](std::int64_t i, std::int64_t j) { return first + (i * w + j) * channels + k; };
        std::vector<S> middle;
        for (std::int64_t i = 0; i < h; ++i)
          for (std::int64_t j = 0; j < w; ++j)
            middle.push_back(weighed(met_down[static_cast<std::size_t>(i)], weights.bits - kGaussianFraction,
                                     [&](std::int64_t from) { return a["x"].load(at(from, j)); }));
        for (std::int64_t i = 0; i < h; ++i)
          for (std::int64_t j = 0; j < w; ++j)
            a["y"].store(at(i, j), weighed(met_across[static_cast<std::size_t>(j)],
                                           weights.bits + kGaussianFraction, [&](std::int64_t from) {
                                             return middle[static_cast<std::size_t>(i * w + from)];
                                           }));
      }
  }
};

}  // namespace rooftile::harness
