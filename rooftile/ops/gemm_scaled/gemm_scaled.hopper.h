#pragma once
// A product of codes by wgmma (Hopper): gemm.hopper.h's producer and ring, tiles of 128 by 128. With several
// blocks of K, of 128, each block's sums are scaled into the totals, registers too, while the other consumer
// multiplies. With one block the scales come at the end.
//   i8: sums are exact, so mma's bits.
//   f8 as halves, which codes became before (gemm_scaled.halves.cu): mma's bits.
//   f8 as it is: sums keep 14 bits, so those of each 128 are promoted, whatever the block: bits of its own.
#include "rooftile/ops/gemm/gemm.hopper.h"
#include "rooftile/ops/gemm_scaled/gemm_scaled.gpu.h"

namespace rooftile::scaled_gpu {
using gemm_gpu::HopperRun;
using gemm_gpu::HopperTile;

/// A tile whose slots have the scales of a block of K, too: of its rows, then of its columns.
template <class T>
struct ScaledTile : HopperTile<T, 128, 5> {
  using Base = HopperTile<T, 128, 5>;
  static constexpr bool kScaled = true, kWarpsFree = true;
  static constexpr int kSlices = GemmScaledProblem::kHopperBlock / Base::kK;  ///< of a block
  static constexpr unsigned kFillers = 1 + 2;                                 ///< the copies, and two warps
  static constexpr int kPitch = Base::kN / 4 + 4;  ///< of a lane's columns; four such are in all banks
  struct Shared : Base::Shared {
    float rows[Base::kStages][Base::kM], columns[Base::kStages][4 * kPitch];
  };
  /// Columns that one lane in four has sums of are neighbours.
  ROOFTILE_TILE static int place(int column) { return column % 8 / 2 * kPitch + column / 8 * 2 + column % 2; }
};
/// A tile whose totals are scaled at their end.
template <class T>
struct PlainTile : HopperTile<T, 128> {
  static constexpr bool kScaled = false;
  static constexpr int kSlices = 1;
};

#if defined(ROOFTILE_HAS_HOPPER)
namespace hopper {
using namespace gemm_gpu::hopper;
using rooftile::cuda::Ring;

/// The scale of each of a thread's sums, by those of its two rows and of its pairs of columns, `pair_at(j)`.
template <int kN, class PairAt, class F>
ROOFTILE_TILE void each_scale(const float (&rows)[2], PairAt&& pair_at, F&& f) {
  ROOFTILE_UNROLL for (int j = 0; j < kN / 8; ++j) {
    const float2 pair = pair_at(j);
    ROOFTILE_UNROLL for (int d = 0; d < 4; ++d) f(j * 4 + d, rows[d / 2] * (d % 2 ? pair.y : pair.x));
  }
}

/// By two warps beside the producer: the scales of a tile's rows and columns, each slot's block's. Those of
/// two slots are asked for at once: each takes as long as a slot's products.
template <class Tile>
ROOFTILE_TILE void load_scales(typename Tile::Shared& shared, const GpuProduct& p, const GpuScales& scales,
                               const HopperRun& run, const BlockTiles& tiles) {
  constexpr int kEach = 4, kAhead = 2;
  static_assert(Tile::kM == 128 && Tile::kN == 128 && kAhead % Tile::kSlices == 0);
  const int thread = static_cast<int>(threadIdx.x) % 64;
  Ring<Tile::kStages> ring;
  tiles.each([&](const GpuTile& tile) {
    const float* its[kEach];
    ROOFTILE_UNROLL for (int c = 0; c < kEach; ++c) {
      const int i = thread + c % 2 * 64;
      const std::int64_t at = c < 2 ? tile.row * Tile::kM + i : tile.column * Tile::kN + i;
      const std::int64_t last = (c < 2 ? p.m : p.n) - 1, within = at < last ? at : last;
      its[c] = c < 2 ? scales.of_row(tile.matrix, within) : scales.of_column(tile.matrix, within);
    }
    ROOFTILE_UNROLL_BY(1) for (int s = 0; s < run.slices; s += kAhead) {
      float ahead[kAhead][kEach];
      ROOFTILE_UNROLL for (int u = 0; u < kAhead; ++u) {
        ROOFTILE_UNROLL for (int c = 0; c < kEach; ++c) {
          if (s + u < run.slices) ahead[u][c] = *its[c];
          if (u % Tile::kSlices == Tile::kSlices - 1) its[c] += c < 2 ? scales.a_block : scales.b_block;
        }
      }
      ROOFTILE_UNROLL for (int u = 0; u < kAhead; ++u) {
        if (s + u >= run.slices) break;
        mbarrier_wait(&shared.empty[ring.slot], ring.phase ^ 1);
        ROOFTILE_UNROLL for (int c = 0; c < 2; ++c) {
          shared.rows[ring.slot][thread + c * 64] = ahead[u][c];
          shared.columns[ring.slot][Tile::place(thread + c * 64)] = ahead[u][c + 2];
        }
        __syncwarp();
        if (thread % 32 == 0) mbarrier_arrive(&shared.full[ring.slot]);
        ring.next();
      }
    }
  });
}

/// The sums of a slice of K, of formats that the call names. `add`: to those of the slice before.
template <class A, class B, class Tile>
ROOFTILE_TILE void multiply_codes(typename Tile::Sum (&sums)[Tile::kN / 2], std::uint64_t a, std::uint64_t b,
                                  bool add) {
  ROOFTILE_UNROLL for (int i = 0; i < Tile::kSteps; ++i) {
    const std::uint64_t its_a = advance_descriptor(a, static_cast<unsigned>(i) * 32),
                        its_b = advance_descriptor(b, static_cast<unsigned>(i) * 32);
    if constexpr (std::is_same_v<A, std::int8_t> || std::is_same_v<A, f16>)
      wgmma<A, Tile::kN>(sums, its_a, its_b, add || i != 0);
    else
      wgmma_f8<A, B, Tile::kN>(sums, its_a, its_b, add || i != 0);
  }
}

/// The totals of 64 rows of a tile, by a consumer: a block's sums are promoted, by the scales of its last
/// slot if that has any.
template <class A, class B, class Tile>
ROOFTILE_TILE void multiply_slices(float (&totals)[Tile::kN / 2], typename Tile::Shared& shared,
                                   Ring<Tile::kStages>& ring, const GpuProduct& p, const GpuScales& scales,
                                   const HopperRun& run, int consumer) {
  const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
  const bool one_column = scales.block_n >= p.n || scales.block_n % Tile::kN == 0;  // a scale for the tile's
  typename Tile::Sum sums[Tile::kN / 2];
  const auto end_slice = [&] {
    wgmma_wait<0>();
    wgmma_pin(sums);
    free_slot<Tile>(shared, ring.slot, run.cluster);
  };
  ROOFTILE_UNROLL for (float& total : totals) total = 0;
  ROOFTILE_UNROLL_BY(1) for (int s = 0; s < run.slices; ++s, ring.next()) {
    mbarrier_wait(&shared.full[ring.slot], ring.phase);
    const std::uint64_t a =
        wgmma_descriptor(shared.a[ring.slot] + consumer * 64 * Tile::kK, 16, 1024, Swizzle::k128);
    const std::uint64_t b = wgmma_descriptor(shared.b[ring.slot], 16, 1024, Swizzle::k128);
    wgmma_pin(sums);
    wgmma_fence();
    multiply_codes<A, B, Tile>(sums, a, b, s % Tile::kSlices != 0);
    wgmma_commit();
    wgmma_pin(sums);
    if (s % Tile::kSlices != Tile::kSlices - 1 && s + 1 < run.slices) {
      end_slice();
      continue;
    }
    if constexpr (Tile::kScaled) {
      const float* const its = shared.rows[ring.slot] + consumer * 64 + thread / 32 * 16 + lane / 4;
      const float rows[2] = {its[0], its[8]};
      float4 columns[Tile::kN / 16];
      ROOFTILE_UNROLL for (int j = 0; j < Tile::kN / 16; ++j) columns[j] =
          reinterpret_cast<const float4*>(shared.columns[ring.slot] + lane % 4 * Tile::kPitch)[j];
      const auto add = [&](int i, float scale) {
        totals[i] = __fmaf_rn(static_cast<float>(sums[i]), scale, totals[i]);
      };
      // A wait in each branch: one alone, ptxas moves to the head of its basic block, before the loads.
      if (one_column) {
        const float of_rows[2] = {rows[0] * columns[0].x, rows[1] * columns[0].x};
        end_slice();
        ROOFTILE_UNROLL for (int i = 0; i < Tile::kN / 2; ++i) add(i, of_rows[i % 4 / 2]);
      } else {
        end_slice();
        each_scale<Tile::kN>(
            rows,
            [&](int j) {
              const float4& two = columns[j / 2];
              return j % 2 ? float2{two.z, two.w} : float2{two.x, two.y};
            },
            add);
      }
    } else {
      end_slice();
      ROOFTILE_UNROLL for (int i = 0; i < Tile::kN / 2; ++i) totals[i] =
          __fadd_rn(totals[i], static_cast<float>(sums[i]));
    }
  }
}

/// Where a warp's part of a tile begins.
struct WarpPlace {
  std::int64_t m, n, matrix;
};

/// The scales of a warp's part of a tile, asked for before its sums are there: a lane has those of its two
/// rows, and of each 32nd column.
template <class Tile>
struct EndScales {
  float rows[2], columns[Tile::kN / 32];

