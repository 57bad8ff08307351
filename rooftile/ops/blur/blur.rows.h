#pragma once
// What both blurs share on the CPU: which part of which picture a thread computes, and its rows.
#include <algorithm>
#include <cstring>

#include "rooftile/ops/blur/blur.problem.h"
#include "rooftile/tile/cpu/launch.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// Rows [top, bottom) and columns [left, right) of a picture.
struct BlurPart {
  std::int64_t picture, top, bottom, left, right;
};

/// Calls body(scratch, part) on a share of the pictures for each thread: tiles of `width` columns, and bands
/// of rows where there are fewer tiles than threads. Sums are exact: where parts end never shows.
template <class Body>
void for_blur_parts(const CpuLaunch& launch, const Pictures& p, std::int64_t width, std::int64_t weight,
                    Body body) {
  if (p.count == 0) return;
  const std::int64_t tiles = (p.width + width - 1) / width, columns = p.count * tiles;
  const std::int64_t bands = std::clamp<std::int64_t>((launch.threads + columns - 1) / columns, 1, p.height);
  for_programs(launch, columns * bands, weight * p.count * p.height * p.width * p.channels,
               [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                 for (std::int64_t part = begin; part < end; ++part) {
                   const std::int64_t band = part % bands, tile = part / bands % tiles;
                   body(scratch,
                        BlurPart{part / bands / tiles, p.height * band / bands, p.height * (band + 1) / bands,
                                 tile * width, std::min(p.width, (tile + 1) * width)});
                 }
               });
}

/// Columns [left, right) of a picture's rows, side by side.
struct BlurRows {
  const Pictures& p;
  const std::uint8_t* x;  // of the picture
  std::int64_t left, right;
  const std::uint8_t* zeros;  // as many as a row has

  /// Where the row that stands at position `row` begins.
  const std::uint8_t* place(std::int64_t row) const {
    row = border_pixel(p.border, p.height, row);
    return row == kNoPixel ? zeros : x + row * p.x_row + left * p.x_pixel;
  }
  /// The row; gathered into `buffer` where its elements are apart.
  const std::uint8_t* operator()(std::int64_t row, std::uint8_t* buffer) const {
    const std::uint8_t* from = place(row);
    if (p.dense_x() || from == zeros) return from;
    for (std::int64_t i = 0; i < right - left; ++i) buffer[i] = from[i * p.x_pixel];
    return buffer;
  }
};

/// Elements of a row of y, from `buffer` to where they belong.
inline void scatter_row(const std::uint8_t* buffer, std::int64_t pixels, std::int64_t stride,
                        std::uint8_t* to) {
  for (std::int64_t i = 0; i < pixels; ++i) to[i * stride] = buffer[i];
}

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
