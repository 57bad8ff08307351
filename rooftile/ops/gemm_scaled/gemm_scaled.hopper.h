#pragma once
// A product of codes by wgmma (Hopper): gemm.hopper.h's producer and ring, 128 codes of K in a slice. Sums of
// a block of 128 are scaled into the totals, which are registers, too, while the other consumer multiplies;
// with one block throughout, the scales come at the end. i8: sums are exact, so mma's bits. f8: sums keep 14
// bits, so those of each 128 are promoted, whatever the block: bits of its own.
#include "rooftile/ops/gemm/gemm.hopper.h"
#include "rooftile/ops/gemm_scaled/gemm_scaled.gpu.h"

namespace rooftile::scaled_gpu {
using gemm_gpu::HopperRun;
using gemm_gpu::HopperTile;

#if defined(ROOFTILE_HAS_HOPPER)
namespace hopper {
using namespace gemm_gpu::hopper;
using rooftile::cuda::Ring;

/// The scales of a warp's 16 rows and of a tile's columns: a lane holds those of its two rows, and brings
/// those of four columns to the warp's part of shared memory, a block ahead. Past the ends stand the last's.
template <class Tile>
class WarpScales {
  static constexpr int kEach = Tile::kN / 32;
  static_assert(kEach == 4);

 public:
  ROOFTILE_TILE WarpScales(const GpuScales& scales, const GpuProduct& p, std::int64_t m, std::int64_t n,
                           std::int64_t matrix, std::byte* staging)
      : scales_(scales), ring_(reinterpret_cast<float*>(staging)) {
    const auto within = [](std::int64_t i, std::int64_t extent) { return i < extent ? i : extent - 1; };
    ROOFTILE_UNROLL for (int h = 0; h < 2; ++h) rows_[h] =
        scales.of_row(matrix, within(m + lane() / 4 + h * 8, p.m));
    ROOFTILE_UNROLL for (int c = 0; c < kEach; ++c) columns_[c] =
        scales.of_column(matrix, within(n + lane() * kEach + c, p.n));
    fetch(0);
    put(0);
  }
  /// Asks for a block's.
  ROOFTILE_TILE void fetch(std::int64_t block) {
    ROOFTILE_UNROLL for (int h = 0; h < 2; ++h) next_rows_[h] = rows_[h][block * scales_.a_block];
    ROOFTILE_UNROLL for (int c = 0; c < kEach; ++c) next_[c] = columns_[c][block * scales_.b_block];
  }
  /// They become the block's, of which this is the number. The warp has read those of the last but one.
  ROOFTILE_TILE void put(int block) {
    of_columns_ = ring_ + block % 2 * Tile::kN;
    ROOFTILE_UNROLL for (int h = 0; h < 2; ++h) of_rows_[h] = next_rows_[h];
    const float4 four{next_[0], next_[1], next_[2], next_[3]};
    *reinterpret_cast<float4*>(of_columns_ + lane() * kEach) = four;
    __syncwarp();
  }
  /// total = sum · scale + total, for each of a thread's sums.
  template <class Sum>
  ROOFTILE_TILE void promote(const Sum (&sums)[Tile::kN / 2], float (&totals)[Tile::kN / 2]) const {
    each([&](int i, float scale) { totals[i] = __fmaf_rn(static_cast<float>(sums[i]), scale, totals[i]); });
  }
  /// total = total · scale
  ROOFTILE_TILE void scale(float (&totals)[Tile::kN / 2]) const {
    each([&](int i, float scale) { totals[i] = __fmaf_rn(totals[i], scale, 0.0f); });
  }

