#pragma once
// The producer of the backward on Hopper, and what it shares with the consumers. The copy engine (TMA) brings
// tiles of q, k, v and dy, asked by one thread; or, where strides or addresses are not for it, the 128
// threads of the warpgroup gather elements into the same places. What a block of keys has to know of each
// query comes by threads.
#include "rooftile/ops/attention/attention.hopper_load.h"
#include "rooftile/ops/attention/attention.mma_backward.h"

namespace rooftile::attention_gpu {

/// kSize: channels of a head; kOthers: rows of a tile of others; kStages: such tiles on chip.
template <class T_, int kSize_, int kOthers_, int kStages_, bool kKeys_>
struct HopperBackwardShape {
  using T = T_;
  static constexpr int kSize = kSize_, kOthers = kOthers_, kStages = kStages_;
  static constexpr bool kKeys = kKeys_;  ///< own rows are keys; else queries
  static constexpr int kConsumers = 2, kRows = 64 * kConsumers, kThreads = 128 * (1 + kConsumers);
  static constexpr int kFewRegisters = 24, kManyRegisters = 240;
  /// Weights and their gradients have registers of their own. With dk and dv of 128 channels there is no room
  /// for both: ptxas would put a wait behind each wgmma.
  static constexpr bool kApart = kSize == 64;
};

/// A launch. Own row r meets the others from max(0, r + low) to before min(others, r + high).
struct HopperBackwardRun {
  int rows, others;
  int low, high;
  int share;  ///< heads of q to one of k
  HopperSteps own[2], other[2];
  bool loads, stores;  ///< by the copy engine; else by threads
  std::int64_t together;
  float factor;  ///< from a score to its power of 2
};

/// Own k and v, others q and dy; or own q and dy, others k and v. Rows of 128 bytes, 64 channels, with the
/// copy engine's swizzle.
template <class Shape>
struct alignas(1024) HopperBackwardShared {
  typename Shape::T own[2][Shape::kRows * Shape::kSize];  ///< at the end the gradients, on their way out
  typename Shape::T other[2][Shape::kStages][Shape::kOthers * Shape::kSize];
  float base[Shape::kStages][Shape::kOthers], delta[Shape::kStages][Shape::kOthers];  ///< of others: queries
  // mbarriers
  std::uint64_t own_full, full[2][Shape::kStages], empty[2][Shape::kStages];
};

/// A block's rows from `row` on, through tiles of others from `first` to before `end`, of each head from
/// `other_head` to before `other_end`.
struct HopperBackwardTile {
  int row, head, batch, first, end, other_head, other_end;
};

#if defined(ROOFTILE_HAS_HOPPER)
namespace hopper {

/// Blocks by number: heads side by side; first those that under a causal mask meet the most, the last queries
/// or the first keys.
template <class Shape>
ROOFTILE_TILE HopperBackwardTile backward_tile(const AttentionProblem& p, const HopperBackwardRun& run) {
  constexpr int kRows = Shape::kRows, kOthers = Shape::kOthers;
  const Place place(p.b, Shape::kKeys ? p.g : p.h, run.rows, kRows, run.together);
  const int last = (run.rows - 1) / kRows * kRows, at = static_cast<int>(place.first);
  HopperBackwardTile tile;
  tile.row = Shape::kKeys ? last - at : at;
  tile.head = static_cast<int>(place.head), tile.batch = static_cast<int>(place.batch);
  const int past = tile.row + kRows < run.rows ? tile.row + kRows : run.rows;
  const int begin = tile.row + run.low,
            end = past - 1 + run.high < run.others ? past - 1 + run.high : run.others;
  tile.first = begin < 0 ? 0 : begin / kOthers;
  tile.end = end <= 0 ? 0 : (end + kOthers - 1) / kOthers;
  tile.other_head = Shape::kKeys ? tile.head * run.share : tile.head / run.share;
  tile.other_end =
      tile.first >= tile.end ? tile.other_head : tile.other_head + (Shape::kKeys ? run.share : 1);
  return tile;
}

/// What a query's weights and their gradients follow from. Past the last query each weight is 0.
struct QueryNumbers {
  float base, delta;

