#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

/// What stands where a window reaches past the picture's edge.
enum class BlurBorder {
  replicate,    ///< the edge's pixel: aaa|abcd|ddd
  reflect_101,  ///< the picture mirrored at the edge's pixel: dcb|abcd|cba; OpenCV's default
  zero,         ///< 0, which counts like any other pixel
};

struct BoxBlurOptions {
  std::int64_t radius = 1;  ///< 0 to 2047: windows of 1 to 4095 pixels a side
  BlurBorder border = BlurBorder::replicate;
  const char* variant =
      nullptr;  ///< null: chosen by the library; else a name that `rooftile list box_blur` shows
};

/// The mean of each pixel's square window: y = ⌊(sum + n/2) / n⌋ of the n = (2·radius + 1)² pixels around it,
/// the nearest whole number (n is odd: there are no halves). In integers, so every machine gives the same
/// bytes. Channels do not mix.
///
/// x: u8, height x width x channels, or any outer dimensions before these. y: u8, x's shape, apart from x:
/// not in place. Any strides; 1, 3 or 4 channels side by side are the fast ones. The radius may exceed the
/// picture. No workspace.
///
/// Errors: an absent view, another dtype, a rank below 3, shapes that differ, null data, an output that
/// overlaps itself or x, a radius out of range, a border or a variant that is unknown. Cost: each byte read
/// twice, written once; additions whose number does not depend on the radius. Source: M. McDonnell, "Box-
/// filtering techniques", 1981.
Status box_blur(const Queue& queue, ConstView x, View y, const BoxBlurOptions& options = {});

struct GaussianBlurOptions {
  double sigma = 1;  ///< the standard deviation in pixels, 0.25 to 128
  BlurBorder border = BlurBorder::replicate;
  const char* variant =
      nullptr;  ///< null: chosen by the library; else a name that `rooftile list gaussian_blur` shows
};

/// The mean of each pixel's surroundings, weighted by exp(-d²/2σ²), d the distance: within 1 of the true
/// Gaussian's value (tests/blur_test.cpp; most pixels are its nearest whole number). Weights are whole
/// numbers of sum 2^19 (2^16 for sigma below 8) that reach ⌊4·sigma + ½⌋ pixels, as SciPy's do. Down the
/// columns, then along the rows, in integers; between the two passes a pixel has 4 bits behind the point. So
/// every machine gives the same bytes, but for a host whose exp() rounds a weight the other way.
///
/// x, y: as box_blur's. No workspace. Errors: as box_blur's, with sigma for the radius. Cost: 4·radius + 2
/// multiplications and additions for each byte.
Status gaussian_blur(const Queue& queue, ConstView x, View y, const GaussianBlurOptions& options = {});

}  // namespace rooftile
