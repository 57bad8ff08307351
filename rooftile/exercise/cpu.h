#pragma once
// For exercises in the block language: judged on this CPU.
#include "rooftile/exercise/plugin.h"
#include "rooftile/tile/tile.h"

namespace rooftile::exercise {

/// A thread that computes rows, and counts the elements that it loads of them.
class Team : public tile::CpuTeam<float, tile::Access::cached> {
 public:
  using Base = tile::CpuTeam<float, tile::Access::cached>;
  Team() : Base(nullptr) {}

  template <class T, bool kFull>
  Tile load(tile::Row<const T> x, tile::Chunk<kFull> chunk, float other = 0) const {
    counts.loads += chunk.live;
    return Base::load(x, chunk, other);
  }
  template <class T>
  struct Held {
    Base::Held<T> row;
    template <bool kFull>
    Tile operator[](tile::Chunk<kFull> chunk) const {
      counts.loads += chunk.live;
      return row[chunk];
    }
  };
  template <class T>
  Held<T> hold(tile::Row<const T> row, float other) {
    return {Base::hold(row, other)};
  }
  using Base::hold;
};

}  // namespace rooftile::exercise

/// The one kernel: launch(const CpuLaunch&, const …Problem&), in place of that function's variant.
#define ROOFTILE_EXERCISE_KERNEL(function, variant, launch)                                     \
  ROOFTILE_EXERCISE_COUNTS                                                                      \
  extern "C" __attribute__((visibility("default"))) const rooftile::Plugin* rooftile_plugin() { \
    using namespace rooftile;                                                                   \
    static const PluginEntry table[] = {entry<launch>(function, variant)};                      \
    static const Plugin plugin{kPluginVersion, ROOFTILE_BACKEND, 1, table};                     \
    return &plugin;                                                                             \
  }
