#pragma once
// The same product for few rows of A, which takes as long as B is read. The operands change places: 64 rows
// of Bᵀ are wgmma's M, up to 64 rows of A its N. One thread keeps a ring of deep slices full by the copy
// engine, one warpgroup multiplies. A tile has as many rows of Bᵀ, 8 to 64, as give every multiprocessor the
// same share; sums of the others are never read. Each element is the same chain over K: factors commute.
#include "rooftile/ops/gemm/gemm.hopper_parts.h"
#include "rooftile/ops/gemm/gemm.hopper_plan.h"

namespace rooftile::gemm_gpu {

template <class T, int kRows_>
struct SkinnyTile {
  static constexpr int kRows = kRows_;  // of A
  static constexpr int kWide = 64, kStages = skinny_stages(kRows), kThreads = 160;
  static constexpr int kBoxes = skinny_row(kRows) / kHopperRow;  // of a slice, one after the other along K
  static constexpr int kBoxK = kHopperRow / int(sizeof(T)), kK = kBoxes * kBoxK;
  static constexpr int kPitch = 20;  // sums: 16 columns of y and 4, for no bank conflict
  using Sum = rooftile::cuda::WgmmaSum<T>;

  struct alignas(1024) Shared {
    T b[kStages][kBoxes][kWide * kBoxK];
    T a[kStages][kBoxes][kRows * kBoxK];
    Sum y[4][kRows * kPitch];  // by warp
    std::uint64_t full[kStages], empty[kStages];
  };
};

struct SkinnyRun {
  int wide, high, slices;  ///< columns and rows of y in a tile
};

#if defined(ROOFTILE_HAS_HOPPER)
namespace hopper {

template <class T, class Tile>
ROOFTILE_TILE void load_deep_slices(typename Tile::Shared& shared, const TensorMap* a_map,
                                    const TensorMap* b_map, const GpuProduct& p, const SkinnyRun& run,
                                    const BlockTiles& tiles) {
  const unsigned bytes = static_cast<unsigned>((run.wide + run.high) * Tile::kK * int(sizeof(T)));
  Ring<Tile::kStages> ring;
  tiles.each([&](const GpuTile& tile) {
    const int n = static_cast<int>(tile.column) * run.wide, m = static_cast<int>(tile.row) * run.high;
    const MatrixAt of_a(p.batch, p.a_index, tile.matrix), of_b(p.batch, p.b_index, tile.matrix);
    ROOFTILE_UNROLL_BY(1) for (int s = 0; s < run.slices; ++s, ring.next()) {
      std::uint64_t* const full = &shared.full[ring.slot];
      mbarrier_wait(&shared.empty[ring.slot], ring.phase ^ 1);
      mbarrier_arrive_expect_tx(full, bytes);
      for (int i = 0; i < Tile::kBoxes; ++i) {  // B is read once, A by every block
        const int k = s * Tile::kK + i * Tile::kBoxK;
        const bool b_k_first = sizeof(T) != 2 || p.b.k_first;
        const int x = b_k_first ? k : n, y = b_k_first ? n : k;
        tensor_load(shared.b[ring.slot][i], b_map, full, {x, y, of_b.z, of_b.w}, Keep::kShort);
        tensor_load(shared.a[ring.slot][i], a_map, full, {k, m, of_a.z, of_a.w}, Keep::kLong);
      }
    }
  });
}

template <class T, class Tile, Major kB>
ROOFTILE_TILE void multiply_turned(typename Tile::Sum (&sums)[Tile::kRows / 2], typename Tile::Shared& shared,
                                   Ring<Tile::kStages>& ring, int slices) {
  constexpr unsigned kGroup = 1024, kBoxBytes = 64 * 64 * sizeof(T);
  constexpr unsigned kStepB = kB == Major::kK ? 32 : 2 * kGroup;
  int before = 0;
  ROOFTILE_UNROLL_BY(1) for (int s = 0; s < slices; ++s, ring.next()) {
    mbarrier_wait(&shared.full[ring.slot], ring.phase);
    wgmma_pin(sums);
    wgmma_fence();
    ROOFTILE_UNROLL for (int i = 0; i < Tile::kBoxes * 4; ++i) {
      const std::uint64_t b = wgmma_descriptor(shared.b[ring.slot][i / 4], kBoxBytes, kGroup, Swizzle::k128);
      const std::uint64_t a = wgmma_descriptor(shared.a[ring.slot][i / 4], kBoxBytes, kGroup, Swizzle::k128);
      const unsigned step = static_cast<unsigned>(i % 4);
      wgmma<T, Tile::kRows, kB, Major::kK>(sums, advance_descriptor(b, step * kStepB),
                                           advance_descriptor(a, step * 32), (s | i) != 0);
    }
    wgmma_commit();
    wgmma_pin(sums);
    if (s > 0) {
      wgmma_wait<1>();
      if (threadIdx.x == 0) mbarrier_arrive(&shared.empty[before]);
    }
    before = ring.slot;
  }
  wgmma_wait<0>();
  wgmma_pin(sums);
  if (threadIdx.x == 0) mbarrier_arrive(&shared.empty[before]);
}

/// 16 columns of y of each warp, turned in shared memory.
template <class Tile>
ROOFTILE_TILE void store_turned(const typename Tile::Sum (&sums)[Tile::kRows / 2], typename Tile::Sum* part,
                                const GpuProduct& p, std::int64_t m, int high, std::int64_t n, int wide,
                                std::int64_t matrix) {
  using Sum = typename Tile::Sum;
  using Word = std::conditional_t<std::is_same_v<Sum, float>, float4, int4>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  ROOFTILE_UNROLL for (int i = 0; i < Tile::kRows / 2; ++i) {
    const int row = i / 4 * 8 + lane % 4 * 2 + i % 2, column = lane / 4 + i % 4 / 2 * 8;
    if (i / 4 * 8 < high) part[row * Tile::kPitch + column] = sums[i];
  }
  __syncwarp();
  const std::int64_t y_first = offset_of(p.batch, 0, matrix), c_first = offset_of(p.batch, 3, matrix);
  ROOFTILE_UNROLL_BY(1) for (int e = lane; e < high * 4; e += 32) {
    const int row = e / 4, column = e % 4 * 4;
    const std::int64_t rest = p.n - n - column;
    const Word four = *reinterpret_cast<const Word*>(part + row * Tile::kPitch + column);
    if (m + row < p.m && column < wide && rest > 0)
      finish(p.epilogue, y_first, c_first, m + row, n + column, rest < 4 ? int(rest) : 4,
             tile::Tile<Sum, 4>{{four.x, four.y, four.z, four.w}});
  }
  __syncwarp();
}

}  // namespace hopper
#endif

template <class T, class Tile>
__global__ void __launch_bounds__(Tile::kThreads, 1)
    gemm_skinny(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map,
                const __grid_constant__ GpuProduct p, const __grid_constant__ GpuTiles all,
                const SkinnyRun run) {
#if defined(ROOFTILE_HAS_HOPPER)
  using namespace hopper;
  constexpr int kReady = 1;  // a named barrier
  ROOFTILE_DYNAMIC_SHARED(memory);
  auto& shared = *reinterpret_cast<typename Tile::Shared*>(memory);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const BlockTiles tiles{all, 1, 0};

  if (warp == 4) {
    if (threadIdx.x % 32 == 0) {
      for (int i = 0; i < Tile::kStages; ++i) {
        mbarrier_init(&shared.full[i], 1);
        mbarrier_init(&shared.empty[i], 1);
      }
      fence_mbarrier_init();
    }
    __syncwarp();
    named_barrier_arrive(kReady, Tile::kThreads);  // nor does it wait for the others
    if (threadIdx.x % 32 == 0) load_deep_slices<T, Tile>(shared, &a_map, &b_map, p, run, tiles);
  } else {
    named_barrier_sync(kReady, Tile::kThreads);
    Ring<Tile::kStages> ring;
    typename Tile::Sum sums[Tile::kRows / 2];
    tiles.each([&](const GpuTile& tile) {
      if constexpr (sizeof(T) != 2)
        multiply_turned<T, Tile, Major::kK>(sums, shared, ring, run.slices);
      else if (p.b.k_first)
        multiply_turned<T, Tile, Major::kK>(sums, shared, ring, run.slices);
      else
        multiply_turned<T, Tile, Major::kMn>(sums, shared, ring, run.slices);
      store_turned<Tile>(sums, shared.y[warp], p, tile.row * run.high, run.high,
                         tile.column * run.wide + warp * 16, run.wide - warp * 16, tile.matrix);
    });
  }
#endif
}

}  // namespace rooftile::gemm_gpu