  template <class T>
  ROOFTILE_TILE static QueryNumbers of(const AttentionProblem& p, int batch, int head, int query,
                                       int queries) {
    if (query >= queries) return {HUGE_VALF, 0};
    const float lse = p.lse[batch * p.lse_stride[0] + head * p.lse_stride[1] + query * p.lse_stride[2]];
    return {power_base(lse, std::is_same_v<T, f16> ? 7 : 0), delta_of(HeadRows<T>(p.dq, batch, head), query)};
  }
};

/// f(its head, its tile, a place in the ring) for each tile of others.
template <class Shape, class F>
ROOFTILE_TILE void each_tile(const HopperBackwardTile& tile, F&& f) {
  Ring<Shape::kStages> ring;
  ROOFTILE_UNROLL_BY(1)
  for (int head = tile.other_head; head < tile.other_end; ++head)
    ROOFTILE_UNROLL_BY(1) for (int n = tile.first; n < tile.end; ++n, ring.next()) f(head, n, ring);
}

template <class Shape>
ROOFTILE_TILE void bring_by_engine(HopperBackwardShared<Shape>& shared, const TensorMap* const (&own)[2],
                                   const TensorMap* const (&other)[2], const HopperBackwardRun& run,
                                   const HopperBackwardTile& tile) {
  using T = typename Shape::T;
  ROOFTILE_UNROLL for (int side = 0; side < 2; ++side) bring_boxes<T, Shape::kSize, Shape::kRows>(
      shared.own[side], &shared.own_full, own[side], run.own[side], tile.row, tile.head, tile.batch);
  each_tile<Shape>(tile, [&](int head, int n, const auto& ring) {
    ROOFTILE_UNROLL for (int side = 0; side < 2; ++side) {
      mbarrier_wait(&shared.empty[side][ring.slot], ring.phase ^ 1);
      bring_boxes<T, Shape::kSize, Shape::kOthers>(shared.other[side][ring.slot],
                                                   &shared.full[side][ring.slot], other[side],
                                                   run.other[side], n * Shape::kOthers, head, tile.batch);
    }
  });
}
/// Beside the engine: the queries' numbers, by 96 threads, which have them in hand before there is room.
template <class Shape>
ROOFTILE_TILE void bring_numbers(HopperBackwardShared<Shape>& shared, const AttentionProblem& p,
                                 const HopperBackwardRun& run, const HopperBackwardTile& tile) {
  static_assert(!Shape::kKeys || Shape::kOthers <= 96);
  const int i = static_cast<int>(threadIdx.x) - 32;
  each_tile<Shape>(tile, [&](int head, int n, const auto& ring) {
    const QueryNumbers numbers = QueryNumbers::of<typename Shape::T>(
        p, tile.batch, head, n * Shape::kOthers + i, i < Shape::kOthers ? run.others : 0);
    mbarrier_wait(&shared.empty[1][ring.slot], ring.phase ^ 1);
    if (i < Shape::kOthers)
      shared.base[ring.slot][i] = numbers.base, shared.delta[ring.slot][i] = numbers.delta;
    mbarrier_arrive(&shared.full[1][ring.slot]);
  });
}
template <class Shape>
ROOFTILE_TILE void bring_by_threads(HopperBackwardShared<Shape>& shared, const AttentionProblem& p,
                                    const HopperBackwardRun& run, const HopperBackwardTile& tile) {
  using T = typename Shape::T;
  constexpr int kSize = Shape::kSize, kOthers = Shape::kOthers;
  const AttentionOperand* const own[2] = {Shape::kKeys ? &p.k : &p.q, Shape::kKeys ? &p.v : &p.dy};
  const AttentionOperand* const other[2] = {Shape::kKeys ? &p.q : &p.k, Shape::kKeys ? &p.dy : &p.v};
  ROOFTILE_UNROLL_BY(1)
  for (int side = 0; side < 2; ++side)
    gather_boxes<T, kSize, Shape::kRows>(shared.own[side], &shared.own_full,
                                         HeadRows<T>(*own[side], tile.batch, tile.head), tile.row, run.rows,
                                         kSize);
  each_tile<Shape>(tile, [&](int head, int n, const auto& ring) {
    ROOFTILE_UNROLL_BY(1) for (int side = 0; side < 2; ++side) {
      mbarrier_wait(&shared.empty[side][ring.slot], ring.phase ^ 1);
      if (const int i = static_cast<int>(threadIdx.x); Shape::kKeys && side == 1 && i < kOthers) {
        const QueryNumbers numbers = QueryNumbers::of<T>(p, tile.batch, head, n * kOthers + i, run.others);
        shared.base[ring.slot][i] = numbers.base, shared.delta[ring.slot][i] = numbers.delta;
      }
      gather_boxes<T, kSize, kOthers>(shared.other[side][ring.slot], &shared.full[side][ring.slot],
                                      HeadRows<T>(*other[side], tile.batch, head), n * kOthers, run.others,
                                      kSize);
    }
  });
}

}  // namespace hopper
#endif

}  // namespace rooftile::attention_gpu
