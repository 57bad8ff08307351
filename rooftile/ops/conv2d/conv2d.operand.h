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

}  // namespace rooftile::conv_gpu
