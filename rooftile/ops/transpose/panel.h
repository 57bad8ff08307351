#pragma once
// A panel of a matrix on the CPU: some squares, turned into place or into a buffer whose rows are then
// written past the caches.
#include <algorithm>
#include <cstring>

#include "rooftile/tile/cpu/turn.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// `size` elements, whole lines of memory past the caches.
template <class E>
ROOFTILE_TILE void stream_run(const E* from, std::int64_t size, E* to) {
  if constexpr (kHasStreaming) {
    const auto misfit = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) % kLineBytes);
    const std::int64_t head =
        std::min(size, misfit == 0 ? 0 : (kLineBytes - misfit) / std::int64_t(sizeof(E)));
    const std::int64_t lines = (size - head) / kLineSquare<E>, tail = size - head - lines * kLineSquare<E>;
    for (std::int64_t k = 0; k < head; ++k) to[k] = from[k];
    from += head, to += head;
    for (std::int64_t l = 0; l < lines; ++l, from += kLineSquare<E>, to += kLineSquare<E>) {
#pragma GCC unroll 4
      for (int k = 0; k < kLineSquare<E>; k += kVecLanes<E>) stream(to + k, load_unaligned<Vec<E>>(from + k));
    }
    for (std::int64_t k = 0; k < tail; ++k) to[k] = from[k];
  } else {
    std::memcpy(to, from, static_cast<std::size_t>(size) * sizeof(E));
  }
}

/// One line of x wide, so that each line is read once, row after row; four lines of y long. (From memory,
/// f32, one thread of Zen 4: 1, 2, 4 and 8 lines give 18, 22, 31 and 26 GB/s; 2 and 4 lines wide, at 4 long,
/// 22 and 16.)
template <class E>
class TransposePanel {
 public:
  /// Elements on either side.
  static constexpr std::int64_t kDown = 4 * kLineSquare<E>, kAcross = kLineSquare<E>;

  /// `scratch`: kScratchBytes, aligned to a line. `streaming`: past the caches.
  TransposePanel(std::byte* scratch, bool streaming)
      : lines_(reinterpret_cast<E*>(scratch)), turned_(lines_ + kDown * kAcross), streaming_(streaming) {}

  /// `height` rows (at most kDown) of `width` elements (at most kAcross) of x to rows of y. Pitches in
  /// elements.
  void turn(const E* x, std::int64_t x_pitch, E* y, std::int64_t y_pitch, std::int64_t height,
            std::int64_t width) {
    const bool straight = !streaming_ && height == kDown && width == kAcross;
    if (straight && fits_sets(x_pitch)) {
      for (std::int64_t i = 0; i < kDown; i += kAcross)
        turn_square<false>(x + i * x_pitch, x_pitch, y + i, y_pitch);
      return;
    }
    gather(x, x_pitch, height, width);
    for (std::int64_t i = 0; i < height; i += kAcross)
      turn_square<true>(lines_ + i * kAcross, kAcross, straight ? y + i : turned_ + i,
                        straight ? y_pitch : kDown);
    if (straight) return;
    for (std::int64_t j = 0; j < width; ++j) {
      if (streaming_)
        stream_run(turned_ + j * kDown, height, y + j * y_pitch);
      else
        std::memcpy(y + j * y_pitch, turned_ + j * kDown, static_cast<std::size_t>(height) * sizeof(E));
    }
  }

 private:
  /// Whether a square's lines can be in the first cache at once: rows that are a large power of two apart
  /// share a few of its sets. (32 KiB of 8 ways; in L2, f32, 1024 and 1040 columns: turned from where they
  /// are 0.26 and 0.87 of a copy, gathered first 0.31 and 0.56; Zen 4.)
  static bool fits_sets(std::int64_t x_pitch) {
    const std::int64_t bytes = x_pitch * std::int64_t(sizeof(E));
    return (bytes & -bytes) * kAcross <= 32 * 1024;
  }

  /// Lines side by side, each read once. Asked for three panels ahead, where they come from memory.
  void gather(const E* x, std::int64_t x_pitch, std::int64_t height, std::int64_t width) {
    for (std::int64_t i = 0; i < height; ++i, x += x_pitch) {
      E* to = lines_ + i * kAcross;
      if (streaming_) __builtin_prefetch(x + 3 * kAcross, 0, 2);
      if (width == kAcross) {
#pragma GCC unroll 4
        for (int k = 0; k < kAcross; k += kVecLanes<E>)
          store_unaligned(to + k, load_unaligned<Vec<E>>(x + k));
      } else {
        std::memcpy(to, x, static_cast<std::size_t>(width) * sizeof(E));
      }
    }
  }

  E* lines_;
  E* turned_;
  bool streaming_;
};

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
