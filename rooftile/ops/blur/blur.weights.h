#pragma once
// A Gaussian's weights as whole numbers.
#include <cmath>
#include <cstdint>

namespace rooftile {

inline constexpr double kMaxSigma = 128;
inline constexpr int kMaxGaussianRadius = 512;
/// Bits behind the point that a pixel has between the two passes.
inline constexpr int kGaussianFraction = 4;

/// at[k]: the weight of pixels k away; at[0] + 2·Σ at[k > 0] = 2^bits.
///
/// bits: a sum of two weighted pixels of 12 bits stays below 2^31, and half of at[0], like each other weight,
/// below 2^15. Weights are off by half of one: of all 255·N/4 in 2^19, with N = 8σ a quarter of a step of y
/// for both passes at σ = 128, less below. What lies past the radius, 6.3e-5, and the 4 bits between the
/// passes are 0.06 more.
struct GaussianWeights {
  int radius, bits;
  std::int32_t at[kMaxGaussianRadius + 1];
};
inline GaussianWeights gaussian_weights(double sigma) {
  GaussianWeights w{};
  w.radius = static_cast<int>(4 * sigma + 0.5);
  w.bits = sigma < 8 ? 16 : 19;
  const auto part = [&](int k) { return std::exp(-0.5 * k * k / (sigma * sigma)); };
  double sum = 1;
  for (int k = w.radius; k > 0; --k) sum += 2 * part(k);
  w.at[0] = 1 << w.bits;
  for (int k = 1; k <= w.radius; ++k) {
    w.at[k] = static_cast<std::int32_t>(std::ldexp(part(k) / sum, w.bits) + 0.5);
    w.at[0] -= 2 * w.at[k];
  }
  return w;
}

}  // namespace rooftile
