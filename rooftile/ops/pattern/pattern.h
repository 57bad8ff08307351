#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

struct ColorPatternOptions {
  double t = 0;  ///< the time, -2^53 to 2^53: seconds since 1970 will do
  const char* variant =
      nullptr;  ///< null: chosen by the library; else a name that `rooftile list color_pattern` shows
};

/// A frame of an animation. Of the pixel in row i, column j:
///   red = .5 + .5·sin(.01·j + t), green = .5 + .5·sin(.01·i + .7·t), blue = .5 + .5·sin(.01·(i + j) + 1.3·t)
/// and alpha = 1. u8: ⌊255·value + ½⌋. Angles are whole 2^-64ths of a turn, reduced by integer arithmetic, so
/// a late frame is as right as the first: each double t in the range is taken as it is, .01, .7 and 1.3 as
/// the decimal numbers, and a phase is within 2^-31 turns for sizes up to 2^32. Values are within 2.2·2^-24
/// of the equation's before they are rounded to y's dtype. Every machine gives the same bits.
///
/// y: f32, f16, bf16 or u8, height x width x 4: RGBA. Any strides. No workspace.
///
/// Errors: an absent view, another dtype, rank or number of channels, null data, an output that overlaps
/// itself, a t out of range, a variant that is unknown. Cost: each element written once; a sine for each row,
/// column and diagonal of a tile: 0.02 per pixel on a CPU.
Status color_pattern(const Queue& queue, View y, const ColorPatternOptions& options = {});

}  // namespace rooftile
