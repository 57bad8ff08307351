#pragma once
// A convolution by wgmma (Hopper): f16 and bf16, rows are windows, columns filters, sums in f32, for each
// element one chain over ascending (r, s, c): the bits of conv2d.words.cu. A block has three warpgroups. The
// first, the producer, keeps a ring of slices full, 64 terms each: the copy engine (TMA) brings filters; its
// threads gather pixels by cp.async, eight channels at a time, to where a box would have them. The other two
// multiply as gemm's consumers do, and store. Blocks stay for several tiles.
#include "rooftile/ops/conv2d/conv2d.gpu.h"
#include "rooftile/ops/gemm/gemm.hopper.h"

namespace rooftile::conv_gpu {
using rooftile::cuda::TensorMap;

/// A block's tile, and what it keeps in shared memory. Fewer slices than would fit: what is left of an SM's
/// 256 KiB is L1, where the next tap finds most of its pixels. kAhead: slices in flight.
template <class T, int kN_>
struct HopperTile {
  static constexpr int kM = 128, kN = kN_, kK = 64, kStages = kN == 64 ? 5 : kN == 128 ? 4 : 3;
  static constexpr int kAhead = kStages - 2;
  static constexpr int kConsumers = kM / 64, kThreads = 128 * (1 + kConsumers);
  static constexpr int kBox = 64 * 64;
  static constexpr int kStaging = 16 * 64 * 4;  // bytes of a warp: 16 rows of 64 sums
  static constexpr int kRowsOfThread = kM / 16;
  static constexpr unsigned kFilterBytes = kN * kK * sizeof(T);

  struct alignas(1024) Shared {
    T a[kStages][kM * kK];
    T b[kStages][kN * kK];
    std::byte y[kConsumers * 4][kStaging];
    std::uint64_t full[kStages], empty[kStages];  // mbarriers
  };
};

/// The picture as the producer's threads see it. Strides are of 16-byte vectors.
struct HopperPicture {
  const uint4* data;
  int n, h, w;
  int height, width, rows, columns, windows;
  int step_h, step_w, from_h, from_w, tap_h, tap_w;
  int taps_h, taps_w, vectors;    ///< vectors: of a tap's channels
  int slice_r, slice_s, slice_c;  ///< 64 terms: so many rows of taps, taps and vectors further
};

#if defined(ROOFTILE_HAS_HOPPER)
namespace hopper {
using namespace rooftile::cuda;
using gemm_gpu::HopperRun;
using rooftile::cuda::Ring;  // not the one of tile/cuda

/// Where a thread's vector of a slice lies in a filter.
struct Term {
  int r, s, c;

  ROOFTILE_TILE Term(const HopperPicture& p, int vector) {
    const int tap = vector / p.vectors;
    c = vector - tap * p.vectors;
    r = tap / p.taps_w;
    s = tap - r * p.taps_w;
  }
  /// On by a slice, without divisions.
  ROOFTILE_TILE void next(const HopperPicture& p) {
    c += p.slice_c, s += p.slice_s, r += p.slice_r;
    if (c >= p.vectors) c -= p.vectors, ++s;
    if (s >= p.taps_w) s -= p.taps_w, ++r;
  }
};

/// A producer's thread's windows: of every 16 rows of a tile one. Eight threads have a pixel's 128 bytes.
template <class Tile>
class WindowRows {
 public:
  ROOFTILE_TILE WindowRows(const HopperPicture& p, int first) {
    const int t = static_cast<int>(threadIdx.x);
    ROOFTILE_UNROLL for (int i = 0; i < Tile::kRowsOfThread; ++i) {
      const int index = first + t / 8 + i * 16;
      const int row = index / p.columns, image = row / p.rows;
      y_[i] = index < p.windows ? (row - image * p.rows) * p.step_h + p.from_h : kOutside;
      x_[i] = (index - row * p.columns) * p.step_w + p.from_w;
      at_[i] = index < p.windows ? image * p.n + y_[i] * p.h + x_[i] * p.w : 0;
    }
  }
  /// Their vectors at `term` to a slice: row r's vector v at v ^ r % 8, as the copy engine has it.
  template <class T>
  ROOFTILE_TILE void bring(T* slice, const HopperPicture& p, const Term& term) const {
    const int t = static_cast<int>(threadIdx.x), dy = term.r * p.tap_h, dx = term.s * p.tap_w;
    const bool lives = term.r < p.taps_h;
    const int of_term = lives ? dy * p.h + dx * p.w + term.c : 0;
    std::byte* const to = reinterpret_cast<std::byte*>(slice) + t / 8 * 128 + ((t ^ t / 8) % 8) * 16;
    ROOFTILE_UNROLL for (int i = 0; i < Tile::kRowsOfThread; ++i) {
      const bool is_inside = lives && static_cast<unsigned>(y_[i] + dy) < static_cast<unsigned>(p.height) &&
                             static_cast<unsigned>(x_[i] + dx) < static_cast<unsigned>(p.width);
      cp_async_16_cached(to + i * 16 * 128, p.data + (at_[i] + of_term), is_inside ? 16 : 0);
    }
  }

