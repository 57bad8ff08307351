#pragma once
// A product by wgmma (Hopper): f16, bf16 and tf32, sums in f32, for each element one chain over ascending K,
// whatever the tile: the bits of gemm.mma.h; i8, sums in i32. tf32 and i8 have their neighbours along K, as
// wgmma reads no others. A block has three warpgroups. One thread of the first, the
// producer, keeps a ring of slices of A and B full by the copy engine (TMA). The other two, the consumers,
// multiply 64 rows of a slice each, with the registers that the first gave up. Blocks stay for several tiles:
// while consumers store a tile, slices of the next arrive. Two blocks of a cluster, one tile above the other,
// share B: each copies half of a slice to both.
#include "rooftile/ops/gemm/gemm.hopper_parts.h"
#include "rooftile/ops/gemm/gemm.hopper_plan.h"

namespace rooftile::gemm_gpu {

/// A block's tile, and what it keeps in shared memory.
template <class T, int kN_, int kStages_ = hopper_stages(kN_)>
struct HopperTile {
  static constexpr int kM = kHopperHeight, kN = kN_, kStages = kStages_;
  static constexpr int kK = kHopperRow / int(sizeof(T)), kSteps = kHopperRow / 32;  // of wgmma in a slice
  static constexpr int kConsumers = kM / 64, kThreads = 128 * (1 + kConsumers);
  static constexpr int kBox = 64 * 64;  // elements of a box whose neighbours are along M or N
  static constexpr bool kAnyMajor = sizeof(T) == 2;
  using Sum = rooftile::cuda::WgmmaSum<T>;
  static constexpr int kStaging =
      16 * 64 * 4;  // bytes of a warp: 16 rows of 64 sums, or two times 128 bytes of results
  static constexpr unsigned kSliceBytes = (kM + kN) * kK * sizeof(T);
  static constexpr unsigned kFillers = 1;    ///< what arrives when a slot is full: the copies
  static constexpr bool kWarpsFree = false;  ///< a slot is freed by each warp, not by a consumer

