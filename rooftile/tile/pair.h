#pragma once

namespace rooftile::tile {

/// What a lane function with two outputs gives.
template <class T>
struct Pair {
  T first, second;
};

}  // namespace rooftile::tile