 private:
  int at_[Tile::kRowsOfThread], y_[Tile::kRowsOfThread], x_[Tile::kRowsOfThread];
};

/// f(row, column) of each of a block's tiles: what runs at one time shares pixels.
template <class Tile, class Each>
ROOFTILE_TILE void each_tile(const GpuConv& p, Each&& f) {
  ROOFTILE_UNROLL_BY(1)
  for (std::int64_t t = blockIdx.x; t < p.tiles; t += static_cast<int>(gridDim.x)) {
    const GpuTile tile = tile_at(p, t);
    f(static_cast<int>(tile.row), static_cast<int>(tile.column));
  }
}

template <class T, class Tile>
ROOFTILE_TILE void produce(typename Tile::Shared& shared, const TensorMap* filters,
                           const HopperPicture& picture, const GpuConv& p, const HopperRun& run) {
  Ring<Tile::kStages> ring, landed;
  int in_flight = 0;
  // What threads wrote, the tensor cores see after a fence of those threads.
  const auto tell = [&] {
    fence_proxy_async();
    mbarrier_arrive(&shared.full[landed.slot]);
    landed.next();
  };
  each_tile<Tile>(p, [&](int row, int column) {
    const WindowRows<Tile> rows(picture, row);
    Term term(picture, static_cast<int>(threadIdx.x) % 8);
    ROOFTILE_UNROLL_BY(1) for (int s = 0; s < run.slices; ++s, ring.next(), term.next(picture)) {
      mbarrier_wait(&shared.empty[ring.slot], ring.phase ^ 1);
      if (threadIdx.x == 0) {
        mbarrier_expect_tx(&shared.full[ring.slot], Tile::kFilterBytes);
        tensor_load(shared.b[ring.slot], filters, &shared.full[ring.slot], {s * Tile::kK, column});
      }
      rows.bring(shared.a[ring.slot], picture, term);
      cp_async_commit();
      if (in_flight < Tile::kAhead) {
        ++in_flight;
      } else {
        cp_async_wait<Tile::kAhead>();
        tell();
      }
    }
  });
  cp_async_wait<0>();
  for (; in_flight > 0; --in_flight) tell();
}

/// 16 rows of a warp, 64 columns at a time, from fragments to four neighbours. Words of four lie at
/// c ^ 2 (r % 4): no bank conflict.
template <class T, class Tile>
ROOFTILE_TILE void store(const float (&sums)[Tile::kN / 2], std::byte* staging, const GpuConv& p, int m,
                         int n) {
  const int lane = static_cast<int>(threadIdx.x) % 32, column = lane % 16 * 4;
  float* const part = reinterpret_cast<float*>(staging);
  const auto place = [](int row, int at) { return row * 64 + (((at / 4) ^ (row % 4 * 2)) * 4 | at % 4); };
  const auto word_at = [&](int row) { return reinterpret_cast<float4*>(part + place(row, column)); };
  const std::int64_t own = place_of(p.out, m + lane % 16);  // a lane finds a row's place for all
  const auto row_at = [&](int row) { return __shfl_sync(0xffffffff, own, row); };
  ROOFTILE_UNROLL_BY(1) for (int i = 0; i < Tile::kN / 64; ++i) {
    const std::int64_t first = n + i * 64 + column, rest = p.n - first;
    if (n + i * 64 >= p.n) break;
    ROOFTILE_UNROLL for (int which = 0; which < Tile::kN / 64; ++which) {
      if (which != i) continue;  // which registers, the compiler must know
      ROOFTILE_UNROLL for (int j = 0; j < 8; ++j) {
        const float* const d = sums + which * 32 + j * 4;
        const float2 upper{d[0], d[1]}, lower{d[2], d[3]};
        *reinterpret_cast<float2*>(part + place(lane / 4, j * 8 + lane % 4 * 2)) = upper;
        *reinterpret_cast<float2*>(part + place(lane / 4 + 8, j * 8 + lane % 4 * 2)) = lower;
      }
    }
    __syncwarp();
    const int live = rest <= 0 ? 0 : rest < 4 ? static_cast<int>(rest) : 4;
    Four bias{};
    if (p.bias)
      bias = gemm_gpu::floats_at(p.bias, first * p.bias_stride, p.bias_stride, live, p.bias_dtype, false);
    if (p.activation != 0) {  // in a loop of its own: its code is there once
      ROOFTILE_UNROLL_BY(1) for (int row = lane / 16; row < 16; row += 2) {
        const Four v = gemm_gpu::activated(gemm_gpu::four_of(*word_at(row), DType::f32) + bias, p.activation);
        const float4 word{v.v[0], v.v[1], v.v[2], v.v[3]};
        *word_at(row) = word;
      }
      bias = Four{};
    }
    ROOFTILE_UNROLL_BY(4) for (int s = 0; s < 8; ++s) {
      const int row = lane / 16 + s * 2;
      const std::int64_t at = row_at(row);
      if (m + row >= p.m || live == 0) continue;
      Four v = gemm_gpu::four_of(*word_at(row), DType::f32);
      if (p.activation == 0 && p.bias) v = v + bias;
      T* const y = static_cast<T*>(p.out.data) + at;
      if (p.fours) {
        const uint2 word{pack<T>(v.v[0], v.v[1]), pack<T>(v.v[2], v.v[3])};
        *reinterpret_cast<uint2*>(y + first) = word;
      } else {
        ROOFTILE_UNROLL for (int l = 0; l < 4; ++l) {
          if (l < live) store_one(p.out, at + (first + l) * p.out.i_stride, v.v[l]);
        }
      }
    }
    __syncwarp();
  }
}

template <class T, class Tile>
ROOFTILE_TILE void consume(typename Tile::Shared& shared, const GpuConv& p, const HopperRun& run,
                           int consumer) {
  constexpr Major k = Major::kK;
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
  Ring<Tile::kStages> ring;
  float sums[Tile::kN / 2];
  each_tile<Tile>(p, [&](int row, int column) {
    gemm_gpu::hopper::multiply<T, Tile, k, k>(sums, shared, ring, run, consumer);
    store<T, Tile>(sums, shared.y[consumer * 4 + warp], p, row + consumer * 64 + warp * 16, column);
  });
}

}  // namespace hopper
#endif

template <class T, class Tile>
__global__ void __launch_bounds__(Tile::kThreads, 1)
    conv_hopper(const __grid_constant__ TensorMap filters, const __grid_constant__ HopperPicture picture,
                const __grid_constant__ GpuConv p, const gemm_gpu::HopperRun run) {
#if defined(ROOFTILE_HAS_HOPPER)
  using namespace hopper;
  ROOFTILE_DYNAMIC_SHARED(memory);
  auto& shared = *reinterpret_cast<typename Tile::Shared*>(memory);
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  if (threadIdx.x == 0) {
    prefetch_tensor_map(&filters);
    for (int i = 0; i < Tile::kStages; ++i) {
      mbarrier_init(&shared.full[i], 128);
      mbarrier_init(&shared.empty[i], Tile::kConsumers);
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  if (warpgroup == 0) {
    give_registers<72>();
    produce<T, Tile>(shared, &filters, picture, p, run);
  } else {
    take_registers<216>();
    consume<T, Tile>(shared, p, run, warpgroup - 1);
  }
#endif
}

}  // namespace rooftile::conv_gpu
