#pragma once
// The forward by wgmma, f16 and bf16 (Shah et al., FlashAttention-3, arXiv:2407.08608). Warpgroups of a block
// are specialised: the first, the producer (attention.hopper_load.h), fills rings of keys and values; each
// other, a consumer, has 64 queries. Scores, weights and sums of y stay in its registers, most of which the
// producer gave up.
//
// Tensor cores and the unit for exponentials work at once: a consumer asks for the next tile's scores and for
// this tile's product with the values together, and turns those scores into weights while the values are
// still multiplied. Tiles of keys are seen last first, so that the masked ones come before the loop. Blocks
// stay for several tiles of queries, which they draw from a counter, the longest first.
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/attention/attention.hopper_load.h"
#include "rooftile/ops/attention/attention.hopper_softmax.h"

namespace rooftile::attention_gpu {

#if defined(ROOFTILE_HAS_HOPPER)
namespace hopper {

/// A warp's rows of y, 64 channels at a time.
template <class T, class Shape>
ROOFTILE_TILE void store_rows(const float (&y)[Shape::kSize / 2], const float (&scale)[2],
                              std::byte (&buffers)[Shape::kBuffers][16 * 64 * sizeof(T)],
                              const TensorMap* y_map, const AttentionProblem& p, const HopperRun& run,
                              const HopperTile& tile, int row) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  ROOFTILE_UNROLL for (int i = 0; i < Shape::kSize / 64; ++i) {
    std::byte* const buffer = buffers[i % Shape::kBuffers];
    if (run.stores && lane == 0) tensor_store_wait_read<Shape::kBuffers - 1>();
    __syncwarp();
    // Of zeros none is negative: a sum that underflowed is -0 or, where keys that a query does not see came
    // after it, +0.
    stage_results<T>(buffer, [&](int at) { return y[i * 32 + at] * scale[at % 4 / 2] + 0.f; });
    if (run.stores) {
      fence_proxy_async();
      __syncwarp();
      if (lane == 0) {
        tensor_store(y_map, {i * 64, row, tile.head, tile.batch}, buffer);
        tensor_store_commit();
      }
      continue;
    }
    __syncwarp();
    const HeadRows<T> to(p.y, tile.batch, tile.head);
    ROOFTILE_UNROLL_BY(1) for (int at = lane; at < 16 * 64; at += 32) {
      const int r = at / 64, c = at % 64;
      if (row + r < run.queries && i * 64 + c < p.e)
        const_cast<T*>(to.row(row + r))[(i * 64 + c) * to.stride] =
            reinterpret_cast<const T*>(buffer)[r * 64 + ((c / 8) ^ (r % 8)) * 8 + c % 8];
    }
  }
}

/// A consumer: a warpgroup, for all tiles of this block.
template <class T, class Shape>
ROOFTILE_TILE void consume(HopperShared<T, Shape>& shared, const TensorMap* y_map, const AttentionProblem& p,
                           const HopperRun& run, int consumer) {
  constexpr int kSize = Shape::kSize, kKeys = Shape::kKeys;
  constexpr unsigned kGroup = 1024;  // bytes of 8 rows
  const int thread = static_cast<int>(threadIdx.x) % 128, warp = thread / 32, lane = thread % 32;
  const int heads = static_cast<int>(p.b * p.h);
  Ring<1> tiles;
  Ring<Shape::kStages> keys, values;
  float y[kSize / 2], s[kKeys / 2];
  unsigned weights[kKeys / 16][4];

  const auto multiply_keys = [&] {
    const std::uint64_t a = wgmma_descriptor(shared.q + consumer * 64 * 64, 16, kGroup, Swizzle::k128);
    const std::uint64_t b = wgmma_descriptor(shared.k[keys.slot], 16, kGroup, Swizzle::k128);
    wgmma_pin(s);
    wgmma_fence();
    ROOFTILE_UNROLL for (int i = 0; i < kSize / 16; ++i) {
      const unsigned box = static_cast<unsigned>(i) / 4 * 128, within = static_cast<unsigned>(i) % 4 * 32;
      wgmma<T, kKeys>(s, advance_descriptor(a, box * Shape::kQueries + within),
                      advance_descriptor(b, box * kKeys + within), i != 0);
    }
    wgmma_commit();
    wgmma_pin(s);
  };
  const auto multiply_values = [&](bool add) {
    const std::uint64_t b = wgmma_descriptor(shared.v[values.slot], kKeys * 128, kGroup, Swizzle::k128);
    wgmma_pin(y);
    wgmma_fence();
    ROOFTILE_UNROLL for (int i = 0; i < kKeys / 16; ++i) wgmma<T, kSize, Major::kMn>(
        y, weights[i], advance_descriptor(b, static_cast<unsigned>(i) * 2 * kGroup), add || i != 0);
    wgmma_commit();
    wgmma_pin(y);
  };
  const auto give_back = [&](std::uint64_t* empty, auto& ring) {
    if (thread == 0) mbarrier_arrive(&empty[ring.slot]);
    ring.next();
  };
  const auto keep_weights = [&] {  // what a product left in a thread is, in pairs, what the next takes
    ROOFTILE_UNROLL for (int i = 0; i < kKeys / 16; ++i) ROOFTILE_UNROLL for (int w = 0; w < 4; ++w)
        weights[i][w] = pack<T>(s[i * 8 + w * 2], s[i * 8 + w * 2 + 1]);
  };

  while (true) {
    mbarrier_wait(&shared.q_full, tiles.phase);
    const int t = shared.tile;
    if (t < 0) break;
    tiles.next();
    const HopperTile tile = tile_at<Shape>(run, heads, t);
    const int above = tile.row + consumer * 64, row = above + warp * 16 + lane / 4;
    // Keys that every query of the warpgroup sees.
    const int whole = above + 63 + run.back,
              whole_end = above + run.reach < run.keys ? above + run.reach : run.keys;
    const auto mask = [&](int n) {
      if (n * kKeys < whole || (n + 1) * kKeys > whole_end) mask_scores<kKeys>(s, run, row, lane, n);
    };

    HopperSoftmax<T> softmax(sink_of<T>(p, tile.head), lane);
    mbarrier_wait(&shared.k_full[keys.slot], keys.phase);
    multiply_keys();
    wgmma_wait<0>();
    wgmma_pin(s);
    give_back(shared.k_empty, keys);
    mask(tile.last);
    softmax.step(s, run.factor);
    keep_weights();
    bool add = false;
    ROOFTILE_UNROLL_BY(1) for (int n = tile.last - 1; n >= tile.first; --n) {
      mbarrier_wait(&shared.k_full[keys.slot], keys.phase);
      multiply_keys();
      mbarrier_wait(&shared.v_full[values.slot], values.phase);
      multiply_values(add);
      add = true;
      wgmma_wait<1>();  // the scores
      wgmma_pin(s);
      give_back(shared.k_empty, keys);
      mask(n);
      const bool shrinks = softmax.step(s, run.factor);
      wgmma_pin(s);
      // A wait in each branch: one alone, ptxas moves to the head of its basic block, before the softmax.
      if (shrinks) {
        wgmma_wait<0>();
        wgmma_pin(y);
        ROOFTILE_UNROLL for (int i = 0; i < kSize / 2; ++i) y[i] *= softmax.shrink[i % 4 / 2];
      } else {
        wgmma_wait<0>();
        wgmma_pin(y);
      }
      give_back(shared.v_empty, values);
      keep_weights();
    }
    if (thread == 0) mbarrier_arrive(&shared.q_empty);
    mbarrier_wait(&shared.v_full[values.slot], values.phase);
    multiply_values(add);
    wgmma_wait<0>();
    wgmma_pin(y);
    give_back(shared.v_empty, values);

    float scale[2];
    ROOFTILE_UNROLL for (int r = 0; r < 2; ++r) {
      const float sum = softmax.whole_sum(r);
      scale[r] = sum == 0 ? 0 : 1 / sum;
      const int i = row + r * 8;
      if (p.lse && lane % 4 == 0 && i < run.queries)
        p.lse[tile.batch * p.lse_stride[0] + tile.head * p.lse_stride[1] + i * p.lse_stride[2]] =
            fmaf(softmax.base[r], 1 / kLog2E, logf(sum));
    }
    store_rows<T, Shape>(y, scale, shared.y[consumer * 4 + warp], y_map, p, run, tile, above + warp * 16);
  }
  if (run.stores && lane == 0) tensor_store_wait_read<0>();
}

}  // namespace hopper
#endif

