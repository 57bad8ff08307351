#pragma once
// How pictures and filters are stored, as the GPU's launches see it. No CUDA: conv2d.cpp refuses by it.
#include "rooftile/ops/conv2d/conv2d.problem.h"

namespace rooftile::conv_gpu {

/// `vector`: elements of 16 bytes.
inline bool in_words(std::int64_t stride, int vector = 8) { return stride % vector == 0; }
inline bool aligned(const Windows& v, int vector = 8) {
  return reinterpret_cast<std::uintptr_t>(v.data) % 16 == 0 && in_words(v.group, vector);
}
/// Whether neighbouring terms are a word: channels of one tap.
inline bool words_of_terms(const Windows& v, int vector = 8) {
  return aligned(v, vector) && v.c == 1 && in_words(v.channels, vector) && in_words(v.n, vector) &&
         in_words(v.h, vector) && in_words(v.w, vector);
}
/// Whether eight neighbouring windows are one: pixels of a row under one tap, or filters of one window.
inline bool words_of_windows(const Windows& v) {
  const bool pixels = v.w == 1 && in_words(v.columns) && v.taps_w == 1 && v.step_w == 1 && v.from_w == 0 &&
                      v.down_w == 1 && v.width == v.columns && in_words(v.n);
  const bool filters = v.n == 1 && in_words(v.images) && v.rows == 1 && v.columns == 1 && in_words(v.w);
  return aligned(v) && (pixels || filters) && in_words(v.c) && in_words(v.h);
}
/// Whether a picture's words lie along K of a product, and whether it has any.
inline bool k_first(const Windows& v, bool along_windows) {
  return along_windows ? words_of_windows(v) : words_of_terms(v);
}
inline bool has_words(const Windows& v) { return words_of_terms(v) || words_of_windows(v); }
/// Whether pictures of 16 bits can be copied in words of 16 bytes.
inline bool takes_words(DType type, const ConvProduct& p) {
  return bits(type) == 16 && has_words(p.left) && has_words(p.right);
}
/// Up to 8 filters of 128 terms: with more, tiles are fuller, and fragments are read fewer times than pixels.
inline bool takes_direct(const ConvProduct& p) { return !p.along_windows && p.m() <= 8 && p.k() <= 128; }

/// Rows and columns of taps of which a window keeps a bit each.
inline constexpr int kMaxVectorTaps = 15;
/// Whether all terms of a filter are neighbours: rows of a matrix, which the copy engine brings.
inline bool rows_of_terms(const Windows& v, int vector = 8) {
  constexpr std::int64_t kMaxStride = std::int64_t{1} << 39;  // elements: 2^40 bytes
  return words_of_terms(v, vector) && (v.taps_w == 1 || v.w == v.channels) &&
         (v.taps_h == 1 || v.h == v.taps_w * v.channels) && (v.n > 0 || v.images <= 1) && v.n < kMaxStride;
}
/// Whether offsets in the picture, zeros around it included, are 16-byte vectors counted in 31 bits.
inline bool near_vectors(const Windows& v, int vector = 8) {
  const std::int64_t kMax = std::int64_t{vector} << 30;  // elements
  const auto reach = [kMax](std::int64_t count, std::int64_t stride) {
    const std::int64_t size = stride < 0 ? -stride : stride;
    return size > kMax / (count + 1) ? kMax : count * size;
  };
  const std::int64_t high = (v.rows - 1) * v.step_h + (v.taps_h - 1) * v.tap_h - v.from_h,
                     wide = (v.columns - 1) * v.step_w + (v.taps_w - 1) * v.tap_w - v.from_w;
  return reach(v.images, v.n) + reach(high, v.h) + reach(wide, v.w) + v.channels < kMax;
}

/// f32 by large tiles: enough filters and windows to fill half of one.
inline bool takes_wide(DType type, const ConvProduct& p) {
  constexpr int kVector = 4;
  constexpr std::int64_t kMax = 0x7fffff00;
  const Windows& x = p.right;
  return type == DType::f32 && !p.along_windows && p.groups == 1 && p.m() > 32 && p.m() <= kMax &&
         p.n() > 128 && p.n() <= kMax && p.k() > 0 && x.down_h == 1 && x.down_w == 1 &&
         x.taps_h <= kMaxVectorTaps && x.taps_w <= kMaxVectorTaps && words_of_terms(x, kVector) &&
         rows_of_terms(p.left, kVector) && near_vectors(x, kVector);
}

/// Depthwise, channels of all groups as vectors in the picture and in the result.
inline constexpr int kMaxDepthwiseTaps = 49;
inline bool takes_depthwise(DType type, const ConvProduct& p) {
  const int vector = 128 / bits(type);
  constexpr std::int64_t kMax = 0x7fffff00;
  const Windows& x = p.right;
  const ConvOutput& o = p.out;
  const auto whole = [vector](std::int64_t stride) { return in_words(stride, vector); };
  return !p.along_windows && p.groups > 1 && p.m() == 1 && x.channels == 1 && whole(p.groups) &&
         x.group == 1 && o.group == 1 && o.dtype == type && p.groups <= kMax && p.n() <= kMax &&
         x.down_h == 1 && x.down_w == 1 && x.taps_h <= kMaxVectorTaps && x.taps_w <= kMaxVectorTaps &&
         x.taps_h * x.taps_w <= kMaxDepthwiseTaps && whole(x.n) && whole(x.h) && whole(x.w) &&
         whole(o.stride[0]) && whole(o.stride[1]) && whole(o.stride[2]) &&
         reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0 &&
         reinterpret_cast<std::uintptr_t>(o.data) % 16 == 0 && near_vectors(x, vector);
}

/// Filters of one tap that move by one pixel over rows of pixels in one line: a plain product.
inline bool is_product(const ConvProduct& p) {
  const Windows& x = p.right;
  return !p.along_windows && p.groups == 1 && p.k() > 0 && x.taps_h == 1 && x.taps_w == 1 && x.height == 1 &&
         x.rows == 1 && x.columns == x.width && x.step_w == 1 && x.from_h == 0 && x.from_w == 0 &&
         x.down_h == 1 && x.down_w == 1 && !takes_direct(p);
}

/// A picture's or filters' copy with its channels next to each other. Its data: the caller's.
inline Windows packed(const Windows& from) {
  Windows v = from;
  v.c = 1, v.w = v.channels, v.h = v.width * v.w, v.n = v.height * v.h, v.group = 0;
  return v;
}
inline std::int64_t packed_elements(const Windows& v) { return v.images * v.height * v.width * v.channels; }

/// Channels that are vectors but lie apart (NCHW) are copied next to each other first: one pass over a
/// picture that is read once a tap. It changes no bit.
struct Packing {
  bool picture = false, filters = false;
  std::int64_t bytes = 0, filters_at = 0;

  Packing(DType type, const ConvProduct& p) {
    const int size = bits(type) / 8, vector = 16 / size;
    if (p.groups != 1 || p.empty() || p.k() == 0 || !in_words(p.right.channels, vector)) return;
    if (takes_direct(p) || takes_words(type, p) || is_product(p)) return;
    picture = !words_of_terms(p.right, vector);
    filters = !rows_of_terms(p.left, vector);
    if (type == DType::f32) {  // small tiles take elements anyhow
      ConvProduct after = p;
      if (picture) after.right = packed(p.right);
      if (filters) after.left = packed(p.left);
      after.right.data = after.left.data = nullptr;
      if (!takes_wide(type, after)) picture = filters = false;
    }
    filters_at = picture ? (packed_elements(p.right) * size + 63) / 64 * 64 : 0;
    bytes = filters_at + (filters ? packed_elements(p.left) * size : 0);
  }
};

}  // namespace rooftile::conv_gpu
