#pragma once
// x·Wᵀ in f32, by gemm's main loop without matrix instructions. A thread dequantises four weights of a row
// per stage, whose bytes it asked for a stage earlier.
#include "rooftile/ops/gemm/gemm.codes.gpu.h"
#include "rooftile/ops/gemm/gemm.simt.h"

namespace rooftile::codes_gpu {
using SimtTile = gemm_gpu::SimtShape<float, 3>;

/// W's part of a stage, turned: kDepth steps of K of kSide rows. Lanes are rows.
template <class V>
class TurnedWeights {
  using W = typename V::Weight;
  using Scale = typename V::Scale;
  using Shape = SimtTile;
  static constexpr int kWeights = 4;
  static_assert(Shape::kThreads == Shape::kSide * Shape::kDepth / kWeights);

 public:
  ROOFTILE_TILE TurnedWeights(const W& w, const V& values, std::int64_t first)
      : w_(w), values_(values), row_(first + lane_row()) {
    fetch(0);
  }
  ROOFTILE_TILE void copy(float* to, std::int64_t first, std::int64_t k_left) {
    Tile<float, kWeights> weights;
    if (w_.runs) {
      weights = values_.template many<kWeights>(w_, held_, values_.factor(w_, scale_));
      fetch(first + Shape::kDepth);
    } else {
      const std::int64_t left = row_ < w_.n ? k_left - step() : 0;
      weights = weights_at<kWeights>(values_, w_, row_, first + step(),
                                     left < kWeights ? static_cast<int>(left) : kWeights);
    }
    ROOFTILE_UNROLL for (int i = 0; i < kWeights; ++i) {
      to[(step() + i) * Shape::kPitch + lane_row()] = weights.v[i];
    }
  }

 private:
  ROOFTILE_TILE static int lane_row() { return static_cast<int>(threadIdx.x) % Shape::kSide; }
  ROOFTILE_TILE static int step() { return static_cast<int>(threadIdx.x) / Shape::kSide * kWeights; }
  /// Zeros past W's ends.
  ROOFTILE_TILE void fetch(std::int64_t k) {
    if (!w_.runs) return;
    const std::int64_t at = k + step();
    const bool there = row_ < w_.n && at < w_.k;
    const auto line = w_.line(row_);
    held_ = there ? *reinterpret_cast<const std::uint16_t*>(w_.code(line, at)) : 0u;
    scale_ = there ? values_.scale(w_, line, w_.group_of(at)) : Scale{};
  }

  const W& w_;
  const V& values_;
  std::int64_t row_;
  unsigned held_ = 0;
  Scale scale_{};
};

template <class V>
__global__ void __launch_bounds__(SimtTile::kThreads, SimtTile::kBlocks)
    gemm_codes_simt(const __grid_constant__ GpuProduct p, const __grid_constant__ typename V::Weight w,
                    const __grid_constant__ GpuTiles tiles, std::int64_t first_tile) {
  using Shape = SimtTile;
  ROOFTILE_DYNAMIC_SHARED(ring);
  const GpuTile tile = tile_at(tiles, first_tile + blockIdx.x);
  const V values(w);
  const gemm_gpu::TurnedTile<float, Shape> a(
      p.a, p.a.data + offset_of(p.batch, p.a_index, tile.matrix) * int(sizeof(float)),
      tile.row * Shape::kSide, p.m);
  TurnedWeights<V> b(w, values, tile.column * Shape::kSide);
  gemm_gpu::multiply_turned<float, Shape>(p, tile, ring, a, b);
}
template <class V>
Status launch_simt(const CudaLaunch& launch, const GemmCodes<typename V::Weight>& p) {
  using Shape = SimtTile;
  if (p.product.empty()) return {};
  return gemm_gpu::launch_tiles(launch, V::Weight::kFunction, product_of(p, 4), Shape::kSide, Shape::kSide,
                                Shape::kThreads, Shape::kShared, gemm_codes_simt<V>, weight_of(p));
}

}  // namespace rooftile::codes_gpu