  ROOFTILE_TILE EndScales(const GpuScales& scales, const GpuProduct& p, const WarpPlace& at) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const auto within = [](std::int64_t i, std::int64_t extent) { return i < extent ? i : extent - 1; };
    ROOFTILE_UNROLL for (int h = 0; h < 2; ++h) rows[h] =
        *scales.of_row(at.matrix, within(at.m + lane / 4 + h * 8, p.m));
    ROOFTILE_UNROLL for (int c = 0; c < Tile::kN / 32; ++c) columns[c] =
        *scales.of_column(at.matrix, within(at.n + c * 32 + lane, p.n));
  }
  /// A thread's sums become totals. `staging`: the warp's.
  template <class Sum>
  ROOFTILE_TILE void scale(float (&totals)[Tile::kN / 2], const Sum (&sums)[Tile::kN / 2],
                           std::byte* staging) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    float* const its = reinterpret_cast<float*>(staging);
    if (lane == 0) tensor_store_wait_read<0>();  // the tile before
    __syncwarp();
    ROOFTILE_UNROLL for (int c = 0; c < Tile::kN / 32; ++c) its[c * 32 + lane] = columns[c];
    __syncwarp();
    each_scale<Tile::kN>(
        rows, [&](int j) { return *reinterpret_cast<const float2*>(its + j * 8 + lane % 4 * 2); },
        [&](int i, float scale) { totals[i] = __fmaf_rn(static_cast<float>(sums[i]), scale, 0.0f); });
    __syncwarp();
  }
};

