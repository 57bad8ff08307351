#pragma once
// A product of codes by gemm's main loop on tensor cores: f8 as halves, i8 as it is. Stages of K end with the
// blocks; after a block's last stage its sums are scaled into the totals, which are registers, too.
#include "rooftile/ops/gemm/gemm.mma.h"
#include "rooftile/ops/gemm_scaled/gemm_scaled.gpu.h"

namespace rooftile::scaled_gpu {
using gemm_gpu::FewRows;
using gemm_gpu::FragmentPlace;
using gemm_gpu::MmaShape;
using gemm_gpu::MmaSum;
using gemm_gpu::Order;
using gemm_gpu::StageLayout;

/// T: what is multiplied, f16 or i8.
template <class T, class Shape>
using Stage = StageOfK<Shape::kRow / int(sizeof(T))>;

/// One operand's part of a stage: kExtent of M or N, kRow bytes of K in T. copy(to, stage) brings one, each
/// thread in the order of stages. Where the order is known, rows are whole 16-byte vectors.
template <class T, Order kOrder, int kExtent, class Shape>
class CodeTile;

/// Blocks' scales of a tile's rows and columns, in shared memory: with a block's last stage. While it is
/// multiplied, kStages - 1 later blocks' may come, and slow threads still read the one's before.
template <class Shape, bool kMany>
class ScaleRing {
  static constexpr int kOnes = Shape::kM + Shape::kN, kSlots = kMany ? Shape::kStages + 1 : 1;
  static constexpr int kEach = (kOnes + Shape::kThreads - 1) / Shape::kThreads;

 public:
  static constexpr int kBytes = kSlots * kOnes * int(sizeof(float));
  ROOFTILE_TILE ScaleRing(float* ring, const GpuProduct& p, const GpuScales& scales, const GpuTile& tile)
      : ring_(ring), scales_(scales) {
    ROOFTILE_UNROLL for (int e = 0; e < kEach; ++e) {
      const std::int64_t row = tile.row * Shape::kM + place(e),
                         column = tile.column * Shape::kN + place(e) - Shape::kM;
      const bool is_row = place(e) < Shape::kM;
      lives_[e] = is_row ? row < p.m : column < p.n;
      from_[e] = !lives_[e] ? scales.a
                 : is_row   ? scales.of_row(tile.matrix, row)
                            : scales.of_column(tile.matrix, column);
    }
  }
  ROOFTILE_TILE void copy(int block) const {
    ROOFTILE_UNROLL for (int e = 0; e < kEach; ++e) {
      if (place(e) >= kOnes) continue;
      const std::int64_t step = place(e) < Shape::kM ? scales_.a_block : scales_.b_block;
      rooftile::cuda::cp_async<4>(slot(block) + place(e), from_[e] + (lives_[e] ? block * step : 0),
                                  lives_[e] ? 4 : 0);
    }
  }
  ROOFTILE_TILE const float* of_rows(int block) const { return slot(block); }
  ROOFTILE_TILE const float* of_columns(int block) const { return slot(block) + Shape::kM; }

 private:
  ROOFTILE_TILE static int place(int e) { return e * Shape::kThreads + static_cast<int>(threadIdx.x); }
  ROOFTILE_TILE float* slot(int block) const {
    return ring_ + (kSlots == 1 ? 0 : static_cast<unsigned>(block) % kSlots * kOnes);
  }
  float* ring_;
  const GpuScales& scales_;
  const float* from_[kEach];
  bool lives_[kEach];
};

template <class T, class Shape>
using Fragments = T[Shape::kWarpM / 16][Shape::kWarpN / 8][4];

/// A warp's sums of a block, scaled, added to `totals`, or in their place where this is the only one.
template <class Shape, bool kOnly, class Sum>
ROOFTILE_TILE void promote(const Fragments<Sum, Shape>& sums, Fragments<float, Shape>& totals,
                           const float* of_rows, const float* of_columns, FragmentPlace place) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  of_rows += Shape::row_of(warp);
  of_columns += Shape::column_of(warp);
  ROOFTILE_UNROLL for (int j = 0; j < Shape::kWarpN / 8; ++j) {
    const float* const at = of_columns + place.column(lane, j, 0);
    const float2 columns =
        place.columns_by_parity ? float2{at[0], at[2]} : *reinterpret_cast<const float2*>(at);
    ROOFTILE_UNROLL for (int i = 0; i < Shape::kWarpM / 16; ++i) {
      ROOFTILE_UNROLL for (int d = 0; d < 4; ++d) {
        const float scale = of_rows[i * 16 + place.row(lane, d / 2)] * (d % 2 ? columns.y : columns.x);
        totals[i][j][d] = __fmaf_rn(static_cast<float>(sums[i][j][d]), scale, kOnly ? 0.0f : totals[i][j][d]);
      }
    }
  }
}

