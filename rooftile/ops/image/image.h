#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

/// How much each colour counts for brightness.
enum class GrayWeights {
  bt601,       ///< 0.299 red, 0.587 green, 0.114 blue: Recommendation BT.601, JPEG's and OpenCV's
  luminosity,  ///< 0.21 red, 0.72 green, 0.07 blue: close to BT.709, GIMP's luminosity
};

struct GrayOptions {
  GrayWeights weights = GrayWeights::bt601;
  const char* variant =
      nullptr;  ///< null: chosen by the library; else a name that `rooftile list rgb_to_gray` shows
};

/// A colour picture's brightness: gray = ⌊(299·red + 587·green + 114·blue + 500) / 1000⌋, the nearest whole
/// number, halves up (luminosity: 210, 720, 70). In integers, so every machine gives the same bytes. Samples
/// are taken as stored, without gamma.
///
/// rgb: u8, its last dimension 3: height x width x 3, or any other outer dimensions. gray: u8, rgb's outer
/// dimensions. Any strides: a crop, BGR by a channel stride of -1, planes by one of height·width. RGBA is
/// height x width x 3 with strides {4·width, 4, 1}; the byte between pixels is read along and ignored. No
/// workspace.
///
/// Errors: an absent view, another dtype, rgb without a last dimension of 3, outer dimensions that differ,
/// null data, an output that overlaps itself or rgb, weights or a variant that are unknown. Cost: 4 bytes
/// moved and 7 operations a pixel. Source: ITU-R Recommendation BT.601.
Status rgb_to_gray(const Queue& queue, ConstView rgb, View gray, const GrayOptions& options = {});

}  // namespace rooftile