/// A warp's part of a tile, scaled. Codes of f8 have four main loops, for their formats.
template <class T, class Tile>
ROOFTILE_TILE void multiply_tile(float (&totals)[Tile::kN / 2], typename Tile::Shared& shared,
                                 Ring<Tile::kStages>& ring, const GpuScales& scales, const GpuProduct& p,
                                 const HopperRun& run, int consumer) {
  const auto slices = [&]<class A, class B>() {
    multiply_slices<A, B, Tile>(totals, shared, ring, p, scales, run, consumer);
  };
  if constexpr (std::is_same_v<T, std::int8_t> || std::is_same_v<T, f16>)
    slices.template operator()<T, T>();
  else if (scales.a_large)
    scales.b_large ? slices.template operator()<f8e5m2, f8e5m2>()
                   : slices.template operator()<f8e5m2, f8e4m3>();
  else
    scales.b_large ? slices.template operator()<f8e4m3, f8e5m2>()
                   : slices.template operator()<f8e4m3, f8e4m3>();
}

/// Totals to y, by the copy engine where it can.
template <class Tile>
ROOFTILE_TILE void store_totals(const float (&totals)[Tile::kN / 2], std::byte* staging, int& buffer,
                                const rooftile::cuda::TensorMap* y_map, const GpuProduct& p,
                                const HopperRun& run, const WarpPlace& at) {
  if (!run.whole) {
    __syncwarp();
    return store_any<Tile>(totals, staging, p, at.m, at.n, at.matrix);
  }
  const auto store = [&]<class T>() {
    store_whole<T, Tile>(totals, staging, buffer, y_map, p, int(at.m), int(at.n),
                         MatrixAt(p.batch, 0, at.matrix));
  };
  if (p.epilogue.out == DType::bf16)
    store.template operator()<bf16>();
  else if (p.epilogue.out == DType::f16)
    store.template operator()<f16>();
  else
    store.template operator()<float>();
}

}  // namespace hopper
#endif

