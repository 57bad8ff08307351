#pragma once
// How pictures and filters are stored, as the GPU's launches see it. No CUDA: conv2d.cpp refuses by it.
#include "rooftile/ops/conv2d/conv2d.problem.h"

namespace rooftile::conv_gpu {

inline bool in_words(std::int64_t stride) { return stride % 8 == 0; }
inline bool aligned(const Windows& v) {
  return reinterpret_cast<std::uintptr_t>(v.data) % 16 == 0 && in_words(v.group);
}
/// Whether eight neighbouring terms are a word: channels of one tap.
inline bool words_of_terms(const Windows& v) {
  return aligned(v) && v.c == 1 && in_words(v.channels) && in_words(v.n) && in_words(v.h) && in_words(v.w);
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

/// Rows and columns of taps that Hopper's kernel takes: of each a window has as many bits.
inline constexpr int kMaxHopperTaps = 15;
/// Whether all terms of a filter are neighbours: rows of a matrix, which the copy engine brings.
inline bool rows_of_terms(const Windows& v) {
  constexpr std::int64_t kMaxStride = std::int64_t{1} << 39;  // elements: 2^40 bytes
  return words_of_terms(v) && (v.taps_w == 1 || v.w == v.channels) &&
         (v.taps_h == 1 || v.h == v.taps_w * v.channels) && (v.n > 0 || v.images <= 1) && v.n < kMaxStride;
}
/// Whether offsets in the picture, zeros around it included, are 16-byte vectors counted in 31 bits.
inline bool near_vectors(const Windows& v) {
  constexpr std::int64_t kMax = std::int64_t{1} << 33;  // elements
  const auto reach = [](std::int64_t count, std::int64_t stride) {
    const std::int64_t size = stride < 0 ? -stride : stride;
    return size > kMax / (count + 1) ? kMax : count * size;
  };
  const std::int64_t high = (v.rows - 1) * v.step_h + (v.taps_h - 1) * v.tap_h - v.from_h,
                     wide = (v.columns - 1) * v.step_w + (v.taps_w - 1) * v.tap_w - v.from_w;
  return reach(v.images, v.n) + reach(high, v.h) + reach(wide, v.w) + v.channels < kMax;
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
    if (bits(type) != 16 || p.groups != 1 || p.empty() || p.k() == 0 || !in_words(p.right.channels)) return;
    if (takes_direct(p) || takes_words(type, p)) return;
    picture = !words_of_terms(p.right);
    filters = !rows_of_terms(p.left);
    filters_at = picture ? (packed_elements(p.right) * 2 + 63) / 64 * 64 : 0;
    bytes = filters_at + (filters ? packed_elements(p.left) * 2 : 0);
  }
};

}  // namespace rooftile::conv_gpu
