#pragma once
// The producer of the forward on Hopper: a warpgroup with few registers that keeps the rings of keys and
// values full. One thread of it asks the copy engine (TMA) for boxes; or, where strides or addresses are not
// for that, all its threads gather elements into the same places. So a row's bits do not depend on how it
// lies.
#include "rooftile/ops/attention/attention.hopper_parts.h"
#include "rooftile/tile/cuda/memory.h"

namespace rooftile::attention_gpu {

#if defined(ROOFTILE_HAS_HOPPER)
namespace hopper {
using namespace rooftile::cuda;

/// The mbarriers of q and of the rings, which so many threads fill.
template <class T, class Shape>
ROOFTILE_TILE void begin_rings(HopperShared<T, Shape>& shared, unsigned producers) {
  if (threadIdx.x == 0) {
    const unsigned consumers = Shape::kConsumers;
    mbarrier_init(&shared.q_full, producers);
    mbarrier_init(&shared.q_empty, 4 * consumers);  // of each warp: all of them read `tile`
    for (int i = 0; i < Shape::kStages; ++i) {
      mbarrier_init(&shared.k_full[i], producers);
      mbarrier_init(&shared.k_empty[i], consumers);
      mbarrier_init(&shared.v_full[i], producers);
      mbarrier_init(&shared.v_empty[i], consumers);
    }
    fence_mbarrier_init();
  }
  __syncthreads();
}

/// kRows rows of a head, by one thread.
template <class T, int kSize, int kRows>
ROOFTILE_TILE void bring_boxes(T* to, std::uint64_t* full, const TensorMap* map, const HopperSteps& steps,
                               int row, int head, int batch) {
  mbarrier_arrive_expect_tx(full, unsigned{kRows * kSize * sizeof(T)});
  ROOFTILE_UNROLL for (int i = 0; i < kSize / 64; ++i)
      tensor_load(to + i * kRows * 64, map, full, {i * 64, row, head * steps.head, batch * steps.batch});
}
/// The same by 128 threads, 8 elements at a time; zeros past the ends.
template <class T, int kSize, int kRows>
ROOFTILE_TILE void gather_boxes(T* to, std::uint64_t* full, const HeadRows<T>& from, int row, int rows,
                                int channels) {
  constexpr int kWords = kSize / 8;
  ROOFTILE_UNROLL_BY(1)
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kWords; i += 128) {
    const int r = i / kWords, word = i % kWords;
    const int live = row + r < rows ? channels - word * 8 : 0;
    T* const place = to + (word / 8 * kRows + r) * 64 + ((word % 8) ^ (r % 8)) * 8;
    *reinterpret_cast<uint4*>(place) = tile::gather_word(from.row(row + r) + word * 8 * from.stride,
                                                         from.stride, live, tile::narrow<T>(0.f));
  }
  fence_proxy_async();
  mbarrier_arrive(full);
}

template <class T, class Shape>
ROOFTILE_TILE void gather_values(T* to, std::uint64_t* full, const AttentionProblem& p, const HopperRun& run,
                                 const HopperTile& t, int n) {
  gather_boxes<T, Shape::kSize, Shape::kKeys>(to, full, HeadRows<T>{p.v, t.batch, t.head / run.share},
                                              t.its.first_key + n * Shape::kKeys,
                                              t.its.first_key + t.its.keys, static_cast<int>(p.e));
}

/// By one thread; or, where batches are cut into sequences, by 128, for the tile of values at a sequence's
/// end they gather: what lies behind it is another's, and a weight of 0 times that might be NaN.
template <class T, class Shape, bool kPacked>
struct EngineSource {
  const AttentionProblem& p;
  const TensorMap *q, *k, *v;