  struct alignas(1024) Shared {
    T a[kStages][kM * kK];
    T b[kStages][kN * kK];
    std::byte y[kConsumers * 4][kStaging];
    std::uint64_t full[kStages], empty[kStages];  // mbarriers
  };
};

struct HopperRun {
  int cluster, slices;
  bool whole;  ///< y is alpha times the sums, in rows of 16-byte words
  int tail;    ///< rows of A in the last tile's box
};

#if defined(ROOFTILE_HAS_HOPPER)
namespace hopper {

/// The producer: one thread.
template <class T, class Tile>
ROOFTILE_TILE void load_slices(typename Tile::Shared& shared, const HopperMaps& a_maps,
                               const TensorMap* b_map, const GpuProduct& p, const HopperRun& run,
                               const BlockTiles& tiles) {
  const int rank = tiles.rank;
  Ring<Tile::kStages> ring;
  tiles.each([&](const GpuTile& tile) {
    const int m = static_cast<int>(tile.row) * Tile::kM, n = static_cast<int>(tile.column) * Tile::kN;
    const MatrixAt of_a(p.batch, p.a_index, tile.matrix), of_b(p.batch, p.b_index, tile.matrix);
    const bool last = m + Tile::kM > p.m;
    const TensorMap* const a_map = last ? &a_maps.tail : &a_maps.whole;
    const unsigned bytes =
        last ? static_cast<unsigned>((run.tail + Tile::kN) * Tile::kK * int(sizeof(T))) : Tile::kSliceBytes;
    ROOFTILE_UNROLL_BY(1) for (int s = 0; s < run.slices; ++s, ring.next()) {
      const int k = s * Tile::kK;
      std::uint64_t* const full = &shared.full[ring.slot];
      T *const a = shared.a[ring.slot], *const b = shared.b[ring.slot];
      // [request]
      mbarrier_wait(&shared.empty[ring.slot], ring.phase ^ 1);
      mbarrier_arrive_expect_tx(full, bytes);
      // [/request]
      if (!Tile::kAnyMajor || p.a.k_first) {
        tensor_load(a, a_map, full, {k, m, of_a.z, of_a.w});
      } else {
        ROOFTILE_UNROLL_BY(1)
        for (int i = 0; i < Tile::kM; i += 64)
          tensor_load(a + i * Tile::kK, a_map, full, {m + i, k, of_a.z, of_a.w});
      }
      // Each block of the cluster copies its part of B to all: of N, or where neighbours are along N, of K.
      // [share]
      const auto load = [&](T* to, int x, int y) {
        if (run.cluster > 1)
          tensor_load_to_all(to, b_map, full, {x, y, of_b.z, of_b.w}, std::uint16_t{3});
        else
          tensor_load(to, b_map, full, {x, y, of_b.z, of_b.w});
      };
      // [/share]
      if (!Tile::kAnyMajor || p.b.k_first) {
        const int first = run.cluster > 1 ? rank * Tile::kN / 2 : 0;
        load(b + first * Tile::kK, k, n + first);
      } else {
        const int first = run.cluster > 1 ? rank * Tile::kK / 2 : 0;
        ROOFTILE_UNROLL_BY(1)
        for (int i = 0; i < Tile::kN; i += 64) load(b + i * Tile::kK + first * 64, n + i, k + first);
      }
    }
  });
}

/// A consumer, or each of its warps, has read a slot: told to each block of the cluster, as each may fill it.
template <class Tile>
ROOFTILE_TILE void free_slot(typename Tile::Shared& shared, int slot, int cluster) {
  const int thread = static_cast<int>(threadIdx.x) % (Tile::kWarpsFree ? 32 : 128);
  if constexpr (Tile::kWarpsFree) __syncwarp();
  if (thread >= cluster) return;
  if (cluster > 1)
    mbarrier_arrive_at_relaxed(&shared.empty[slot], static_cast<unsigned>(thread));
  else
    mbarrier_arrive(&shared.empty[slot]);
}

/// The sums of 64 rows of a tile, by a consumer.
template <class T, class Tile, Major kA, Major kB>
ROOFTILE_TILE void multiply(typename Tile::Sum (&sums)[Tile::kN / 2], typename Tile::Shared& shared,
                            Ring<Tile::kStages>& ring, const HopperRun& run, int consumer) {
  constexpr unsigned kGroup = 1024, kBoxBytes = Tile::kBox * sizeof(T);
  constexpr unsigned kStepA = kA == Major::kK ? 32 : 2 * kGroup, kStepB = kB == Major::kK ? 32 : 2 * kGroup;
  const auto give_back = [&](int slot) { free_slot<Tile>(shared, slot, run.cluster); };
  int before = 0;
  ROOFTILE_UNROLL_BY(1) for (int s = 0; s < run.slices; ++s, ring.next()) {
    // [multiply]
    mbarrier_wait(&shared.full[ring.slot], ring.phase);
    const std::uint64_t a =
        wgmma_descriptor(shared.a[ring.slot] + consumer * 64 * Tile::kK, kBoxBytes, kGroup, Swizzle::k128);
    const std::uint64_t b = wgmma_descriptor(shared.b[ring.slot], kBoxBytes, kGroup, Swizzle::k128);
    wgmma_pin(sums);
    wgmma_fence();
    ROOFTILE_UNROLL for (int i = 0; i < Tile::kSteps; ++i) {
      wgmma<T, Tile::kN, kA, kB>(sums, advance_descriptor(a, static_cast<unsigned>(i) * kStepA),
                                 advance_descriptor(b, static_cast<unsigned>(i) * kStepB), (s | i) != 0);
    }
    wgmma_commit();
    wgmma_pin(sums);
    if (s > 0) {  // the slice before has been read; this one keeps the tensor cores busy
      wgmma_wait<1>();
      give_back(before);
    }
    before = ring.slot;
    // [/multiply]
  }
  wgmma_wait<0>();
  wgmma_pin(sums);
  give_back(before);
}

/// A sum's result of 32 bits.
ROOFTILE_TILE unsigned result_bits(const GpuEpilogue&, float, int sum) { return static_cast<unsigned>(sum); }
ROOFTILE_TILE unsigned result_bits(const GpuEpilogue& e, float alpha, float sum) {
  const float v = __fmaf_rn(sum, alpha, 0.0f);
  return e.out == DType::tf32 ? rounded_to_tf32(v) : __float_as_uint(v);
}

/// Results of 16 bits, or of 32: 128 bytes of columns at a time through one of the warp's two buffers.
/// `buffer`: the one to be written next, from tile to tile.
template <class T, class Tile, class Sum>
ROOFTILE_TILE void store_whole(const Sum (&sums)[Tile::kN / 2], std::byte* staging, int& buffer,
                               const TensorMap* y_map, const GpuProduct& p, int m, int n,
                               const MatrixAt& at) {
  constexpr int kColumns = sizeof(T) == 2 ? 64 : 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float alpha = static_cast<float>(p.epilogue.alpha);
  // [store]
  ROOFTILE_UNROLL for (int i = 0; i < Tile::kN / kColumns; ++i, buffer ^= 1) {
    std::byte* const to = staging + buffer * (Tile::kStaging / 2);
    if (lane == 0) tensor_store_wait_read<1>();  // the store before the last has left this buffer
    __syncwarp();
    if constexpr (sizeof(T) == 2)
      stage_results<T>(to, [&](int s) { return __fmaf_rn(sums[i * 32 + s], alpha, 0.0f); });
    else
      stage_words(to, sums + i * 16, [&](auto sum) { return result_bits(p.epilogue, alpha, sum); });
    fence_proxy_async();
    __syncwarp();
    if (lane == 0) {
      tensor_store(y_map, {n + i * kColumns, m, at.z, at.w}, to);
      tensor_store_commit();
    }
  }
  // [/store]
}

/// Four columns of 16 rows of sums, by a lane every other row, to words of y. `word_at(row)`: where sums are.
template <class WordAt>
ROOFTILE_TILE void store_column_of_words(const GpuProduct& p, std::int64_t m, std::int64_t at_j,
                                         std::int64_t y_first, std::int64_t c_first, const WordAt& word_at) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const GpuEpilogue& e = p.epilogue;
  const auto sums_at = [&](int row) { return four_of(*word_at(row), DType::f32); };
  Four bias{};
  if (e.bias) bias = floats_at(e.bias, at_j * e.bias_column, e.bias_column, 4, e.bias_type, false);
  const float alpha = static_cast<float>(e.alpha);
  if (e.activation != 0) {  // in a loop of its own: its code is there once
    ROOFTILE_UNROLL_BY(1) for (int row = lane / 16; row < 16; row += 2) {
      const Four v = activated(fma(sums_at(row), alpha, bias), e.activation);
      const float4 word{v.v[0], v.v[1], v.v[2], v.v[3]};
      *word_at(row) = word;
    }
  }
  ROOFTILE_UNROLL_BY(1) for (int first = lane / 16; first < 16; first += 8) {
    const auto value = [&](int s) {
      const Four its = sums_at(first + s * 2);
      return e.activation != 0 ? its : fma(its, alpha, bias);
    };
    if (bits(e.out) == 32)
      finish_words<4, float4>(e, y_first, c_first, m + first, p.m, 2, at_j, value);
    else
      finish_words<4, uint2>(e, y_first, c_first, m + first, p.m, 2, at_j, value);
  }
}

/// All else: 64 columns of sums at a time, from fragments to four neighbours in y. Words of four lie at
/// c ^ 2 (r % 4): no bank conflict.
template <class Tile, class Sum>
ROOFTILE_TILE void store_any(const Sum (&sums)[Tile::kN / 2], std::byte* staging, const GpuProduct& p,
                             std::int64_t m, std::int64_t n, std::int64_t matrix) {
  constexpr bool kFloats = std::is_same_v<Sum, float>;
  using Two = std::conditional_t<kFloats, float2, int2>;
  using Word = std::conditional_t<kFloats, float4, int4>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  Sum* const part = reinterpret_cast<Sum*>(staging);
  const auto place = [](int row, int column) {
    return row * 64 + (((column / 4) ^ (row % 4 * 2)) * 4 | column % 4);
  };
  const std::int64_t y_first = offset_of(p.batch, 0, matrix), c_first = offset_of(p.batch, 3, matrix);
  ROOFTILE_UNROLL_BY(1) for (int i = 0; i < Tile::kN / 64; ++i) {
    ROOFTILE_UNROLL for (int which = 0; which < Tile::kN / 64; ++which) {
      if (which != i) continue;  // which registers, the compiler must know
      ROOFTILE_UNROLL for (int j = 0; j < 8; ++j) {
        const Sum* const d = sums + which * 32 + j * 4;
        const Two upper{d[0], d[1]}, lower{d[2], d[3]};
        *reinterpret_cast<Two*>(part + place(lane / 4, j * 8 + lane % 4 * 2)) = upper;
        *reinterpret_cast<Two*>(part + place(lane / 4 + 8, j * 8 + lane % 4 * 2)) = lower;
      }
    }
    __syncwarp();
    // A lane's words are below each other.
    const int column = lane % 16 * 4;
    const std::int64_t at_j = n + i * 64 + column, rest = p.n - at_j;
    const int live = rest < 4 ? int(rest) : 4;
    const auto word_at = [&](int row) { return reinterpret_cast<Word*>(part + place(row, column)); };
    bool words = false;
    if constexpr (kFloats) {
      words = in_words(p.epilogue) && live == 4;
      if (words) store_column_of_words(p, m, at_j, y_first, c_first, word_at);
    }
    ROOFTILE_UNROLL_BY(1) for (int row = lane / 16; row < 16 && !words; row += 2) {
      if (m + row >= p.m || rest <= 0) continue;
      const Word w = *word_at(row);
      finish(p.epilogue, y_first, c_first, m + row, at_j, live, tile::Tile<Sum, 4>{{w.x, w.y, w.z, w.w}});
    }
    __syncwarp();
  }
}

/// A consumer: a warpgroup.
template <class T, class Tile>
ROOFTILE_TILE void consume(typename Tile::Shared& shared, const TensorMap* y_map, const GpuProduct& p,
                           const HopperRun& run, const BlockTiles& tiles, int consumer) {
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
  std::byte* const staging = shared.y[consumer * 4 + warp];
  constexpr Major k = Major::kK;
  [[maybe_unused]] constexpr Major mn = Major::kMn;
  Ring<Tile::kStages> ring;
  int buffer = 0;
  typename Tile::Sum sums[Tile::kN / 2];
  tiles.each([&](const GpuTile& tile) {
    if constexpr (!Tile::kAnyMajor)
      multiply<T, Tile, k, k>(sums, shared, ring, run, consumer);
    else if (p.a.k_first)
      p.b.k_first ? multiply<T, Tile, k, k>(sums, shared, ring, run, consumer)
                  : multiply<T, Tile, k, mn>(sums, shared, ring, run, consumer);
    else
      p.b.k_first ? multiply<T, Tile, mn, k>(sums, shared, ring, run, consumer)
                  : multiply<T, Tile, mn, mn>(sums, shared, ring, run, consumer);
    const std::int64_t m = tile.row * Tile::kM + consumer * 64 + warp * 16, n = tile.column * Tile::kN;
    if (run.whole)
      store_whole<T, Tile>(sums, staging, buffer, y_map, p, int(m), int(n),
                           MatrixAt(p.batch, 0, tile.matrix));
    else
      store_any<Tile>(sums, staging, p, m, n, tile.matrix);
  });
  if (run.whole && threadIdx.x % 32 == 0) tensor_store_wait_read<0>();
}

/// Makes the barriers of the ring, for all blocks of the cluster. Rows behind the last tile's are 0 until a
/// whole tile has been there: they are multiplied, too.
template <class Tile>
ROOFTILE_TILE void begin_ring(typename Tile::Shared& shared, const TensorMap* a_map, const TensorMap* b_map,
                              int cluster, int tail) {
  if (tail < Tile::kM) {
    constexpr int kWords = kHopperRow / 16;
    for (auto& a : shared.a)
      for (int i = tail * kWords + static_cast<int>(threadIdx.x); i < Tile::kM * kWords; i += Tile::kThreads)
        reinterpret_cast<uint4*>(a)[i] = uint4{};
    fence_proxy_async();
  }
  if (threadIdx.x == 0) {
    prefetch_tensor_map(a_map);
    prefetch_tensor_map(b_map);
    for (int i = 0; i < Tile::kStages; ++i) {
      mbarrier_init(&shared.full[i], Tile::kFillers);
      mbarrier_init(&shared.empty[i],
                    static_cast<unsigned>(Tile::kConsumers * (Tile::kWarpsFree ? 4 : 1) * cluster));
    }
    fence_mbarrier_init();
  }
  if (cluster > 1)
    cluster_sync();
  else
    __syncthreads();
}

}  // namespace hopper
#endif

