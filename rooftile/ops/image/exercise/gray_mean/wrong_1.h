// Wrong [values]: the factor is rounded down
#pragma once
#include "rooftile/tile/tile.h"

using namespace rooftile::tile;

// [mean]
/// One row: gray = (red + green + blue) / 3, to the nearest whole number.
///
/// A third of s is never halfway between two, so the nearest is ⌊(s + 1) / 3⌋. And 3·21846 = 2^16 + 2, so
/// v·21846 / 2^16 is too large by v·2 / (3·2^16), less than the third that it may be while v < 2^15; here v
/// is at most 766.
template <class Team>
void gray_mean(Team team, const Pixels& rgb, Row<std::uint8_t> gray) {
  auto pixels = team.hold(rgb);
  team.each(gray.size, [&](auto chunk) {
    team.store(gray, chunk, multiply_short(weigh(pixels[chunk], 1, 1, 1) + 1, 21845) >> 16);
  });
}
// [/mean]