template <class T, class Shape>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    attention_hopper(const __grid_constant__ cuda::TensorMap q_map,
                     const __grid_constant__ cuda::TensorMap k_map,
                     const __grid_constant__ cuda::TensorMap v_map,
                     const __grid_constant__ cuda::TensorMap y_map,
                     const __grid_constant__ AttentionProblem p, const __grid_constant__ HopperRun run) {
#if defined(ROOFTILE_HAS_HOPPER)
  using namespace hopper;
  ROOFTILE_DYNAMIC_SHARED(memory);
  auto& shared = *reinterpret_cast<HopperShared<T, Shape>*>(memory);
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;

  if (threadIdx.x == 0) {
    const unsigned producers = run.loads ? 1 : 128, consumers = Shape::kConsumers;
    mbarrier_init(&shared.q_full, producers);
    mbarrier_init(&shared.q_empty, consumers);
    for (int i = 0; i < Shape::kStages; ++i) {
      mbarrier_init(&shared.k_full[i], producers);
      mbarrier_init(&shared.k_empty[i], consumers);
      mbarrier_init(&shared.v_full[i], producers);
      mbarrier_init(&shared.v_empty[i], consumers);
    }
    fence_mbarrier_init();
  }
  __syncthreads();

  if (warpgroup == 0) {
    give_registers<Shape::kFewRegisters>();
    const int heads = static_cast<int>(p.b * p.h);
    if (!run.loads)
      produce<T, Shape>(shared, run, heads, ThreadSource<T, Shape>{p});
    else if (threadIdx.x == 0)
      produce<T, Shape>(shared, run, heads, EngineSource<T, Shape>{&q_map, &k_map, &v_map});
    __syncwarp();
  } else {
    take_registers<Shape::kManyRegisters>();
    consume<T, Shape>(shared, &y_map, p, run, warpgroup - 1);
  }
#endif
}

}  // namespace rooftile::attention_gpu