template <class T, class Tile>
__global__ void __launch_bounds__(Tile::kThreads, 1)
    gemm_hopper(const __grid_constant__ HopperMaps a_maps, const __grid_constant__ TensorMap b_map,
                const __grid_constant__ TensorMap y_map, const __grid_constant__ GpuProduct p,
                const __grid_constant__ GpuTiles all, const HopperRun run) {
#if defined(ROOFTILE_HAS_HOPPER)
  using namespace hopper;
  ROOFTILE_DYNAMIC_SHARED(memory);
  auto& shared = *reinterpret_cast<typename Tile::Shared*>(memory);
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  const BlockTiles tiles{all, run.cluster, run.cluster > 1 ? static_cast<int>(cluster_rank()) : 0};
  begin_ring<Tile>(shared, &a_maps.whole, &b_map, run.cluster, run.tail);

  // [roles]
  if (warpgroup == 0) {
    give_registers<40>();
    if (threadIdx.x == 0) load_slices<T, Tile>(shared, a_maps, &b_map, p, run, tiles);
    __syncwarp();
  } else {
    take_registers<232>();
    consume<T, Tile>(shared, &y_map, p, run, tiles, warpgroup - 1);
  }
  // [/roles]
  if (run.cluster > 1) cluster_sync();  // no block leaves while another still copies to it
#endif
}

}  // namespace rooftile::gemm_gpu
