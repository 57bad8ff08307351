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

template <class E>
class TransposePanel {
 public:
  /// Elements on either side.
  static constexpr std::int64_t kDown = 4 * kLineSquare<E>, kAcross = 4 * kLineSquare<E>;

  /// `scratch`: kScratchBytes.
  TransposePanel(std::byte* scratch, bool streaming)
      : edge_(reinterpret_cast<E*>(scratch)),
        turned_(reinterpret_cast<E*>(scratch) + kSquare * kSquare),
        streaming_(streaming) {
    static_assert((kSquare * kSquare + kDown * kAcross) * sizeof(E) <= 256 * 1024);
  }

  /// `height` rows (at most kDown) of `width` elements (at most kAcross) of x to rows of y. Pitches in
  /// elements.
  void turn(const E* x, std::int64_t x_pitch, E* y, std::int64_t y_pitch, std::int64_t height,
            std::int64_t width) {
    for (std::int64_t j = 0; j < width; j += kSquare) {
      const std::int64_t columns = std::min(kSquare, width - j);
      for (std::int64_t i = 0; i < height; i += kSquare)
        square(x + i * x_pitch + j, x_pitch, y + j * y_pitch + i, y_pitch, std::min(kSquare, height - i),
               columns, turned_ + i);
      if (streaming_)
        for (std::int64_t c = 0; c < columns; ++c)
          stream_run(turned_ + c * kDown, height, y + (j + c) * y_pitch);
    }
  }

 private:
  static constexpr std::int64_t kSquare = kLineSquare<E>;

  /// One square, or what there is of one; streaming, to `waiting`.
  void square(const E* x, std::int64_t x_pitch, E* y, std::int64_t y_pitch, std::int64_t height,
              std::int64_t width, E* waiting) {
    const bool whole = height == kSquare && width == kSquare;
    if (!whole) {
      for (std::int64_t r = 0; r < height; ++r)
        std::memcpy(edge_ + r * kSquare, x + r * x_pitch, static_cast<std::size_t>(width) * sizeof(E));
      x = edge_;
      x_pitch = kSquare;
    }
    if (streaming_) return turn_square(x, x_pitch, waiting, kDown);
    if (whole) return turn_square(x, x_pitch, y, y_pitch);
    turn_square(x, x_pitch, turned_, kSquare);
    for (std::int64_t c = 0; c < width; ++c)
      std::memcpy(y + c * y_pitch, turned_ + c * kSquare, static_cast<std::size_t>(height) * sizeof(E));
  }

  E* edge_;
  E* turned_;
  bool streaming_;
};

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
