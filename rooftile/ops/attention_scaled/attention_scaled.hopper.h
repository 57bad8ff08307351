#pragma once
// Attention to codes by Hopper's f8 tensor cores (Shah et al., FlashAttention-3, arXiv:2407.08608):
// attention's producer and rings (rooftile/ops/attention/attention.hopper_load.h), 128 codes in each row.
// Both products take f8: weights become e4m3, times 2^8 so that the small ones keep digits, and pass through
// shared memory; values come by columns, which a kernel before this one turned them to. A product's sums keep
// 14 bits, so those of each 128 keys are added to totals in f32.
#include "rooftile/ops/attention/attention.hopper.h"
#include "rooftile/ops/attention_scaled/attention_scaled.problem.h"
#include "rooftile/ops/quantize/quantize.tile.h"

namespace rooftile::attention_gpu {

/// As HopperShape: keys and channels of 128, a row of the swizzle each.
struct CodesShape {
  static constexpr int kSize = AttentionScaledProblem::kMaxHead, kConsumers = 2, kKeys = 128;
  static constexpr int kQueries = 64 * kConsumers, kThreads = 128 * (1 + kConsumers), kStages = 3;
  static constexpr int kBuffers = 1;
  static constexpr bool kKeepsSums = false;
};
struct alignas(1024) CodesShared : HopperShared<f8e4m3, CodesShape> {
  std::uint8_t weights[CodesShape::kConsumers][64 * CodesShape::kKeys];
};

/// Of each 16 keys a lane of a product's sums has four, in two pairs: they come to lie side by side.
ROOFTILE_TILE int place_of_key(int key) {
  return key / 16 * 16 + key % 8 / 2 * 4 + key % 16 / 8 * 2 + key % 2;
}

#if defined(ROOFTILE_HAS_HOPPER)
namespace hopper {

/// By one thread; v's boxes have its channels as rows.
struct CodesSource {
  const TensorMap *q, *k, *v;

  ROOFTILE_TILE static void bring(f8e4m3* to, std::uint64_t* full, const TensorMap* map, int rows, int along,
                                  int row, int head, int batch) {
    mbarrier_arrive_expect_tx(full, static_cast<unsigned>(rows) * 128);
    tensor_load(to, map, full, {along, row, head, batch});
  }
  ROOFTILE_TILE void bring_q(f8e4m3* to, std::uint64_t* full, const HopperRun& run,
                             const HopperTile& t) const {
    bring(to, full, q, CodesShape::kQueries, 0, t.row, t.head * run.q.head, t.batch * run.q.batch);
  }
  ROOFTILE_TILE void bring_k(f8e4m3* to, std::uint64_t* full, const HopperRun& run, const HopperTile& t,
                             int n) const {
    bring(to, full, k, CodesShape::kKeys, 0, n * CodesShape::kKeys, t.head / run.share * run.k.head,
          t.batch * run.k.batch);
  }
  ROOFTILE_TILE void bring_v(f8e4m3* to, std::uint64_t* full, const HopperRun& run, const HopperTile& t,
                             int n) const {
    bring(to, full, v, CodesShape::kSize, n * CodesShape::kKeys, 0, t.head / run.share * run.v.head,
          t.batch * run.v.batch);
  }
};

/// sums = a·bᵀ over kDepth of K, from tiles of rows of 128 codes.
template <int kDepth>
ROOFTILE_TILE void multiply_codes(float (&sums)[64], const void* a, const void* b) {
  const std::uint64_t left = wgmma_descriptor(a, 16, 1024, Swizzle::k128),
                      right = wgmma_descriptor(b, 16, 1024, Swizzle::k128);
  wgmma_pin(sums);
  wgmma_fence();
  ROOFTILE_UNROLL for (int i = 0; i < kDepth / 32; ++i)
      wgmma_f8<f8e4m3, f8e4m3, 128>(sums, advance_descriptor(left, static_cast<unsigned>(i) * 32),
                                    advance_descriptor(right, static_cast<unsigned>(i) * 32), i != 0);
  wgmma_commit();
  wgmma_pin(sums);
  wgmma_wait<0>();
  wgmma_pin(sums);
}

/// A lane's two rows of a softmax that goes on from tile to tile. Weights are 2^8 · e^(s - m), m the largest
/// score so far: at most 256, of e4m3's 448.
struct CodesSoftmax {
  static constexpr float kShift = 8;
  RowWeights<bf16> row[2] = {{-HUGE_VALF, 0}, {-HUGE_VALF, 0}};

