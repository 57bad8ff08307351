#pragma once
// The forward by wgmma, f16 and bf16 (Shah et al., FlashAttention-3, arXiv:2407.08608). Warpgroups of a block
// are specialised: the first, the producer (attention.hopper_load.h), fills rings of keys and values; each
// other, a consumer, has 64 queries. Scores, weights and sums of y stay in its registers, most of which the
// producer gave up.
//
// Tensor cores and the unit for exponentials work at once: a consumer asks for the next tile's scores and for
// this tile's product with the values together, and turns those scores into weights while the values are
// still multiplied. Blocks stay for several tiles of queries, which they draw from a counter, the longest
// first.
//
// A tile's keys are two of mma's tiles (attention.mma.h), with a softmax for each, one after the other; so a
// row has the bits of mma. Where sums of values must shrink between the two, which is rare, the consumer
// multiplies the tile's values in two steps.
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/attention/attention.hopper_load.h"
#include "rooftile/ops/attention/attention.softmax.h"

namespace rooftile::attention_gpu {

#if defined(ROOFTILE_HAS_HOPPER)
namespace hopper {

/// Scores of keys that a thread's rows, `row` and 8 below, do not see become -inf. n: which tile of keys.
template <int kKeys, int kCount>
ROOFTILE_TILE void mask_scores(float (&s)[kCount], const HopperSequence& its, int row, int lane, int n) {
  const int column = n * kKeys + lane % 4 * 2;
  int from[2], to[2];
  ROOFTILE_UNROLL for (int r = 0; r < 2; ++r) {
    const int end = row + r * 8 + its.reach;
    from[r] = row + r * 8 + its.back - column;
    to[r] = (end < its.keys ? end : its.keys) - column;
  }
  ROOFTILE_UNROLL for (int i = 0; i < kCount; ++i) {
    const int key = i / 4 * 8 + i % 2;
    if (key < from[i % 4 / 2] || key >= to[i % 4 / 2]) s[i] = -HUGE_VALF;
  }
}

/// A warp's rows of y, 64 channels at a time.
template <class T, class Shape, bool kPacked>
ROOFTILE_TILE void store_rows(const float (&y)[Shape::kSize / 2], const float (&scale)[2],
                              HopperOutput<T, Shape>& output, const TensorMap* y_map,
                              const AttentionProblem& p, const HopperRun& run, const HopperTile& tile,
                              int row) {
  const int lane = static_cast<int>(threadIdx.x) % 32, first = tile.its.first_query + row;
  // What would be below a sequence's last row is another's.
  const bool stores = run.stores && (!kPacked || row + 16 <= tile.its.queries);
  ROOFTILE_UNROLL for (int i = 0; i < Shape::kSize / 64; ++i) {
    std::byte* const buffer = output.boxes[i % Shape::kBuffers];
    if (run.stores && lane == 0) {
      if (stores)
        tensor_store_wait_read<Shape::kBuffers - 1>();
      else  // the tile's own boxes are no stores, which would count
        tensor_store_wait_read<0>();
    }
    __syncwarp();
    // Of zeros none is negative: a sum that underflowed is -0 or, where keys that a query does not see came
    // after it, +0.
    stage_results<T>(buffer, [&](int at) { return y[i * 32 + at] * scale[at % 4 / 2] + 0.f; });
    if (stores) {
      fence_proxy_async();
      __syncwarp();
      if (lane == 0) {
        tensor_store(y_map, {i * 64, first, tile.head, tile.batch}, buffer);
        tensor_store_commit();
      }
      continue;
    }
    __syncwarp();
    const HeadRows<T> to(p.y, tile.batch, tile.head);
    ROOFTILE_UNROLL_BY(1) for (int at = lane; at < 16 * 64; at += 32) {
      const int r = at / 64, c = at % 64;
      if (row + r < tile.its.queries && i * 64 + c < p.e)
        const_cast<T*>(to.row(first + r))[(i * 64 + c) * to.stride] =
            reinterpret_cast<const T*>(buffer)[r * 64 + ((c / 8) ^ (r % 8)) * 8 + c % 8];
    }
  }
}

/// A consumer: a warpgroup, for all tiles of this block.
template <class T, class Shape, bool kPacked>
ROOFTILE_TILE void consume(HopperShared<T, Shape>& shared, const TensorMap* y_map, const AttentionProblem& p,
                           const HopperRun& run, int consumer) {
  constexpr int kSize = Shape::kSize, kKeys = Shape::kKeys, kPart = Shape::kPart;
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
  /// By the weights of keys from kFrom to before kTo.
  const auto multiply_values = [&]<int kFrom, int kTo>(bool add) {
    const std::uint64_t b = wgmma_descriptor(shared.v[values.slot], kKeys * 128, kGroup, Swizzle::k128);
    wgmma_pin(y);
    wgmma_fence();
    ROOFTILE_UNROLL for (int i = kFrom / 16; i < kTo / 16; ++i) wgmma<T, kSize, Major::kMn>(
        y, weights[i], advance_descriptor(b, static_cast<unsigned>(i) * 2 * kGroup), add || i != kFrom / 16);
    wgmma_commit();
    wgmma_pin(y);
  };
  const auto shrink_sums = [&](const float(&shrink)[2]) {
    ROOFTILE_UNROLL for (int i = 0; i < kSize / 2; ++i) y[i] *= shrink[i % 4 / 2];
  };
  const auto give_back = [&](std::uint64_t* empty, auto& ring) {
    if (thread == 0) mbarrier_arrive(&empty[ring.slot]);
    ring.next();
  };
  // Sums of the chunks before the one in registers are seldom needed.
  HopperOutput<T, Shape>& output = shared.y[consumer * 4 + warp];
  float4* const total_of_four = &shared.totals[consumer * 4 + warp][lane / 4];
  float2* const shrink_between = &shared.between[consumer * 4 + warp][lane / 4];
  float4 local[Shape::kKeepsSums ? 1 : kSize / 8];
  const auto sums_before = [&](int g) -> float4& {
    if constexpr (Shape::kKeepsSums)
      return output.sums[g][lane];
    else
      return local[unknown(g)];
  };
  /// A chunk is done, and its weights become those of all so far. It joins the ones before, if there are any,
  /// and stays in registers or, where another one begins, does not.
  const auto end_chunk = [&](RowWeights<T>(&its)[2], bool has_before, bool another) {
    if (run.stores && another && lane == 0) tensor_store_wait_read<0>();  // y's boxes of the tile before
    __syncwarp();
    if (has_before) {
      RowWeights<T> total[2] = {{total_of_four->x, total_of_four->y}, {total_of_four->z, total_of_four->w}};
      const Merge<T> merge[2] = {{total[0], its[0]}, {total[1], its[1]}};
      its[0] = total[0], its[1] = total[1];
      ROOFTILE_UNROLL for (int g = 0; g < kSize / 8; ++g) add_four(y + 4 * g, sums_before(g), merge);
    }
    if (!another) return;
    ROOFTILE_UNROLL for (int g = 0; g < kSize / 8; ++g)
        sums_before(g) = {y[4 * g], y[4 * g + 1], y[4 * g + 2], y[4 * g + 3]};
    __syncwarp();
    if (lane % 4 == 0) *total_of_four = {its[0].most, its[0].sum, its[1].most, its[1].sum};
  };

  while (true) {
    mbarrier_wait(&shared.q_full, tiles.phase);
    const int t = shared.tile;
    if (t < 0) break;
    tiles.next();
    const HopperTile tile = kPacked ? shared.packed : tile_at<Shape, false>(p, run, heads, t);
    const HopperSequence& its = tile.its;
    const int above = tile.row + consumer * 64, row = above + warp * 16 + lane / 4;
    // Keys that every query of the warpgroup sees.
    const int whole = above + 63 + its.back,
              whole_end = above + its.reach < its.keys ? above + its.reach : its.keys;
    const auto mask = [&](int n) {
      if (n * kKeys < whole || (n + 1) * kKeys > whole_end) mask_scores<kKeys>(s, its, row, lane, n);
    };

    const float factor = p.scale_of(tile.batch, tile.head / run.share) * kLog2E;  // from a score to its power
    OnlineSoftmax<T> softmax;
    float shrink[2];  // of sums of values, before a tile's first part
    bool add = false, between = false, has_before = false;
    /// Scores become weights; whether sums must shrink before the first part. `between`: whether those of
    /// some row of the warpgroup must before the second.
    const auto weigh = [&](int n) {
      mask(n);
      const bool first =
          softmax.template step<kPart>([&](int at) -> float& { return s[at]; }, factor, shrink);
      float later[2];
      between =
          softmax.template step<kPart>([&](int at) -> float& { return s[kPart / 2 + at]; }, factor, later);
      between = named_barrier_or(1 + consumer, 128, between);
      if (between && lane % 4 == 0) *shrink_between = {later[0], later[1]};  // a register would spill
      return __any_sync(0xffffffffu, first);
    };
    /// For the next tile's product with the values.
    const auto keep_weights = [&] {  // what a product left in a thread is, in pairs, what the next takes
      ROOFTILE_UNROLL for (int i = 0; i < kKeys / 16; ++i) ROOFTILE_UNROLL for (int w = 0; w < 4; ++w)
          weights[i][w] = pack<T>(s[i * 8 + w * 2], s[i * 8 + w * 2 + 1]);
    };
    const auto multiply_values_apart = [&] {
      mbarrier_wait(&shared.v_full[values.slot], values.phase);
      multiply_values.template operator()<0, kPart>(add);
      wgmma_wait<0>();
      wgmma_pin(y);
      __syncwarp();
      const float2 later = *shrink_between;
      shrink_sums({later.x, later.y});
      multiply_values.template operator()<kPart, kKeys>(true);
      wgmma_wait<0>();
      wgmma_pin(y);
    };

    mbarrier_wait(&shared.k_full[keys.slot], keys.phase);
    multiply_keys();
    wgmma_wait<0>();
    wgmma_pin(s);
    give_back(shared.k_empty, keys);
    weigh(tile.first);
    keep_weights();
    ROOFTILE_UNROLL_BY(1) for (int n = tile.first + 1; n <= tile.last; ++n) {
      mbarrier_wait(&shared.k_full[keys.slot], keys.phase);
      if (between) {
        multiply_values_apart();
        multiply_keys();
        wgmma_wait<0>();
        wgmma_pin(s);
      } else {
        multiply_keys();
        mbarrier_wait(&shared.v_full[values.slot], values.phase);
        multiply_values.template operator()<0, kKeys>(add);
        wgmma_wait<1>();  // the scores
        wgmma_pin(s);
      }
      add = true;
      give_back(shared.k_empty, keys);
      const bool next_chunk = n % Shape::kTiles == 0;
      RowWeights<T> done[2];
      if (next_chunk) {
        done[0] = softmax.weights(0), done[1] = softmax.weights(1);
        softmax = {};
      }
      const bool shrinks = weigh(n);
      wgmma_pin(s);
      // A wait in each branch: one alone, ptxas moves to the head of its basic block, before the softmax.
      if (shrinks) {
        wgmma_wait<0>();
        wgmma_pin(y);
        shrink_sums(shrink);
      } else {
        wgmma_wait<0>();
        wgmma_pin(y);
      }
      give_back(shared.v_empty, values);
      keep_weights();
      if (next_chunk) {
        end_chunk(done, has_before, true);
        add = false, has_before = true;
      }
    }
    __syncwarp();
    if (lane == 0) mbarrier_arrive(&shared.q_empty);
    if (between) {
      multiply_values_apart();
    } else {
      mbarrier_wait(&shared.v_full[values.slot], values.phase);
      multiply_values.template operator()<0, kKeys>(add);
      wgmma_wait<0>();
      wgmma_pin(y);
    }
    give_back(shared.v_empty, values);
    RowWeights<T> total[2] = {softmax.weights(0), softmax.weights(1)};
    end_chunk(total, has_before, false);

    float scale[2];
    ROOFTILE_UNROLL for (int r = 0; r < 2; ++r) {
      scale[r] =
          total[r].finish(sink_of<T>(p, tile.head), p.value_scale_of(tile.batch, tile.head / run.share));
      const int i = row + r * 8;
      if (p.lse && lane % 4 == 0 && i < its.queries)
        p.lse[tile.batch * p.lse_stride[0] + tile.head * p.lse_stride[1] +
              (its.first_query + i) * p.lse_stride[2]] = total[r].lse();
    }
    store_rows<T, Shape, kPacked>(y, scale, output, y_map, p, run, tile, above + warp * 16);
  }
  if (run.stores && lane == 0) tensor_store_wait_read<0>();
}

}  // namespace hopper
#endif

template <class T, class Shape, bool kPacked>
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

  begin_rings(shared, run.loads && !kPacked ? 1 : 128);
  if (warpgroup == 0) {
    give_registers<Shape::kFewRegisters>();
    const int heads = static_cast<int>(p.b * p.h);
    if (!run.loads)
      produce<T, Shape, kPacked>(shared, p, run, heads, ThreadSource<T, Shape>{p});
    else if (kPacked || threadIdx.x == 0)
      produce<T, Shape, kPacked>(shared, p, run, heads,
                                 EngineSource<T, Shape, kPacked>{p, &q_map, &k_map, &v_map});
    __syncwarp();
  } else {
    take_registers<Shape::kManyRegisters>();
    consume<T, Shape, kPacked>(shared, &y_map, p, run, warpgroup - 1);
  }
#endif
}

}  // namespace rooftile::attention_gpu
