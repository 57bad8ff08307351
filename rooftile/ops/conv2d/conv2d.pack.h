#pragma once
// Blocks of a picture's matrix of windows as the micro-kernel reads them: in lanes, widened to 32 bits. The
// matrix itself is never made: a block of it is gathered where it is packed.
#include "rooftile/ops/conv2d/conv2d.problem.h"
#include "rooftile/ops/gemm/pack.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// Digits of an index, counted up without divisions.
struct Digits {
  std::int64_t high, middle, low, middles, lows;

  Digits(std::int64_t index, std::int64_t middles_, std::int64_t lows_) : middles(middles_), lows(lows_) {
    const std::int64_t rest = index / lows;
    low = index % lows;
    middle = rest % middles;
    high = rest / middles;
  }
  /// On by `count`, which ends at the last digit's end or before it.
  void advance(std::int64_t count) {
    if ((low += count) < lows) return;
    low = 0;
    if (++middle < middles) return;
    middle = 0;
    ++high;
  }
};

/// A coordinate of the picture; -1: none.
ROOFTILE_TILE std::int64_t coordinate(std::int64_t at, std::int64_t down, std::int64_t size) {
  if (at < 0 || (down != 1 && at % down != 0)) return -1;
  at = down == 1 ? at : at / down;
  return at < size ? at : -1;
}

/// `count` elements `stride` apart.
template <class T>
ROOFTILE_TILE void pack_run(const T* from, std::int64_t stride, std::int64_t count, float* to) {
  if (stride == 1) return widen_run(from, count, to);
  for (std::int64_t k = 0; k < count; ++k) to[k] = lane_of(from[k * stride]);
}

/// A row for each window: to[window·pitch + term].
template <class T>
__attribute__((noinline)) void pack_windows(const Windows& v, const T* data, std::int64_t window,
                                            std::int64_t windows, std::int64_t term, std::int64_t terms,
                                            float* to, std::int64_t pitch) {
  Digits at(window, v.rows, v.columns);
  for (std::int64_t k = 0; k < windows; ++k, at.advance(1)) {
    float* row = to + k * pitch;
    const T* const image = data + at.high * v.n;
    Digits tap(term, v.taps_w, v.channels);
    for (std::int64_t left = terms; left > 0;) {
      const std::int64_t run = std::min(left, v.channels - tap.low);
      const std::int64_t y = coordinate(at.middle * v.step_h + tap.high * v.tap_h + v.from_h, v.down_h,
                                        v.height),
                         x = coordinate(at.low * v.step_w + tap.middle * v.tap_w + v.from_w, v.down_w,
                                        v.width);
      if (y < 0 || x < 0)
        std::fill_n(row, run, 0.0f);
      else
        pack_run(image + y * v.h + x * v.w + tap.low * v.c, v.c, run, row);
      row += run;
      left -= run;
      tap.advance(run);
    }
  }
}

/// One term's windows next to each other in a row of the result: those that lie in the picture, then zeros.
template <class T>
ROOFTILE_TILE void pack_row_of_windows(const Windows& v, const T* row, std::int64_t first, std::int64_t count,
                                       float* to) {
  // first + k·step is the coordinate of window k, `down` times as fine; step is 1 where down is not.
  if (v.down_w != 1) {
    std::fill_n(to, count, 0.0f);
    std::int64_t k = first < 0 ? -first : 0;
    k += (v.down_w - (first + k) % v.down_w) % v.down_w;
    for (std::int64_t x = (first + k) / v.down_w; k < count && x < v.width; ++x, k += v.down_w)
      to[k] = lane_of(row[x * v.w]);
    return;
  }
  const std::int64_t begin = first >= 0 ? 0 : std::min(count, (-first + v.step_w - 1) / v.step_w);
  const std::int64_t room = v.width - first;
  const std::int64_t end = std::max(begin, room <= 0 ? 0 : std::min(count, (room + v.step_w - 1) / v.step_w));
  std::fill_n(to, begin, 0.0f);
  pack_run(row + (first + begin * v.step_w) * v.w, v.step_w * v.w, end - begin, to + begin);
  std::fill_n(to + end, count - end, 0.0f);
}

/// A row for each term: to[term·pitch + window].
template <class T>
__attribute__((noinline)) void pack_terms(const Windows& v, const T* data, std::int64_t term,
                                          std::int64_t terms, std::int64_t window, std::int64_t windows,
                                          float* to, std::int64_t pitch) {
  Digits at(window, v.rows, v.columns);
  for (std::int64_t left = windows; left > 0;) {
    const std::int64_t run = std::min(left, v.columns - at.low);
    const T* const image = data + at.high * v.n;
    Digits tap(term, v.taps_w, v.channels);
    float* row = to;
    for (std::int64_t k = 0; k < terms; ++k, row += pitch, tap.advance(1)) {
      const std::int64_t y =
          coordinate(at.middle * v.step_h + tap.high * v.tap_h + v.from_h, v.down_h, v.height);
      if (y < 0)
        std::fill_n(row, run, 0.0f);
      else
        pack_row_of_windows(v, image + y * v.h + tap.low * v.c,
                            at.low * v.step_w + tap.middle * v.tap_w + v.from_w, run, row);
    }
    to += run;
    left -= run;
    at.advance(run);
  }
}

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
