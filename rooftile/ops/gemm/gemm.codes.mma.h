#pragma once
// x·Wᵀ by gemm's main loop on tensor cores. While a stage is multiplied, the packed weights of a later one
// are on their way into registers; then they are dequantised and put where ldmatrix reads them.
#include "rooftile/ops/gemm/gemm.codes.gpu.h"
#include "rooftile/ops/gemm/gemm.mma.h"

namespace rooftile::codes_gpu {
using gemm_gpu::FewRows;
using gemm_gpu::MmaShape;
using gemm_gpu::OperandTile;
using gemm_gpu::Order;
using gemm_gpu::StageLayout;

/// W's part of a stage: kN rows of kRow bytes of K, a run of 32 weights to a thread, or several.
template <class T, class V, class Shape>
class WeightTile : public StageLayout<T, Order::k_first, Shape::kN, Shape::kRow> {
  using Layout = StageLayout<T, Order::k_first, Shape::kN, Shape::kRow>;
  using Layout::kDepth, Layout::place_k;
  using W = typename V::Weight;
  using Scale = typename V::Scale;
  static constexpr int kRun = kCodesRun, kAcross = kDepth / kRun;
  static constexpr int kRuns = Shape::kN * kAcross / Shape::kThreads;  // of a thread
  static_assert(sizeof(T) == 2 && Shape::kN * kAcross % Shape::kThreads == 0);

 public:
  ROOFTILE_TILE WeightTile(const W& w, const V& values, std::int64_t first)
      : w_(w), values_(values), first_(first) {
    fetch(0);
  }
  /// Puts K from `first` on into a stage, zeros behind its end; asks for what comes next.
  ROOFTILE_TILE void copy(std::byte* to, std::int64_t first, std::int64_t k_left) {
    if (w_.runs) {
      ROOFTILE_UNROLL for (int r = 0; r < kRuns; ++r) {
        const unsigned words[4] = {held_[r].x, held_[r].y, held_[r].z, held_[r].w};
        const auto factor = values_.factor(w_, scales_[r]);
        ROOFTILE_UNROLL for (int i = 0; i < 4; ++i) {
          put(to, r, i, values_.template many<8>(w_, words[i], factor));
        }
      }
      return fetch(first + kDepth);
    }
    ROOFTILE_UNROLL_BY(1) for (int e = 0; e < kRuns * 4; ++e) {
      const int row = row_of(e / 4), k = run_of(e / 4) * kRun + e % 4 * 8;
      const std::int64_t left = first_ + row < w_.n ? k_left - k : 0;
      put(to, e / 4, e % 4,
          weights_at<8>(values_, w_, first_ + row, first + k, left < 8 ? static_cast<int>(left) : 8));
    }
  }

 private:
  ROOFTILE_TILE static int row_of(int r) {
    return (r * Shape::kThreads + static_cast<int>(threadIdx.x)) / kAcross;
  }
  ROOFTILE_TILE static int run_of(int r) {
    return (r * Shape::kThreads + static_cast<int>(threadIdx.x)) % kAcross;
  }
  ROOFTILE_TILE static void put(std::byte* to, int r, int word, const Tile<float, 8>& weights) {
    *reinterpret_cast<uint4*>(to + place_k(row_of(r), run_of(r) * 4 + word)) = narrowed<T>(weights).word(0);
  }
  /// Zeros past W's ends.
  ROOFTILE_TILE void fetch(std::int64_t k) {
    if (!w_.runs) return;
    ROOFTILE_UNROLL for (int r = 0; r < kRuns; ++r) {
      const std::int64_t row = first_ + row_of(r), at = k + run_of(r) * kRun;
      const bool there = row < w_.n && at < w_.k;
      const auto line = w_.line(row);
      held_[r] = there ? run_at(w_, line, at) : uint4{0, 0, 0, 0};
      scales_[r] = there ? values_.scale(w_, line, w_.group_of(at)) : Scale{};
    }
  }

  const W& w_;
  const V& values_;
  std::int64_t first_;
  uint4 held_[kRuns];
  Scale scales_[kRuns];
};

template <class T, class V, Order kOrderA, class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    gemm_codes_mma(const __grid_constant__ GpuProduct p, const __grid_constant__ typename V::Weight w,
                   const __grid_constant__ GpuTiles tiles, std::int64_t first_tile) {
  ROOFTILE_DYNAMIC_SHARED(ring);
  const GpuTile tile = tile_at(tiles, first_tile + blockIdx.x);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const V values(w);
  const std::int64_t first_i = tile.row * Shape::kM, first_j = tile.column * Shape::kN;
  OperandTile<T, kOrderA, Shape::kM, Shape::kThreads, Shape::kRow> a(
      p.a, p.a.data + offset_of(p.batch, p.a_index, tile.matrix) * int(sizeof(T)), first_i, p.m);
  WeightTile<T, V, Shape> b(w, values, first_j);
  using Live = std::conditional_t<kOrderA == Order::any, FewRows, gemm_gpu::AllRows>;
  Live live{};
  if constexpr (kOrderA == Order::any)
    live = {p.m - first_i - Shape::row_of(warp), first_j + Shape::column_of(warp) >= p.n};
  gemm_gpu::multiply_operands<T, Shape>(p, tile, ring, a, b, live);
}

using LargeTile = MmaShape<128, 256, 64, 64, 4, 1>;
using SmallTile = MmaShape<64, 64, 32, 32, 3, 3, 128>;

template <class T, class V>
Status launch_type(const CudaLaunch& launch, const GemmCodes<typename V::Weight>& problem) {
  const GpuProduct p = product_of(problem, int(sizeof(T)));
  const auto run = [&]<Order kOrderA, class Shape>() {
    return gemm_gpu::launch_tiles(launch, V::Weight::kFunction, p, Shape::kM, Shape::kN, Shape::kThreads,
                                  Shape::kShared, gemm_codes_mma<T, V, kOrderA, Shape>, weight_of(problem));
  };
  // Large tiles where they fill half the multiprocessors, and are filled. Which one it is changes no bit.
  const bool large = p.a.k_first && p.a.piece == 16 && p.m > SmallTile::kM && p.n > LargeTile::kN / 2 &&
                     2 * GpuTiles(p, LargeTile::kM, LargeTile::kN).count >= launch.multiprocessors;
  return large ? run.template operator()<Order::k_first, LargeTile>()
               : run.template operator()<Order::any, SmallTile>();
}
template <class V>
Status launch_mma(const CudaLaunch& launch, const GemmCodes<typename V::Weight>& p) {
  if (p.product.empty()) return {};
  return p.product.type == DType::bf16 ? launch_type<bf16, V>(launch, p) : launch_type<f16, V>(launch, p);
}

}  // namespace rooftile::codes_gpu