  /// Scores become weights; what totals of values shrink by.
  ROOFTILE_TILE void step(float (&s)[64], float factor, float (&shrink)[2]) {
    ROOFTILE_UNROLL for (int r = 0; r < 2; ++r) {
      float most = -HUGE_VALF;
      ROOFTILE_UNROLL for (int g = 0; g < 16; ++g) most =
          fmaxf(most, fmaxf(s[4 * g + 2 * r], s[4 * g + 2 * r + 1]));
      most = fmaxf(row[r].most, fmaf(max_of_row(most), factor, -kShift));
      const float from = most == -HUGE_VALF ? 0 : most;  // -inf - -inf would be NaN
      shrink[r] = exp2_approx_normal(row[r].most - from);
      row[r].most = most;
      float sum = 0;
      ROOFTILE_UNROLL for (int g = 0; g < 16; ++g) ROOFTILE_UNROLL for (int e = 0; e < 2; ++e) {
        float& score = s[4 * g + 2 * r + e];
        score = exp2_approx_normal(fmaf(score, factor, -from));
        sum += score;
      }
      row[r].sum = fmaf(row[r].sum, shrink[r], sum);
    }
  }
};

/// A warpgroup's weights as codes, rows of 128 keys with the swizzle; a thread's rows are `row` and 8 below.
ROOFTILE_TILE void put_weights(std::uint8_t* to, const float (&s)[64], int row, int lane) {
  ROOFTILE_UNROLL for (int r = 0; r < 2; ++r) ROOFTILE_UNROLL for (int u = 0; u < 8; ++u) {
    tile::Tile<float, 4> four;
    ROOFTILE_UNROLL for (int i = 0; i < 4; ++i) four.v[i] = s[8 * u + 4 * (i / 2) + 2 * r + i % 2];
    const auto code = kernels::encode(four, code_format(DType::f8e4m3));
    unsigned word = 0;
    ROOFTILE_UNROLL for (int i = 0; i < 4; ++i) word |= static_cast<unsigned>(code.v[i] & 0xFF) << 8 * i;
    const int at = row + r * 8;
    *reinterpret_cast<unsigned*>(to + at * 128 + (u ^ at % 8) * 16 + lane % 4 * 4) = word;
  }
}

template <class T>
ROOFTILE_TILE void store_totals(const float (&totals)[64], const float (&scale)[2], const AttentionProblem& p,
                                const HopperTile& tile, int row, int lane) {
  const HeadRows<T> to(p.y, tile.batch, tile.head);
  const int e = static_cast<int>(p.e);
  ROOFTILE_UNROLL for (int r = 0; r < 2; ++r) {
    if (row + r * 8 >= tile.its.queries) break;
    ROOFTILE_UNROLL for (int i = 0; i < 32; ++i) {
      const int channel = i / 2 * 8 + lane % 4 * 2 + i % 2;
      if (channel < e) to.put(row + r * 8, channel, totals[i / 2 * 4 + 2 * r + i % 2] * scale[r] + 0.f);
    }
  }
}

/// A consumer: a warpgroup, for all tiles of this block. Beside it the other one multiplies.
ROOFTILE_TILE void consume_codes(CodesShared& shared, const AttentionProblem& p, DType out,
                                 const HopperRun& run, int consumer) {
  using Shape = CodesShape;
  const int thread = static_cast<int>(threadIdx.x) % 128, warp = thread / 32, lane = thread % 32;
  const int heads = static_cast<int>(p.b * p.h);
  Ring<1> tiles;
  Ring<Shape::kStages> keys, values;
  const auto give_back = [&](std::uint64_t* empty, auto& ring) {
    if (thread == 0) mbarrier_arrive(&empty[ring.slot]);
    ring.next();
  };
  while (true) {
    mbarrier_wait(&shared.q_full, tiles.phase);
    const int t = shared.tile;
    if (t < 0) break;
    tiles.next();
    const HopperTile tile = tile_at<Shape, false>(p, run, heads, t);
    const HopperSequence& its = tile.its;
    const int above = tile.row + consumer * 64, row = above + warp * 16 + lane / 4;
    // Keys that every query of the warpgroup sees.
    const int whole = above + 63 + its.back,
              whole_end = above + its.reach < its.keys ? above + its.reach : its.keys;
    const std::int64_t key_head = tile.head / run.share;
    const float factor = p.scale_of(tile.batch, key_head) * kLog2E;  // from a score to its power of 2

    CodesSoftmax softmax;
    float totals[64], sums[64], shrink[2];
    ROOFTILE_UNROLL for (float& total : totals) total = 0;
    ROOFTILE_UNROLL_BY(1) for (int n = tile.first; n <= tile.last; ++n) {
      mbarrier_wait(&shared.k_full[keys.slot], keys.phase);
      const auto* const queries = shared.q + consumer * 64 * 128;
      if (p.d <= 64)
        multiply_codes<64>(sums, queries, shared.k[keys.slot]);
      else
        multiply_codes<128>(sums, queries, shared.k[keys.slot]);
      give_back(shared.k_empty, keys);
      if (n == tile.last) {
        __syncwarp();
        if (lane == 0) mbarrier_arrive(&shared.q_empty);
      }
      if (n * Shape::kKeys < whole || (n + 1) * Shape::kKeys > whole_end)
        mask_scores<Shape::kKeys>(sums, its, row, lane, n);
      softmax.step(sums, factor, shrink);
      put_weights(shared.weights[consumer], sums, warp * 16 + lane / 4, lane);
      fence_proxy_async();
      named_barrier_sync(1 + consumer, 128);
      mbarrier_wait(&shared.v_full[values.slot], values.phase);
      multiply_codes<Shape::kKeys>(sums, shared.weights[consumer], shared.v[values.slot]);
      give_back(shared.v_empty, values);
      ROOFTILE_UNROLL for (int i = 0; i < 64; ++i) totals[i] = fmaf(totals[i], shrink[i % 4 / 2], sums[i]);
    }

    float scale[2];
    ROOFTILE_UNROLL for (int r = 0; r < 2; ++r) {
      RowWeights<bf16> total{softmax.row[r].most, sum_of_row(softmax.row[r].sum)};
      scale[r] = total.finish(-HUGE_VALF, p.value_scale_of(tile.batch, key_head));
      const int i = row + r * 8;
      if (p.lse && lane % 4 == 0 && i < its.queries)
        p.lse[tile.batch * p.lse_stride[0] + tile.head * p.lse_stride[1] + i * p.lse_stride[2]] = total.lse();
    }
    if (out == DType::f32)
      store_totals<float>(totals, scale, p, tile, row, lane);
    else if (out == DType::f16)
      store_totals<f16>(totals, scale, p, tile, row, lane);
    else
      store_totals<bf16>(totals, scale, p, tile, row, lane);
  }
}

}  // namespace hopper
#endif

__global__ void __launch_bounds__(CodesShape::kThreads, 1)
    attention_codes(const __grid_constant__ cuda::TensorMap q_map,
                    const __grid_constant__ cuda::TensorMap k_map,
                    const __grid_constant__ cuda::TensorMap v_map, const __grid_constant__ AttentionProblem p,
                    const DType out, const __grid_constant__ HopperRun run) {
#if defined(ROOFTILE_HAS_HOPPER)
  using namespace hopper;
  ROOFTILE_DYNAMIC_SHARED(memory);
  auto& shared = *reinterpret_cast<CodesShared*>(memory);
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  begin_rings(shared, 1);
  if (warpgroup == 0) {
    give_registers<24>();
    if (threadIdx.x == 0)
      produce<f8e4m3, CodesShape, false>(shared, p, run, static_cast<int>(p.b * p.h),
                                         CodesSource{&q_map, &k_map, &v_map});
    __syncwarp();
  } else {
    take_registers<240>();
    consume_codes(shared, p, out, run, warpgroup - 1);
  }
#endif
}

}  // namespace rooftile::attention_gpu
