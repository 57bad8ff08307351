#pragma once
// Windows of a picture whose channels are 16-byte vectors, as threads gather them: a thread has one vector of
// each slice of K and some windows of a tile. It finds their places once per tile; a tap is then one addition
// and one comparison per window. All in 32 bits: with products of 64 bits, finding vectors took five times as
// long as multiplying them.
#include "rooftile/ops/conv2d/conv2d.gpu.h"

namespace rooftile::conv_gpu {

/// The picture. Strides are of vectors.
struct VectorPicture {
  const uint4* data;
  int n, h, w;
  int height, width, rows, columns, windows;
  int step_h, step_w, from_h, from_w, tap_h, tap_w;
  int taps_h, taps_w, vectors;    ///< vectors: of a tap's channels
  int slice_r, slice_s, slice_c;  ///< a slice of K: so many rows of taps, taps and vectors further
};

/// `in_vector`: elements; `in_slice`: vectors.
inline VectorPicture vector_picture(const Windows& v, int in_vector, int in_slice) {
  const auto whole = [](std::int64_t size) { return static_cast<int>(size); };
  VectorPicture p{};
  p.data = static_cast<const uint4*>(v.data);
  p.n = whole(v.n / in_vector), p.h = whole(v.h / in_vector), p.w = whole(v.w / in_vector);
  p.height = whole(v.height), p.width = whole(v.width);
  p.rows = whole(v.rows), p.columns = whole(v.columns), p.windows = whole(v.windows());
  p.step_h = whole(v.step_h), p.step_w = whole(v.step_w);
  p.from_h = whole(v.from_h), p.from_w = whole(v.from_w);
  p.tap_h = whole(v.tap_h), p.tap_w = whole(v.tap_w);
  p.taps_h = whole(v.taps_h), p.taps_w = whole(v.taps_w), p.vectors = whole(v.channels / in_vector);
  const int taps = in_slice / p.vectors;
  p.slice_c = in_slice % p.vectors, p.slice_s = taps % p.taps_w, p.slice_r = taps / p.taps_w;
  return p;
}

/// A vector of a filter from any window's first pixel on, and the bits of its tap.
struct Tap {
  int offset;
  unsigned bits;
};

/// Where a thread's vector of a slice lies in a filter.
struct Term {
  int r, s, c;

  ROOFTILE_TILE Term(const VectorPicture& p, int vector) {
    const int tap = vector / p.vectors;
    c = vector - tap * p.vectors;
    r = tap / p.taps_w;
    s = tap - r * p.taps_w;
  }
  /// On by a slice, without divisions.
  ROOFTILE_TILE void next(const VectorPicture& p) {
    c += p.slice_c, s += p.slice_s, r += p.slice_r;
    if (c >= p.vectors) c -= p.vectors, ++s;
    if (s >= p.taps_w) s -= p.taps_w, ++r;
  }
  /// Past the end of K: a tap that no window has.
  ROOFTILE_TILE Tap tap(const VectorPicture& p) const {
    if (r >= p.taps_h) return {0, 1u << kMaxVectorTaps};
    return {r * p.tap_h * p.h + s * p.tap_w * p.w + c, 1u << r | 0x10000u << s};
  }
};

/// A thread's windows of a tile, of 128 threads; kLanes of them have a window's slice. Lanes find windows for
/// each other: all of a warp come here.
template <int kCount_, int kLanes>
class WindowRows {
  static constexpr int kOfWarp = 32 / kLanes;  // windows of a warp that are neighbours

 public:
  static constexpr int kCount = kCount_;

  ROOFTILE_TILE WindowRows(const VectorPicture& p, int first) {
    const int t = static_cast<int>(threadIdx.x) % 128, lane = t % 32;
    ROOFTILE_UNROLL for (int j = 0; j < (kCount + kLanes - 1) / kLanes; ++j) {
      const int found = lane + j * 32;  // of the warp's windows
      const int index = first + found / kOfWarp * (128 / kLanes) + t / 32 * kOfWarp + found % kOfWarp;
      const int row = index / p.columns, image = row / p.rows;
      const int y = (row - image * p.rows) * p.step_h + p.from_h,
                x = (index - row * p.columns) * p.step_w + p.from_w;
      const bool lives = index < p.windows;
      const int at = lives ? image * p.n + y * p.h + x * p.w : 0;
      const unsigned inside = lives ? taps_inside(y, p.tap_h, p.taps_h, p.height) |
                                          taps_inside(x, p.tap_w, p.taps_w, p.width) << 16
                                    : 0;
      ROOFTILE_UNROLL for (int i = 0; i < kCount; ++i) {
        if (i * kOfWarp / 32 != j) continue;
        const int from = i * kOfWarp % 32 + lane / kLanes;
        at_[i] = __shfl_sync(0xffffffff, at, from);
        inside_[i] = __shfl_sync(0xffffffff, inside, from);
      }
    }
  }
  ROOFTILE_TILE bool inside(int i, const Tap& tap) const { return (inside_[i] & tap.bits) == tap.bits; }
  /// Where the vector is, if the tap is inside.
  ROOFTILE_TILE const uint4* vector(const VectorPicture& p, int i, const Tap& tap) const {
    return p.data + (at_[i] + tap.offset);
  }

 private:
  /// Bit t: the t-th of `taps` coordinates, `step` apart, is below `size`.
  ROOFTILE_TILE static unsigned taps_inside(int first, int step, int taps, int size) {
    unsigned bits = 0;
    ROOFTILE_UNROLL_BY(1)
    for (int t = 0; t < taps; ++t, first += step)
      bits |= (static_cast<unsigned>(first) < static_cast<unsigned>(size) ? 1u : 0u) << t;
    return bits;
  }

  int at_[kCount];           ///< of the first tap's pixel
  unsigned inside_[kCount];  ///< bit r: the rows of taps that are in the picture; bit 16 + s: the columns
};

/// Where a window's filters lie in y.
ROOFTILE_TILE std::int64_t pixel_of(const ConvOutput& o, int window) {
  const int low = static_cast<int>(o.low), middle = static_cast<int>(o.middle);
  const int row = window / low, image = row / middle;
  return image * o.stride[0] + (row - image * middle) * o.stride[1] + (window - row * low) * o.stride[2];
}

}  // namespace rooftile::conv_gpu
