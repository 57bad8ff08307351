#pragma once
// A convolution by wgmma (Hopper): f16 and bf16, sums in f32, for each element one chain over ascending
// (r, s, c): the bits of conv2d.words.cu. A block has three warpgroups. The first, the producer, keeps a ring
// of slices full, 64 terms each: the copy engine (TMA) brings filters; its threads gather pixels by cp.async,
// eight channels at a time, to where a box would have them. The other two multiply and store. Blocks stay for
// several tiles.
#include "rooftile/ops/conv2d/conv2d.hopper_store.h"

namespace rooftile::conv_gpu {

#if defined(ROOFTILE_HAS_HOPPER)
namespace hopper {

/// A tile's vectors at `term` to a slice: row r's vector v at v ^ r % 8, as the copy engine has it.
template <bool kCached, class T, class Rows>
ROOFTILE_TILE void bring(T* slice, const VectorPicture& p, const Rows& rows, const Term& term) {
  const int t = static_cast<int>(threadIdx.x);
  const Tap tap = term.tap(p);
  std::byte* const to = reinterpret_cast<std::byte*>(slice) + t / 8 * 128 + ((t ^ t / 8) % 8) * 16;
  ROOFTILE_UNROLL for (int i = 0; i < Rows::kCount; ++i) {
    if constexpr (kCached)
      cp_async_16_cached(to + i * 16 * 128, rows.vector(p, i, tap), rows.inside(i, tap) ? 16 : 0);
    else
      cp_async_16(to + i * 16 * 128, rows.vector(p, i, tap), rows.inside(i, tap) ? 16 : 0);
  }
}

/// f(window, filter) of each of a block's tiles, of its first: what runs at one time shares pixels. No
/// division here or in the stores is of 64 bits: its code would cost the consumers registers.
template <class Tile, class Each>
ROOFTILE_TILE void each_tile(const HopperRun& run, Each&& f) {
  ROOFTILE_UNROLL_BY(1)
  for (int t = static_cast<int>(blockIdx.x); t < run.tiles; t += static_cast<int>(gridDim.x)) {
    const int down = t / run.across;
    f(down * Tile::kWindows, (t - down * run.across) * Tile::kFilters);
  }
}

template <class Tile>
ROOFTILE_TILE void produce(typename Tile::Shared& shared, const TensorMap* filters,
                           const VectorPicture& picture, const HopperRun& run) {
  Ring<Tile::kStages> ring;
  each_tile<Tile>(run, [&](int window, int filter) {
    const WindowRows<Tile::kWindows / 16, 8> rows(picture, window);
    Term term(picture, static_cast<int>(threadIdx.x) % 8);
    ROOFTILE_UNROLL_BY(1) for (int s = 0; s < run.slices; ++s, ring.next(), term.next(picture)) {
      std::uint64_t* const full = &shared.full[ring.slot];
      mbarrier_wait(&shared.empty[ring.slot], ring.phase ^ 1);
      if (threadIdx.x == 0) {
        mbarrier_expect_tx(full, Tile::kFilterBytes);
        tensor_load(shared.filters[ring.slot], filters, full, {s * Tile::kK, filter});
      }
      if (run.cached)
        bring<true>(shared.windows[ring.slot], picture, rows, term);
      else
        bring<false>(shared.windows[ring.slot], picture, rows, term);
      // Copies arrive by themselves. Waited for here and fenced, they took longer (H200, 3x3, 256 channels:
      // 25.4 → 27.7 µs).
      mbarrier_arrive_after_copies(full);
    }
  });
  cp_async_wait<0>();
}

/// The sums of 64 rows of a tile, by a consumer.
template <class Tile>
ROOFTILE_TILE void multiply(float (&sums)[Tile::kN / 2], typename Tile::Shared& shared,
                            Ring<Tile::kStages>& ring, const HopperRun& run, int consumer) {
  constexpr unsigned kGroup = 1024;  // bytes of eight rows
  const auto give_back = [&](int slot) {
    if (threadIdx.x % 128 == 0) mbarrier_arrive(&shared.empty[slot]);
  };
  int before = 0;
  ROOFTILE_UNROLL_BY(1) for (int s = 0; s < run.slices; ++s, ring.next()) {
    mbarrier_wait(&shared.full[ring.slot], ring.phase);
    fence_proxy_async();  // between what threads brought and what tensor cores read
    const auto *windows = shared.windows[ring.slot], *filters = shared.filters[ring.slot];
    const std::uint64_t a = wgmma_descriptor(Tile::kTurned ? filters : windows + consumer * 64 * Tile::kK, 0,
                                             kGroup, Swizzle::k128);
    const std::uint64_t b = wgmma_descriptor(Tile::kTurned ? windows : filters, 0, kGroup, Swizzle::k128);
    wgmma_pin(sums);
    wgmma_fence();
    ROOFTILE_UNROLL for (unsigned i = 0; i < Tile::kK / 16; ++i) {
      wgmma<typename Tile::T, Tile::kN>(sums, advance_descriptor(a, i * 32), advance_descriptor(b, i * 32),
                                        s != 0 || i != 0);
    }
    wgmma_commit();
    wgmma_pin(sums);
    // The other consumer may begin once each warp has seen all slices. Earlier it might take a slot's phase
    // before last for its own: a barrier tells two phases apart, not three.
    if (Tile::kTurned && s + 1 == run.slices && threadIdx.x % 32 == 0)
      mbarrier_arrive(&shared.turn[1 - consumer]);
    if (s > 0) {  // the slice before has been read; this one keeps the tensor cores busy
      wgmma_wait<1>();
      give_back(before);
    }
    before = ring.slot;
  }
  wgmma_wait<0>();
  wgmma_pin(sums);
  give_back(before);
}

/// On by `count` slots, which the other consumer uses.
template <int kSlots>
ROOFTILE_TILE void skip(Ring<kSlots>& ring, int count) {
  const int at = ring.slot + count;
  ring.slot = at % kSlots;
  ring.phase ^= static_cast<unsigned>(at / kSlots) & 1;
}

template <class Tile>
ROOFTILE_TILE void consume(typename Tile::Shared& shared, const TensorMap* y_map, const GpuConv& p,
                           const HopperRun& run, int consumer) {
  using T = typename Tile::T;
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
  std::byte* const staging = shared.y[consumer * 4 + warp];
  Ring<Tile::kStages> ring;
  int buffer = 0;
  [[maybe_unused]] int tiles = 0;
  float sums[Tile::kN / 2];
  each_tile<Tile>(run, [&](int window, int filter) {
    if constexpr (Tile::kTurned) {
      if (tiles++ % Tile::kConsumers != consumer) return skip(ring, run.slices);
      const unsigned round = static_cast<unsigned>((tiles - 1) / Tile::kConsumers);
      mbarrier_wait(&shared.turn[consumer], (round & 1) ^ (consumer == 0 ? 1 : 0));
    }
    multiply<Tile>(sums, shared, ring, run, consumer);
    if constexpr (Tile::kTurned) {
      if (run.store == HopperStore::engine)
        return store_turned<T, Tile>(sums, shared.y[consumer * 4], buffer, y_map, p, window, filter);
      filter += warp * 16;
    } else {
      window += consumer * 64 + warp * 16;
      if (run.store == HopperStore::engine)
        return store_boxes<T, Tile>(sums, staging, buffer, y_map, p, window, filter);
    }
    if ((run.store == HopperStore::windows) != Tile::kTurned)
      store_fours<T, Tile, true>(sums, staging, p, window, filter);
    else
      store_fours<T, Tile, false>(sums, staging, p, window, filter);
  });
  const int issuers = Tile::kTurned ? 128 : 32;
  if (run.store == HopperStore::engine && static_cast<int>(threadIdx.x) % issuers == 0)
    tensor_store_wait_read<0>();
}

}  // namespace hopper
#endif

template <class Tile>
__global__ void __launch_bounds__(Tile::kThreads, 1)
    conv_hopper(const __grid_constant__ TensorMap filters, const __grid_constant__ TensorMap y,
                const __grid_constant__ VectorPicture picture, const __grid_constant__ GpuConv p,
                const HopperRun run) {
#if defined(ROOFTILE_HAS_HOPPER)
  using namespace hopper;
  ROOFTILE_DYNAMIC_SHARED(memory);
  auto& shared = *reinterpret_cast<typename Tile::Shared*>(memory);
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  if (threadIdx.x == 0) {
    prefetch_tensor_map(&filters);
    for (int i = 0; i < Tile::kStages; ++i) {
      mbarrier_init(&shared.full[i], 128);
      mbarrier_init(&shared.empty[i], Tile::kTurned ? 1 : Tile::kConsumers);
    }
    for (int i = 0; i < Tile::kConsumers; ++i) mbarrier_init(&shared.turn[i], 4);
    fence_mbarrier_init();
  }
  __syncthreads();
  if (run.early) wait_for_previous();
  if (warpgroup == 0) {
    give_registers<72>();
    produce<Tile>(shared, &filters, picture, run);
  } else {
    take_registers<216>();
    consume<Tile>(shared, &y, p, run, warpgroup - 1);
  }
#endif
}

}  // namespace rooftile::conv_gpu
