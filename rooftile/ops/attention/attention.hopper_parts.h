#pragma once
// What the producer and the consumers of the forward on Hopper share: a block's shared memory, its tiles, and
// which keys their queries see.
#include "rooftile/backend/cuda/hopper.h"
#include "rooftile/ops/attention/attention.gpu.h"
#include "rooftile/ops/attention/attention.hopper_plan.h"

namespace rooftile::attention_gpu {

/// An operand's last two coordinates in its tensor map, for each head and batch: 1, or where all are one, 0.
struct HopperSteps {
  int head, batch;
};

/// A launch. Query i sees the keys from max(0, i + back) to before min(T, i + reach).
struct HopperRun {
  int queries, keys, heads, share;  ///< share: heads of q to one of k
  int back, reach;
  int row_tiles, together, tiles;
  HopperSteps q, k, v;
  bool loads, stores;  ///< q, k and v come, y goes by the copy engine; else by threads
  unsigned* counter;   ///< of tiles drawn; null: each block takes every so many
  float factor;        ///< from a score to its power of 2
};

/// Rows of 128 bytes, 64 channels, with the copy engine's swizzle.
template <class T, class Shape>
struct alignas(1024) HopperShared {
  static constexpr int kBoxes = Shape::kSize / 64, kTileElements = Shape::kKeys * Shape::kSize;
  T q[Shape::kQueries * Shape::kSize];
  T k[Shape::kStages][kTileElements];
  T v[Shape::kStages][kTileElements];
  std::byte y[Shape::kConsumers * 4][Shape::kBuffers][16 * 64 * sizeof(T)];  ///< of each warp
  // mbarriers
  std::uint64_t q_full, q_empty, k_full[Shape::kStages], k_empty[Shape::kStages], v_full[Shape::kStages],
      v_empty[Shape::kStages];
  int tile;  ///< goes with q; -1: there is no more
};

/// Queries from `row` on, through tiles of keys from `last` down to `first`: at least one.
struct HopperTile {
  int row, head, batch, first, last;
};

/// Tiles by number: heads side by side, the last queries first, which under a causal mask see the most keys.
template <class Shape>
ROOFTILE_TILE HopperTile tile_at(const HopperRun& run, int heads, int t) {
  const int before = t / (run.together * run.row_tiles) * run.together;
  const int width = heads - before < run.together ? heads - before : run.together;
  const int within = t - before * run.row_tiles, head = before + within % width;
  const int row = (run.row_tiles - 1 - within / width) * Shape::kQueries;
  const int past = row + Shape::kQueries < run.queries ? row + Shape::kQueries : run.queries;
  const int begin = row + run.back, end = past - 1 + run.reach < run.keys ? past - 1 + run.reach : run.keys;
  const int first = begin < 0 ? 0 : begin / Shape::kKeys, last = (end - 1) / Shape::kKeys;
  return {row, head % run.heads, head / run.heads, first, end > 0 && last > first ? last : first};
}

}  // namespace rooftile::attention_gpu
