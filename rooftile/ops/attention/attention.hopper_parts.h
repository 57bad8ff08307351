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

/// i + kFar is beyond every key.
inline constexpr std::int64_t kFar = std::int64_t{1} << 30;
ROOFTILE_ATTENTION int within_far(std::int64_t x) {
  return static_cast<int>(x < -kFar ? -kFar : x > kFar ? kFar : x);
}

/// A sequence: where in a batch its rows begin. Its query i sees its keys from max(0, i + back) to before
/// min(keys, i + reach).
struct HopperSequence {
  int first_query, queries, first_key, keys;
  int back, reach;

  ROOFTILE_ATTENTION static HopperSequence of(const AttentionProblem& p,
                                              const AttentionProblem::Sequence& its) {
    const std::int64_t more = its.keys - its.queries;
    return {static_cast<int>(its.first_query),
            static_cast<int>(its.queries),
            static_cast<int>(its.first_key),
            static_cast<int>(its.keys),
            p.left < 0 || p.left > kFar ? static_cast<int>(-kFar) : within_far(more - p.left),
            p.right < 0 || p.right > kFar ? static_cast<int>(kFar) : within_far(more + p.right + 1)};
  }
};

/// A launch.
struct HopperRun {
  HopperSequence whole;  ///< a batch, where it is not cut into sequences
  int heads, share;      ///< share: heads of q to one of k
  int row_tiles, together, tiles;
  HopperSteps q, k, v;
  bool loads, stores;  ///< q, k and v come, y goes by the copy engine; else by threads
  unsigned* counter;   ///< of tiles drawn; null: each block takes every so many
};

/// Queries of a sequence from `row` on, through tiles of keys from `first` to `last`: at least one.
struct HopperTile {
  int row, head, batch, first, last;
  HopperSequence its;
};

/// What a consumer's warp has of y: sums of chunks before the one in registers, of four neighbours that a
/// lane has each, and in the end boxes for the copy engine.
template <class T, class Shape>
union alignas(1024) HopperOutput {
  float4 sums[Shape::kKeepsSums ? Shape::kSize / 8 : 1][32];
  std::byte boxes[Shape::kBuffers][16 * 64 * sizeof(T)];
};

/// Rows of 128 bytes, 64 channels, with the copy engine's swizzle.
template <class T, class Shape>
struct alignas(1024) HopperShared {
  static constexpr int kBoxes = Shape::kSize / 64, kTileElements = Shape::kKeys * Shape::kSize;
  T q[Shape::kQueries * Shape::kSize];
  T k[Shape::kStages][kTileElements];
  T v[Shape::kStages][kTileElements];
  HopperOutput<T, Shape> y[Shape::kConsumers * 4];  ///< of each warp
  float4 totals[Shape::kConsumers * 4][8];          ///< weights of sums' rows, two of four lanes each
  float2 between[Shape::kConsumers * 4][8];         ///< what their sums shrink by between a tile's parts
  // mbarriers
  std::uint64_t q_full, q_empty, k_full[Shape::kStages], k_empty[Shape::kStages], v_full[Shape::kStages],
      v_empty[Shape::kStages];
  int tile;           ///< goes with q; -1: there is no more
  HopperTile packed;  ///< goes with it, where batches are cut into sequences
};

/// Tiles by number: heads side by side, the last queries first, which under a causal mask see the most keys.
/// A batch that is cut has some without a query (AttentionProblem::tiles): their row is past the sequence's
/// end.
template <class Shape, bool kPacked>
ROOFTILE_TILE HopperTile tile_at(const AttentionProblem& p, const HopperRun& run, int heads, int t) {
  const int before = t / (run.together * run.row_tiles) * run.together;
  const int width = heads - before < run.together ? heads - before : run.together;
  const int within = t - before * run.row_tiles, head = before + within % width;
  std::int64_t index = run.row_tiles - 1 - within / width;
  HopperTile tile{0, head % run.heads, head / run.heads, 0, 0, run.whole};
  if constexpr (kPacked)
    tile.its = HopperSequence::of(p, p.sequence_of<true>(index, Shape::kQueries));
  else
    index *= Shape::kQueries;
  const HopperSequence& its = tile.its;
  const int row = tile.row = static_cast<int>(index);
  const int past = row + Shape::kQueries < its.queries ? row + Shape::kQueries : its.queries;
  const int begin = row + its.back, end = past - 1 + its.reach < its.keys ? past - 1 + its.reach : its.keys;
  const int last = (end - 1) / Shape::kKeys;
  tile.first = begin < 0 ? 0 : begin / Shape::kKeys;
  tile.last = end > 0 && last > tile.first ? last : tile.first;
  return tile;
}

}  // namespace rooftile::attention_gpu