 private:
  template <class F>
  ROOFTILE_TILE void each(F&& f) const {
    ROOFTILE_UNROLL for (int j = 0; j < Tile::kN / 8; ++j) {
      const float2 columns = *reinterpret_cast<const float2*>(of_columns_ + j * 8 + lane() % 4 * 2);
      ROOFTILE_UNROLL for (int d = 0; d < 4; ++d)
          f(j * 4 + d, of_rows_[d / 2] * (d % 2 ? columns.y : columns.x));
    }
  }
  ROOFTILE_TILE static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  const GpuScales& scales_;
  float *ring_, *of_columns_ = nullptr;
  const float *rows_[2], *columns_[kEach];
  float next_rows_[2], next_[kEach], of_rows_[2];
};

/// Adds a slice of 128 of K to the sums, of codes of formats that the call names.
template <class A, class B, class Tile>
ROOFTILE_TILE void multiply_codes(typename Tile::Sum (&sums)[Tile::kN / 2], std::uint64_t a,
                                  std::uint64_t b) {
  ROOFTILE_UNROLL for (int i = 0; i < Tile::kSteps; ++i) {
    const auto step = static_cast<unsigned>(i) * 32;
    if constexpr (std::is_same_v<A, std::int8_t>)
      wgmma<A, Tile::kN>(sums, advance_descriptor(a, step), advance_descriptor(b, step), i != 0);
    else
      wgmma_f8<A, B, Tile::kN>(sums, advance_descriptor(a, step), advance_descriptor(b, step), i != 0);
  }
}

/// The totals of 64 rows of a tile, by a consumer: each slice's sums are promoted. `scales`: of blocks, which
/// are slices; null: sums are added as they are.
template <class A, class B, class Tile, bool kScaled>
ROOFTILE_TILE void multiply_slices(float (&totals)[Tile::kN / 2], WarpScales<Tile>* scales,
                                   typename Tile::Shared& shared, Ring<Tile::kStages>& ring,
                                   const HopperRun& run, int consumer) {
  typename Tile::Sum sums[Tile::kN / 2];
  ROOFTILE_UNROLL_BY(1) for (int s = 0; s < run.slices; ++s, ring.next()) {
    mbarrier_wait(&shared.full[ring.slot], ring.phase);
    const std::uint64_t a =
        wgmma_descriptor(shared.a[ring.slot] + consumer * 64 * Tile::kK, 16, 1024, Swizzle::k128);
    const std::uint64_t b = wgmma_descriptor(shared.b[ring.slot], 16, 1024, Swizzle::k128);
    wgmma_pin(sums);
    wgmma_fence();
    multiply_codes<A, B, Tile>(sums, a, b);
    wgmma_commit();
    wgmma_pin(sums);
    if (kScaled && s + 1 < run.slices) scales->fetch(s + 1);
    wgmma_wait<0>();
    wgmma_pin(sums);
    free_slot<Tile>(shared, ring.slot, run.cluster);
    if constexpr (kScaled) {
      scales->promote(sums, totals);
      if (s + 1 < run.slices) scales->put(s + 1);
    } else {
      ROOFTILE_UNROLL for (int i = 0; i < Tile::kN / 2; ++i) totals[i] =
          __fadd_rn(totals[i], static_cast<float>(sums[i]));
    }
  }
}

/// Where a warp's part of a tile begins.
struct WarpPlace {
  std::int64_t m, n, matrix;
};

/// A warp's part of a tile, scaled. Codes of f8 have four main loops, for their formats.
template <class T, class Tile, bool kMany>
ROOFTILE_TILE void multiply_tile(float (&totals)[Tile::kN / 2], typename Tile::Shared& shared,
                                 Ring<Tile::kStages>& ring, const GpuScales& scales, const GpuProduct& p,
                                 const HopperRun& run, int consumer, const WarpPlace& at,
                                 std::byte* staging) {
  constexpr bool kBytes = std::is_same_v<T, std::int8_t>;
  const auto zero = [&] { ROOFTILE_UNROLL for (float& total : totals) total = 0; };
  const auto run_slices = [&](WarpScales<Tile>* its) {
    zero();
    if constexpr (kBytes)
      multiply_slices<T, T, Tile, kMany>(totals, its, shared, ring, run, consumer);
    else if (scales.a_large)
      scales.b_large ? multiply_slices<f8e5m2, f8e5m2, Tile, kMany>(totals, its, shared, ring, run, consumer)
                     : multiply_slices<f8e5m2, f8e4m3, Tile, kMany>(totals, its, shared, ring, run, consumer);
    else
      scales.b_large ? multiply_slices<f8e4m3, f8e5m2, Tile, kMany>(totals, its, shared, ring, run, consumer)
                     : multiply_slices<f8e4m3, f8e4m3, Tile, kMany>(totals, its, shared, ring, run, consumer);
  };
  if constexpr (kMany) {
    WarpScales<Tile> its(scales, p, at.m, at.n, at.matrix, staging);
    run_slices(&its);
  } else if constexpr (kBytes) {
    int sums[Tile::kN / 2];
    multiply<T, Tile, Major::kK, Major::kK>(sums, shared, ring, run, consumer);
    const WarpScales<Tile> its(scales, p, at.m, at.n, at.matrix, staging);
    zero();
    its.promote(sums, totals);
  } else {
    run_slices(nullptr);
    const WarpScales<Tile> its(scales, p, at.m, at.n, at.matrix, staging);
    its.scale(totals);
  }
}

}  // namespace hopper
#endif

/// kMany: several blocks, of 128; else one.
template <class T, class Tile, bool kMany>
__global__ void __launch_bounds__(Tile::kThreads, 1)
    gemm_scaled_hopper(const __grid_constant__ rooftile::cuda::TensorMap a_map,
                       const __grid_constant__ rooftile::cuda::TensorMap b_map,
                       const __grid_constant__ GpuProduct p, const __grid_constant__ GpuScales scales,
                       const __grid_constant__ GpuTiles all, const HopperRun run) {
#if defined(ROOFTILE_HAS_HOPPER)
  using namespace hopper;
  ROOFTILE_DYNAMIC_SHARED(memory);
  auto& shared = *reinterpret_cast<typename Tile::Shared*>(memory);
  const int consumer = static_cast<int>(threadIdx.x) / 128 - 1;
  const BlockTiles tiles{all, run.cluster, run.cluster > 1 ? static_cast<int>(cluster_rank()) : 0};
  begin_ring<Tile>(shared, &a_map, &b_map, run.cluster);
  if (consumer < 0) {
    give_registers<56>();
    if (threadIdx.x == 0) load_slices<T, Tile>(shared, &a_map, &b_map, p, run, tiles);
    __syncwarp();
  } else {
    take_registers<224>();
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
    std::byte* const staging = shared.y[consumer * 4 + warp];
    Ring<Tile::kStages> ring;
    tiles.each([&](const GpuTile& tile) {
      const std::int64_t m = tile.row * Tile::kM + consumer * 64 + warp * 16, n = tile.column * Tile::kN;
      float totals[Tile::kN / 2];
      multiply_tile<T, Tile, kMany>(totals, shared, ring, scales, p, run, consumer, {m, n, tile.matrix},
                                    staging);
      __syncwarp();
      store_any<Tile>(totals, staging, p, m, n, tile.matrix);
    });
  }
  if (run.cluster > 1) cluster_sync();  // no block leaves while another still copies to it
#endif
}

}  // namespace rooftile::scaled_gpu
