#pragma once
// What passes from validation (conv2d.cpp) to the launches (conv2d.cpu.cpp, conv2d.cu). Convolution and its
// gradients are one thing: a product of two matrices of which one or both are pictures, seen by windows.
#include <cstdint>

#include "rooftile/core/dtype.h"

namespace rooftile {

/// A picture as a matrix. Its rows are windows (n, p, q), its columns terms (r, s, c), the last ones next to
/// each other: the element is the pixel of channel c at ((p·step + r·tap + from)/down, …), and 0 outside the
/// picture or where `down` does not divide. A filter {K, C, R, S} is K pictures of one window.
struct Windows {
  const void* data = nullptr;
  std::int64_t n = 0, c = 0, h = 0, w = 0;            ///< strides in elements
  std::int64_t group = 0;                             ///< from one group's first element to the next one's
  std::int64_t height = 1, width = 1;                 ///< of the picture
  std::int64_t images = 0, rows = 1, columns = 1;     ///< N, P, Q
  std::int64_t taps_h = 1, taps_w = 1, channels = 0;  ///< R, S, and C of a group
  std::int64_t step_h = 1, step_w = 1;                ///< from a window to the next one
  std::int64_t tap_h = 1, tap_w = 1;                  ///< from a tap to the next one
  std::int64_t from_h = 0, from_w = 0, down_h = 1, down_w = 1;

  std::int64_t windows() const { return images * rows * columns; }
  std::int64_t terms() const { return taps_h * taps_w * channels; }
};

/// Where element (i, j) of a product lies: i·i_stride + the digits of j, the last below `low`, the one before
/// it below `middle`.
struct ConvOutput {
  void* data = nullptr;
  std::int64_t i_stride = 0, group = 0;
  std::int64_t middle = 1, low = 1, stride[3] = {0, 0, 0};
  DType dtype = DType::f32;

  std::int64_t offset(std::int64_t j) const {
    const std::int64_t row = j / low;
    return row / middle * stride[0] + row % middle * stride[1] + j % low * stride[2];
  }
};

/// out[i, j] = Σ left(i, ·)·right(j, ·), in each of `groups` groups. Along terms i and j are windows, i of
/// the filter; along windows i is a channel of left, and j a term of right. `ones`: one column more, of left
/// times 1: the bias's gradient.
struct ConvProduct {
  Windows left, right;
  ConvOutput out, ones;  ///< ones: i_stride alone; without data: not wanted
  std::int64_t groups = 1;
  bool along_windows = false;

  std::int64_t m() const { return along_windows ? left.terms() : left.windows(); }
  /// Columns; where only the ones are wanted, none before them.
  std::int64_t n() const { return !along_windows ? right.windows() : out.data ? right.terms() : 0; }
  std::int64_t columns() const { return n() + (ones.data ? 1 : 0); }
  std::int64_t k() const { return along_windows ? left.windows() : left.terms(); }
  bool empty() const { return groups == 0 || m() == 0 || columns() == 0; }
};

/// A copy whose channels lie next to each other.
struct ConvPack {
  Windows from, to;
};

struct ConvProblem {
  const char* function = "conv2d";
  ConvProduct products[2];
  int count = 0;
  ConvPack packs[2];  ///< before the products
  int pack_count = 0;
  DType dtype = DType::f32;    ///< of both factors
  const void* bias = nullptr;  ///< of i; null: none
  DType bias_dtype = DType::f32;
  std::int64_t bias_stride = 0, bias_group = 0;
  int activation = 0;  ///< a GemmActivation
  float* partials = nullptr;
};

/// Along windows a GPU cuts the sums in as many parts of as many windows: by the sizes alone.
struct ConvParts {
  std::int64_t length = 1, count = 1;
};
inline ConvParts conv_parts(const ConvProduct& p) {
  // 512 tiles of 64x128 fill any GPU a few times; parts of fewer than 512 windows cost more than they save.
  const auto ceil_div = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  const std::int64_t k = p.k(), tiles = p.groups * ceil_div(p.m(), 64) * ceil_div(p.columns(), 128);
  std::int64_t count = tiles > 0 ? 512 / tiles : 1;
  if (count > k / 512) count = k / 512;
  if (count < 1) count = 1;
  const std::int64_t length = ceil_div(ceil_div(k, count), 32) * 32;  // whole stages
  return length == 0 ? ConvParts{32, 1} : ConvParts{length, ceil_div(k, length)};
}
inline std::int64_t conv_partials(const ConvProduct& p) {
  return conv_parts(p).count * p.groups * p.m() * p.columns();
}

}  // namespace rooftile