template <class T, class Tile>
__global__ void __launch_bounds__(Tile::kThreads, 1)
    gemm_scaled_hopper(const __grid_constant__ gemm_gpu::HopperMaps a_maps,
                       const __grid_constant__ rooftile::cuda::TensorMap b_map,
                       const __grid_constant__ rooftile::cuda::TensorMap y_map,
                       const __grid_constant__ GpuProduct p, const __grid_constant__ GpuScales scales,
                       const __grid_constant__ GpuTiles all, const HopperRun run) {
#if defined(ROOFTILE_HAS_HOPPER)
  using namespace hopper;
  ROOFTILE_DYNAMIC_SHARED(memory);
  auto& shared = *reinterpret_cast<typename Tile::Shared*>(memory);
  const int consumer = static_cast<int>(threadIdx.x) / 128 - 1, warp = static_cast<int>(threadIdx.x) / 32 % 4;
  const BlockTiles tiles{all, run.cluster, run.cluster > 1 ? static_cast<int>(cluster_rank()) : 0};
  begin_ring<Tile>(shared, &a_maps.whole, &b_map, run.cluster, run.tail);
  if (consumer < 0) {
    give_registers<56>();
    if (threadIdx.x == 0) load_slices<T, Tile>(shared, a_maps, &b_map, p, run, tiles);
    if constexpr (Tile::kScaled)
      if (warp >= 2) load_scales<Tile>(shared, p, scales, run, tiles);
    __syncwarp();
  } else {
    take_registers<224>();
    std::byte* const staging = shared.y[consumer * 4 + warp];
    Ring<Tile::kStages> ring;
    int buffer = 0;
    tiles.each([&](const GpuTile& tile) {
      const WarpPlace at{tile.row * Tile::kM + consumer * 64 + warp * 16, tile.column * Tile::kN,
                         tile.matrix};
      float totals[Tile::kN / 2];
      if constexpr (Tile::kScaled) {
        multiply_tile<T, Tile>(totals, shared, ring, scales, p, run, consumer);
      } else {
        const EndScales<Tile> end(scales, p, at);
        if constexpr (std::is_same_v<T, f8e4m3>) {
          multiply_tile<T, Tile>(totals, shared, ring, scales, p, run, consumer);
          end.scale(totals, totals, staging);
        } else {
          typename Tile::Sum sums[Tile::kN / 2];
          multiply<T, Tile, Major::kK, Major::kK>(sums, shared, ring, run, consumer);
          end.scale(totals, sums, staging);
        }
      }
      store_totals<Tile>(totals, staging, buffer, &y_map, p, run, at);
    });
    if (run.whole && threadIdx.x % 32 == 0) tensor_store_wait_read<0>();
  }
  if (run.cluster > 1) cluster_sync();  // no block leaves while another still copies to it
#endif
}

}  // namespace rooftile::scaled_gpu