/// kMany: several blocks, or few; false: one, whose totals are made at the end.
template <class T, Order kOrder, class Shape, bool kMany>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    gemm_scaled_mma(const __grid_constant__ GpuProduct p, const __grid_constant__ GpuScales scales,
                    const __grid_constant__ GpuTiles tiles, std::int64_t first_tile) {
  ROOFTILE_DYNAMIC_SHARED(ring);
  const GpuTile tile = tile_at(tiles, first_tile + blockIdx.x);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t first_i = tile.row * Shape::kM, first_j = tile.column * Shape::kN;
  Stage<T, Shape> copied(p.k, scales.block), multiplied = copied;
  CodeTile<T, kOrder, Shape::kM, Shape> a(p.a, p.a.data + offset_of(p.batch, p.a_index, tile.matrix), first_i,
                                          p.m, scales.a_large, copied);
  CodeTile<T, kOrder, Shape::kN, Shape> b(p.b, p.b.data + offset_of(p.batch, p.b_index, tile.matrix), first_j,
                                          p.n, scales.b_large, copied);
  const ScaleRing<Shape, kMany> tile_scales(reinterpret_cast<float*>(ring + Shape::kShared), p, scales, tile);
  using Live = std::conditional_t<kOrder == Order::any, FewRows, gemm_gpu::AllRows>;
  Live live{};
  if constexpr (kOrder == Order::any)
    live = {p.m - first_i - Shape::row_of(warp), first_j + Shape::column_of(warp) >= p.n};

  const auto copy = [&](int slot) {
    if (copied.exists()) {
      a.copy(ring + slot * Shape::kStage, copied);
      b.copy(ring + slot * Shape::kStage + Shape::kM * Shape::kRow, copied);
      if (kMany && copied.is_last()) tile_scales.copy(copied.block());
      copied.advance();
    }
    rooftile::cuda::cp_async_commit();
  };
  const FragmentPlace place{a.by_parity(), b.by_parity()};
  Fragments<MmaSum<T>, Shape> sums = {};
  const int stages = Stage<T, Shape>::count(p.k, scales.block);
  const auto finish_totals = [&](const Fragments<float, Shape>& totals) {
    const std::int64_t y_first = offset_of(p.batch, 0, tile.matrix);
    const auto finish_four = [&](int row, int column, const gemm_gpu::Four& four) {
      const std::int64_t at_i = first_i + row, at_j = first_j + column, rest = p.n - at_j;
      if (at_i < p.m && rest > 0) finish(p.epilogue, y_first, 0, at_i, at_j, rest < 4 ? int(rest) : 4, four);
    };
    gemm_gpu::finish_fragments<Shape>(totals, ring, live, finish_four, place);
  };
  if constexpr (kMany) {
    Fragments<float, Shape> totals = {};
    const auto after = [&] {
      if (multiplied.is_last()) {
        promote<Shape, false>(sums, totals, tile_scales.of_rows(multiplied.block()),
                              tile_scales.of_columns(multiplied.block()), place);
        ROOFTILE_UNROLL for (auto& row : sums) ROOFTILE_UNROLL for (auto& fragment : row)
            ROOFTILE_UNROLL for (auto& sum : fragment) sum = 0;
      }
      multiplied.advance();
    };
    gemm_gpu::multiply_stages<T, Shape>(sums, ring, a, b, stages, live, copy, after);
    finish_totals(totals);
  } else {
    tile_scales.copy(0);
    gemm_gpu::multiply_stages<T, Shape>(sums, ring, a, b, stages, live, copy);
    Fragments<float, Shape> totals;
    promote<Shape, true>(sums, totals, tile_scales.of_rows(0), tile_scales.of_columns(0), place);
    finish_totals(totals);
  }
}

/// Large tiles where rows are whole vectors and tiles fill half the multiprocessors, and are filled. Which
/// one it is changes no bit.
template <class T, class Large, class LargeOfOne, class Small>
Status launch_codes(const CudaLaunch& launch, const GemmScaledProblem& problem, bool whole) {
  const GpuProduct p = product_of(problem);
  const GpuScales scales = scales_of(problem);
  const auto run = [&]<Order kOrder, class Shape, bool kMany>() {
    return gemm_gpu::launch_tiles(launch, "gemm_scaled", p, Shape::kM, Shape::kN, Shape::kThreads,
                                  Shape::kShared + ScaleRing<Shape, kMany>::kBytes,
                                  gemm_scaled_mma<T, kOrder, Shape, kMany>, scales);
  };
  const auto suits = [&]<class Shape>() {
    return p.m > Small::kM && p.n > Shape::kN / 2 &&
           2 * GpuTiles(p, Shape::kM, Shape::kN).count >= launch.multiprocessors;
  };
  whole = whole && p.a.k_first && p.b.k_first && p.a.piece == 16 && p.b.piece == 16;
  if (whole && problem.blocks() == 1 && suits.template operator()<LargeOfOne>())
    return run.template operator()<Order::k_first, LargeOfOne, false>();
  if (whole && suits.template operator()<Large>())
    return run.template operator()<Order::k_first, Large, true>();
  return run.template operator()<Order::any, Small, true>();
}

}  // namespace rooftile::scaled_gpu
