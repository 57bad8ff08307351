#pragma once
#include "rooftile/tile/tile.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

// [gray]
/// One row: gray = (a·red + b·green + c·blue + 500) / 1000, rounded down; the weights are in thousandths, of
/// sum 1000.
///
/// The division is exact without one: 1000 = 8·125, and v / 125 = (v + 1)·16777 / 2^21, both rounded down,
/// for v up to 77 749; here v is at most (255 000 + 500) / 8. The + 1 is the 8 in 508. Numbers this small
/// need half a multiplier.
template <class Team>
ROOFTILE_TILE void rgb_to_gray(Team team, const Pixels& rgb, Row<std::uint8_t> gray, int a, int b, int c) {
  auto pixels = team.hold(rgb);
  team.each(gray.size, [&](auto chunk) {
    const auto sum = weigh(pixels[chunk], a, b, c);  // 0 to 255 000
    team.store(gray, chunk, multiply_short((sum + 508) >> 3, 16777) >> 21);
  });
}
// [/gray]

}  // namespace rooftile::kernels
