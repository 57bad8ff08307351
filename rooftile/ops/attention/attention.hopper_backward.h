#pragma once
// The backward by wgmma, f16 and bf16 (Shah et al., FlashAttention-3, arXiv:2407.08608). As in the one by
// mma.sync (attention.mma_backward.h), a block owns rows, keys or queries, and passes through the others that
// meet them: seven products, each sum with one owner and one order, in bf16 that of mma to the bit. One text
// has both passes.
//
// The first warpgroup, the producer (attention.hopper_backward_load.h), fills a ring of tiles of others; each
// other, a consumer, has 64 of the block's rows. Blocks of keys have their scores transposed, a row a key: so
// in both passes weights and their gradients stay in registers, as left operands of the next product. A
// product runs while a consumer makes powers of what the one before left: dp during the weights, dv += p·dy
// during ds.
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/attention/attention.hopper_backward_load.h"

namespace rooftile::attention_gpu {

#if defined(ROOFTILE_HAS_HOPPER)
namespace hopper {

/// fit_rows of attention.mma_backward.h for what a wgmma leaves: a thread has two rows, of pairs.
template <class T, int kCount, int kSums>
ROOFTILE_TILE void fit_rows(float (&ds)[kCount], float (&room)[2], float (&sums)[kSums]) {
  if constexpr (std::is_same_v<T, bf16>) return;
  float shrink[2];
  bool grew = false;
  ROOFTILE_UNROLL for (int r = 0; r < 2; ++r) {
    float most = 0;
    ROOFTILE_UNROLL for (int i = r * 2; i < kCount; i += 4) most =
        fmaxf(most, fmaxf(fabsf(ds[i]), fabsf(ds[i + 1])));
    const float now = room_for(max_of_row(most), room[r]);
    shrink[r] = now / room[r];
    grew = grew || now != room[r];
    room[r] = now;
  }
  if (__any_sync(0xffffffffu, grew)) {
    ROOFTILE_UNROLL for (int i = 0; i < kSums; ++i) sums[i] *= shrink[i % 4 / 2];
  }
  ROOFTILE_UNROLL for (int i = 0; i < kCount; ++i) ds[i] *= room[i % 4 / 2];
}

/// In pairs, what a product left in a thread is what the next takes.
template <class T, int kCount>
ROOFTILE_TILE void keep_pairs(unsigned (&pairs)[kCount / 8][4], const float (&x)[kCount]) {
  ROOFTILE_UNROLL for (int i = 0; i < kCount / 8; ++i) ROOFTILE_UNROLL for (int w = 0; w < 4; ++w)
      pairs[i][w] = pack<T>(x[i * 8 + w * 2], x[i * 8 + w * 2 + 1]);
}

/// A warp's 16 sums of rows, times `scale`, through its rows of `place`, which nobody reads any more. Of
/// zeros none is negative (put_sums).
template <class Shape>
ROOFTILE_TILE void store_sums(const float (&sums)[Shape::kSize / 2], const float (&scale)[2],
                              typename Shape::T* place, const TensorMap* map, const AttentionOperand& to,
                              const HopperBackwardRun& run, const HopperBackwardTile& tile, int above) {
  using T = typename Shape::T;
  const int lane = static_cast<int>(threadIdx.x) % 32, row = tile.row + above;
  ROOFTILE_UNROLL for (int i = 0; i < Shape::kSize / 64; ++i) {
    T* const box = place + (i * Shape::kRows + above) * 64;
    stage_results<T>(reinterpret_cast<std::byte*>(box),
                     [&](int at) { return sums[i * 32 + at] * scale[at % 4 / 2] + 0.f; });
    if (run.stores) {
      fence_proxy_async();
      __syncwarp();
      if (lane == 0) {
        tensor_store(map, {i * 64, row, tile.head, tile.batch}, box);
        tensor_store_commit();
      }
      continue;
    }
    __syncwarp();
    const HeadRows<T> rows(to, tile.batch, tile.head);
    ROOFTILE_UNROLL_BY(1) for (int at = lane; at < 16 * 64; at += 32) {
      const int r = at / 64, c = at % 64;
      if (row + r < run.rows)
        const_cast<T*>(rows.row(row + r))[(i * 64 + c) * rows.stride] =
            box[r * 64 + ((c / 8) ^ (r % 8)) * 8 + c % 8];
    }
  }
}

/// A consumer: a warpgroup, for its 64 rows of this block.
template <class Shape>
ROOFTILE_TILE void consume(HopperBackwardShared<Shape>& shared, const TensorMap* const (&to)[2],
                           const AttentionProblem& p, const HopperBackwardRun& run,
                           const HopperBackwardTile& tile, int consumer) {
  using T = typename Shape::T;
  constexpr int kSize = Shape::kSize, kOthers = Shape::kOthers;
  constexpr bool kKeys = Shape::kKeys;
  constexpr unsigned kGroup = 1024;  // bytes of 8 rows
  // Weights of f16 are times 2^7, so that the smallest that count are normal numbers.
  constexpr float kOne = std::is_same_v<T, f16> ? 128 : 1;
  const int thread = static_cast<int>(threadIdx.x) % 128, warp = thread / 32, lane = thread % 32;
  const int above = consumer * 64 + warp * 16, mine = tile.row + consumer * 64,
            row = tile.row + above + lane / 4;  // rows of this thread: `row` and 8 below
  float s[kOthers / 2], ds[kOthers / 2];        // scores, then weights; dp, then ds
  float sums[kSize / 2], values[kSize / 2];     // dk and dv, or dq alone
  unsigned pairs[2][kOthers / 16][4];
  ROOFTILE_UNROLL for (int i = 0; i < kSize / 2; ++i) sums[i] = values[i] = 0;
  float room[2], base[2], delta[2];  // of own queries the last two
  ROOFTILE_UNROLL for (int r = 0; r < 2; ++r) {
    room[r] = std::is_same_v<T, f16> ? 0x1p24f : 1;
    if (kKeys) continue;
    const QueryNumbers its = QueryNumbers::of<T>(p, tile.batch, tile.head, row + r * 8, run.rows);
    base[r] = its.base, delta[r] = its.delta;
  }

  const auto multiply = [&](float(&x)[kOthers / 2], const T* own, const T* other) {
    const std::uint64_t a = wgmma_descriptor(own + consumer * 64 * 64, 16, kGroup, Swizzle::k128);
    const std::uint64_t b = wgmma_descriptor(other, 16, kGroup, Swizzle::k128);
    wgmma_pin(x);
    wgmma_fence();
    ROOFTILE_UNROLL for (int i = 0; i < kSize / 16; ++i) {
      const unsigned box = static_cast<unsigned>(i) / 4 * 128, within = static_cast<unsigned>(i) % 4 * 32;
      wgmma<T, kOthers>(x, advance_descriptor(a, box * Shape::kRows + within),
                        advance_descriptor(b, box * kOthers + within), i != 0);
    }
    wgmma_commit();
    wgmma_pin(x);
  };
  const auto accumulate = [&](float(&x)[kSize / 2], const unsigned(&weights)[kOthers / 16][4],
                              const T* other) {
    const std::uint64_t b = wgmma_descriptor(other, kOthers * 128, kGroup, Swizzle::k128);
    wgmma_pin(x);
    wgmma_fence();
    ROOFTILE_UNROLL for (int i = 0; i < kOthers / 16; ++i) wgmma<T, kSize, Major::kMn>(
        x, weights[i], advance_descriptor(b, static_cast<unsigned>(i) * 2 * kGroup), true);
    wgmma_commit();
    wgmma_pin(x);
  };
  const auto settle = [&] {  // of dk and dv, or dq
    wgmma_pin(sums);
    if (kKeys) wgmma_pin(values);
  };
  const auto give_back = [&](int side, int slot) {
    if (thread == 0) mbarrier_arrive(&shared.empty[side][slot]);
  };
  int before = -1;  // the slot whose products may still run
  const auto give_back_before = [&] {
    if (before < 0) return;
    give_back(0, before);
    if (kKeys) give_back(1, before);
  };

  // Others that some of the warpgroup's rows meet, and those that all of them do.
  const int past = mine + 64 < run.rows ? mine + 64 : run.rows;
  const int some = mine + run.low, whole = past - 1 + run.low,
            whole_end = mine + run.high < run.others ? mine + run.high : run.others;
  const int some_end = mine >= run.rows                   ? 0
                       : past - 1 + run.high < run.others ? past - 1 + run.high
                                                          : run.others;

  mbarrier_wait(&shared.own_full, 0);
  each_tile<Shape>(tile, [&](int, int n, const auto& ring) {
    const int slot = ring.slot, from = n * kOthers;
    const T *const first = shared.other[0][slot], *const second = shared.other[1][slot];
    mbarrier_wait(&shared.full[0][slot], ring.phase);
    if (from + kOthers <= some || from >= some_end) {
      mbarrier_wait(&shared.full[1][slot], ring.phase);
      wgmma_wait<0>();
      settle();
      // All have seen the tile arrive: without a product to join them, one might miss a whole round of the
      // ring.
      named_barrier_sync(1 + consumer, 128);
      give_back_before();
      give_back(0, slot), give_back(1, slot);
      before = -1;
      return;
    }
    // [issue]
    multiply(s, shared.own[0], first);
    mbarrier_wait(&shared.full[1][slot], ring.phase);
    multiply(ds, shared.own[1], second);
    wgmma_wait<1>();  // the scores, and the last tile's products
    // [/issue]
    wgmma_pin(s);
    settle();
    give_back_before();
    before = slot;
    if (from < whole || from + kOthers > whole_end) {
      const int column = from + lane % 4 * 2;
      int begin[2], end[2];
      ROOFTILE_UNROLL for (int r = 0; r < 2; ++r) {
        const int high = row + r * 8 + run.high;
        begin[r] = row + r * 8 + run.low - column;
        end[r] = (high < run.others ? high : run.others) - column;
      }
      ROOFTILE_UNROLL for (int i = 0; i < kOthers / 2; ++i) {
        const int other = i / 4 * 8 + i % 2;
        if (other < begin[i % 4 / 2] || other >= end[i % 4 / 2]) s[i] = -HUGE_VALF;
      }
    }
    // f(i, its query's number) for each of this thread's: two by two in columns, or by row.
    const auto each = [&](const float* by_column, const float(&by_row)[2], auto f) {
      ROOFTILE_UNROLL for (int i = 0; i < kOthers / 2; i += 4) {
        float2 pair{};
        if (kKeys) pair = *reinterpret_cast<const float2*>(by_column + i * 2 + lane % 4 * 2);
        ROOFTILE_UNROLL for (int j = 0; j < 4; ++j) f(i + j, !kKeys  ? by_row[j / 2]
                                                             : j % 2 ? pair.y
                                                                     : pair.x);
      }
    };
    each(shared.base[slot], base,
         [&](int i, float its) { s[i] = exp2_approx_normal(fmaf(s[i], run.factor, -its)); });
    if constexpr (kKeys) {
      keep_pairs<T>(pairs[0], s);
      accumulate(values, pairs[0], second);
      if constexpr (Shape::kApart)
        wgmma_wait<1>();  // dp
      else
        wgmma_wait<0>(), wgmma_pin(values);
    } else {
      // One wait alone, ptxas moves to the head of its basic block, before the powers. None is negative.
      wgmma_pin(s);
      if (__any_sync(0xffffffffu, s[0] < 0)) {
        wgmma_wait<0>();
        ROOFTILE_UNROLL for (int i = 0; i < kOthers / 2; ++i) s[i] = fmaxf(s[i], 0);
      } else {
        wgmma_wait<0>();
      }
      give_back(1, slot);
    }
    wgmma_pin(ds);
    each(shared.delta[slot], delta, [&](int i, float its) { ds[i] = s[i] * ((ds[i] - its) * (1 / kOne)); });
    fit_rows<T>(ds, room, sums);
    auto& gradients = pairs[kKeys && Shape::kApart];
    keep_pairs<T>(gradients, ds);
    accumulate(sums, gradients, first);
    if constexpr (std::is_same_v<T, f16>) {  // ptxas lets nobody else touch sums that a loop leaves in flight
      wgmma_wait<0>();
      settle();
    }
  });
  wgmma_wait<0>();
  settle();

  named_barrier_sync(1 + consumer, 128);  // the four warps have read own rows
  const float scale[2] = {p.scale / room[0], p.scale / room[1]}, even[2] = {1 / kOne, 1 / kOne};
  store_sums<Shape>(sums, scale, shared.own[0], to[0], kKeys ? p.dk : p.dq, run, tile, above);
  if constexpr (kKeys) store_sums<Shape>(values, even, shared.own[1], to[1], p.dv, run, tile, above);
  if (run.stores && lane == 0) tensor_store_wait_read<0>();
}

}  // namespace hopper
#endif

template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads, 1) attention_backward_hopper(
    const __grid_constant__ cuda::TensorMap first_own, const __grid_constant__ cuda::TensorMap second_own,
    const __grid_constant__ cuda::TensorMap first_other, const __grid_constant__ cuda::TensorMap second_other,
    const __grid_constant__ cuda::TensorMap first_to, const __grid_constant__ cuda::TensorMap second_to,
    const __grid_constant__ AttentionProblem p, const __grid_constant__ HopperBackwardRun run) {
#if defined(ROOFTILE_HAS_HOPPER)
  using namespace hopper;
  ROOFTILE_DYNAMIC_SHARED(memory);
  auto& shared = *reinterpret_cast<HopperBackwardShared<Shape>*>(memory);
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;

  if (threadIdx.x == 0) {
    const unsigned producers = run.loads ? 1 : 128, numbers = Shape::kKeys && run.loads ? 96 : 0;
    mbarrier_init(&shared.own_full, 2 * producers);
    for (int i = 0; i < Shape::kStages; ++i) {
      mbarrier_init(&shared.full[0][i], producers);
      mbarrier_init(&shared.full[1][i], producers + numbers);
      for (int side = 0; side < 2; ++side) mbarrier_init(&shared.empty[side][i], Shape::kConsumers);
    }
    fence_mbarrier_init();
  }
  __syncthreads();

  if (warpgroup == 0) {
    give_registers<Shape::kFewRegisters>();
    const HopperBackwardTile tile = backward_tile<Shape>(p, run);
    if (!run.loads)
      bring_by_threads(shared, p, run, tile);
    else if (threadIdx.x == 0)
      bring_by_engine(shared, {&first_own, &second_own}, {&first_other, &second_other}, run, tile);
    else if (Shape::kKeys && threadIdx.x >= 32)
      bring_numbers(shared, p, run, tile);
    __syncwarp();
  } else {
    take_registers<Shape::kManyRegisters>();
    consume(shared, {&first_to, &second_to}, p, run, backward_tile<Shape>(p, run), warpgroup - 1);
  }
#endif
}

}  // namespace rooftile::attention_gpu
