#pragma once
// Double quantisation: the scales themselves in 8 bits. Blocks of 256 of them, less an offset, by a map whose
// steps are fine near 0 and coarse near 1 (Dettmers, arXiv:1511.04561), as bitsandbytes has it.
#include <cstdint>

namespace rooftile {

inline constexpr int kScaleBlock = 256;

/// What passes to the launches, in either direction.
struct Nf4ScalesProblem {
  float* scales;
  std::int64_t scales_stride;
  const float* offset;
  std::uint8_t* codes;
  std::int64_t codes_stride;
  float* absmax;
  std::int64_t absmax_stride;
  std::int64_t count;
};

/// The map: seven decades, of which the i-th has 2^i equal steps and these their midpoints; 0; 1; and all but
/// 1 with both signs. As f32 it follows from no formula: each decade was rounded thrice.
struct Nf4ScaleMap {
  float at[256];
};
namespace detail {
inline constexpr float kNf4ScaleSteps[127] = {
    5.5e-07f,       3.25e-06f,    7.75e-06f,    2.125e-05f,     4.375e-05f,    6.625e-05f,   8.875e-05f,
    0.00015625f,    0.00026875f,  0.00038125f,  0.00049375003f, 0.00060625f,   0.00071875f,  0.00083125f,
    0.00094374997f, 0.00128125f,  0.00184375f,  0.00240625f,    0.00296875f,   0.00353125f,  0.00409375f,
    0.00465625f,    0.00521875f,  0.00578125f,  0.0063437503f,  0.00690625f,   0.00746875f,  0.00803125f,
    0.00859375f,    0.00915625f,  0.00971875f,  0.01140625f,    0.0142187495f, 0.01703125f,  0.01984375f,
    0.02265625f,    0.02546875f,  0.028281251f, 0.03109375f,    0.03390625f,   0.03671875f,  0.03953125f,
    0.04234375f,    0.045156248f, 0.04796875f,  0.05078125f,    0.05359375f,   0.056406252f, 0.05921875f,
    0.062031247f,   0.06484375f,  0.06765625f,  0.07046875f,    0.07328125f,   0.07609375f,  0.07890625f,
    0.08171875f,    0.08453125f,  0.08734375f,  0.09015625f,    0.09296875f,   0.09578125f,  0.09859375f,
    0.107031256f,   0.12109375f,  0.13515624f,  0.14921875f,    0.16328125f,   0.17734376f,  0.19140625f,
    0.20546874f,    0.21953125f,  0.23359375f,  0.24765624f,    0.26171875f,   0.27578127f,  0.28984374f,
    0.30390626f,    0.31796873f,  0.33203125f,  0.34609377f,    0.36015624f,   0.37421876f,  0.38828123f,
    0.40234375f,    0.41640627f,  0.43046874f,  0.44453126f,    0.45859373f,   0.47265625f,  0.48671877f,
    0.50078124f,    0.51484376f,  0.5289062f,   0.54296875f,    0.5570313f,    0.57109374f,  0.58515626f,
    0.5992187f,     0.61328125f,  0.6273438f,   0.64140624f,    0.65546876f,   0.6695312f,   0.68359375f,
    0.6976563f,     0.71171874f,  0.72578126f,  0.7398437f,     0.75390625f,   0.7679688f,   0.78203124f,
    0.79609376f,    0.8101562f,   0.82421875f,  0.8382813f,     0.85234374f,   0.86640626f,  0.8804687f,
    0.89453125f,    0.9085938f,   0.92265624f,  0.93671876f,    0.9507812f,    0.96484375f,  0.9789063f,
    0.99296874f,
};
}  // namespace detail
inline constexpr Nf4ScaleMap kNf4ScaleMap = [] {
  Nf4ScaleMap map{};
  for (int i = 0; i < 127; ++i) {
    map.at[126 - i] = -detail::kNf4ScaleSteps[i];
    map.at[128 + i] = detail::kNf4ScaleSteps[i];
  }
  map.at[255] = 1;
  return map;
}();

/// The map's entry next to x. Between two, the search's way decides which one a midpoint gets.
constexpr int nf4_scale_code(const float (&map)[256], float x) {
  int low = 0, high = 255, at = 127;
  for (int step = 64; step > 0; step /= 2) {
    const bool above = x > map[at];
    (above ? low : high) = at;
    at += above ? step : -step;
  }
  if (x > map[at]) return x > (map[high] + map[at]) * 0.5f ? high : at;
  return x < (map[low] + map[at]) * 0.5f ? low : at;
}

}  // namespace rooftile