  ROOFTILE_TILE void bring_q(T* to, std::uint64_t* full, const HopperRun& run, const HopperTile& t) const {
    if (kPacked && threadIdx.x != 0) return mbarrier_arrive(full);
    bring_boxes<T, Shape::kSize, Shape::kQueries>(to, full, q, run.q, t.its.first_query + t.row, t.head,
                                                  t.batch);
  }
  ROOFTILE_TILE void bring_k(T* to, std::uint64_t* full, const HopperRun& run, const HopperTile& t,
                             int n) const {
    if (kPacked && threadIdx.x != 0) return mbarrier_arrive(full);
    bring_boxes<T, Shape::kSize, Shape::kKeys>(to, full, k, run.k, t.its.first_key + n * Shape::kKeys,
                                               t.head / run.share, t.batch);
  }
  ROOFTILE_TILE void bring_v(T* to, std::uint64_t* full, const HopperRun& run, const HopperTile& t,
                             int n) const {
    if (kPacked && (n + 1) * Shape::kKeys > t.its.keys)
      return gather_values<T, Shape>(to, full, p, run, t, n);
    if (kPacked && threadIdx.x != 0) return mbarrier_arrive(full);
    bring_boxes<T, Shape::kSize, Shape::kKeys>(to, full, v, run.v, t.its.first_key + n * Shape::kKeys,
                                               t.head / run.share, t.batch);
  }
};

template <class T, class Shape>
struct ThreadSource {
  const AttentionProblem& p;

  ROOFTILE_TILE void bring_q(T* to, std::uint64_t* full, const HopperRun&, const HopperTile& t) const {
    gather_boxes<T, Shape::kSize, Shape::kQueries>(to, full, HeadRows<T>{p.q, t.batch, t.head},
                                                   t.its.first_query + t.row,
                                                   t.its.first_query + t.its.queries, static_cast<int>(p.d));
  }
  ROOFTILE_TILE void bring_k(T* to, std::uint64_t* full, const HopperRun& run, const HopperTile& t,
                             int n) const {
    gather_boxes<T, Shape::kSize, Shape::kKeys>(to, full, HeadRows<T>{p.k, t.batch, t.head / run.share},
                                                t.its.first_key + n * Shape::kKeys,
                                                t.its.first_key + t.its.keys, static_cast<int>(p.d));
  }
  ROOFTILE_TILE void bring_v(T* to, std::uint64_t* full, const HopperRun& run, const HopperTile& t,
                             int n) const {
    gather_values<T, Shape>(to, full, p, run, t, n);
  }
};

/// All tiles of this block. Keys are one tile ahead of values, as the consumers want them.
template <class T, class Shape, bool kPacked, class Source>
ROOFTILE_TILE void produce(HopperShared<T, Shape>& shared, const AttentionProblem& p, const HopperRun& run,
                           int heads, const Source& source) {
  Ring<1> tiles;
  Ring<Shape::kStages> keys, values;
  // The last draw of all leaves the counter at 0.
  const auto next = [&](int t) {
    if (run.counter == nullptr) return t + static_cast<int>(gridDim.x);
    return static_cast<int>(gridDim.x + atomicInc(run.counter, static_cast<unsigned>(run.tiles) - 1));
  };
  const auto bring_k = [&](const HopperTile& tile, int n) {
    mbarrier_wait(&shared.k_empty[keys.slot], keys.phase ^ 1);
    source.bring_k(shared.k[keys.slot], &shared.k_full[keys.slot], run, tile, n);
    keys.next();
  };
  ROOFTILE_UNROLL_BY(1)
  for (int t = static_cast<int>(blockIdx.x), then; t < run.tiles; t = then) {
    then = next(t);
    const HopperTile tile = tile_at<Shape, kPacked>(p, run, heads, t);
    if (kPacked && tile.row >= tile.its.queries) continue;
    bring_k(tile, tile.first);
    mbarrier_wait(&shared.q_empty, tiles.phase ^ 1);
    if (threadIdx.x == 0) {
      shared.tile = t;
      if constexpr (kPacked) shared.packed = tile;
    }
    source.bring_q(shared.q, &shared.q_full, run, tile);
    ROOFTILE_UNROLL_BY(1) for (int n = tile.first; n <= tile.last; ++n) {  // unrolled, it spills
      if (n < tile.last) bring_k(tile, n + 1);
      mbarrier_wait(&shared.v_empty[values.slot], values.phase ^ 1);
      source.bring_v(shared.v[values.slot], &shared.v_full[values.slot], run, tile, n);
      values.next();
    }
    tiles.next();
  }
  mbarrier_wait(&shared.q_empty, tiles.phase ^ 1);
  if (threadIdx.x == 0) shared.tile = -1;
  mbarrier_arrive(&shared.q_full);
}

}  // namespace hopper
#endif

}  // namespace rooftile::attention_gpu
