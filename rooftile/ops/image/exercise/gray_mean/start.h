// Exercise gray_mean: the mean of the three channels, without a division.
#pragma once
#include "rooftile/tile/tile.h"

using namespace rooftile::tile;

/// One row: gray = (red + green + blue) / 3, to the nearest whole number.
/// What you need: weigh(pixels[chunk], a, b, c) is a·red + b·green + c·blue in integers; + and >> work on it;
/// multiply_short(v, c) is v · c for v and c below 2^15; team.store(gray, chunk, v).
template <class Team>
void gray_mean(Team team, const Pixels& rgb, Row<std::uint8_t> gray) {
  auto pixels = team.hold(rgb);
  team.each(gray.size, [&](auto chunk) {
    team.store(gray, chunk, weigh(pixels[chunk], 0, 0, 0));  // your line
  });
}
