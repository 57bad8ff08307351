#pragma once
// Lane functions that know which element a lane is.
#include <cstdint>

namespace rooftile::tile {

/// What runs for lane function f: f, or what f.start() gives, where some of its numbers are in memory.
template <class F>
ROOFTILE_TILE auto started(const F& f) {
  if constexpr (requires { f.start(); })
    return f.start();
  else
    return f;
}
/// f(tiles…), or, of an f with kIndexed, f(index, tiles…): of the first lane's element in row-major order.
template <class F, class... Tiles>
ROOFTILE_TILE auto lanes_of(const F& f, [[maybe_unused]] std::int64_t index, const Tiles&... tiles) {
  if constexpr (requires { F::kIndexed; })
    return f(static_cast<std::uint64_t>(index), tiles...);
  else
    return f(tiles...);
}

}  // namespace rooftile::tile
