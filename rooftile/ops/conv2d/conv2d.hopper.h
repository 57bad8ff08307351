#pragma once
// A convolution by wgmma (Hopper): f16 and bf16, rows are windows, columns filters, sums in f32, for each
// element one chain over ascending (r, s, c): the bits of conv2d.words.cu. A block has three warpgroups. The
// first, the producer, keeps a ring of slices full, 64 terms each: the copy engine (TMA) brings filters; its
// threads gather pixels by cp.async, eight channels at a time, to where a box would have them. The other two
// multiply 64 rows of a slice each, and store. Blocks stay for several tiles.
#include "rooftile/backend/cuda/hopper.h"
#include "rooftile/ops/conv2d/conv2d.gpu.h"

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

/// How a tile's sums are stored.
enum class HopperStore {
  engine,   ///< by the copy engine: rows of 16-byte vectors, no activation
  columns,  ///< four filters at a time, which are a word where p.fours
  rows      ///< four windows at a time, which are a word
};

struct HopperRun {
  int tiles, across, slices;  ///< across: tiles of a row of them
  HopperStore store;
  bool early;  ///< the picture is still being packed
};

#if defined(ROOFTILE_HAS_HOPPER)
namespace hopper {
using namespace rooftile::cuda;
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

/// f(row, column) of each of a block's tiles: what runs at one time shares pixels. No division here or below
/// is of 64 bits: its code would cost the consumers registers.
template <class Tile, class Each>
ROOFTILE_TILE void each_tile(const HopperRun& run, Each&& f) {
  ROOFTILE_UNROLL_BY(1)
  for (int t = static_cast<int>(blockIdx.x); t < run.tiles; t += static_cast<int>(gridDim.x)) {
    const int row = t / run.across;
    f(row * Tile::kM, (t - row * run.across) * Tile::kN);
  }
}
/// Where a window's filters lie in y.
ROOFTILE_TILE std::int64_t pixel_of(const ConvOutput& o, int window) {
  const int low = static_cast<int>(o.low), middle = static_cast<int>(o.middle);
  const int row = window / low, image = row / middle;
  return image * o.stride[0] + (row - image * middle) * o.stride[1] + (window - row * low) * o.stride[2];
}

template <class T, class Tile>
ROOFTILE_TILE void produce(typename Tile::Shared& shared, const TensorMap* filters,
                           const HopperPicture& picture, const HopperRun& run) {
  Ring<Tile::kStages> ring, landed;
  int in_flight = 0;
  // What threads wrote, the tensor cores see after a fence of those threads.
  const auto tell = [&] {
    fence_proxy_async();
    mbarrier_arrive(&shared.full[landed.slot]);
    landed.next();
  };
  each_tile<Tile>(run, [&](int row, int column) {
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

/// The sums of 64 rows of a tile, by a consumer.
template <class T, class Tile>
ROOFTILE_TILE void multiply(float (&sums)[Tile::kN / 2], typename Tile::Shared& shared,
                            Ring<Tile::kStages>& ring, int slices, int consumer) {
  constexpr unsigned kGroup = 1024;  // bytes of eight rows
  const auto give_back = [&](int slot) {
    if (threadIdx.x % 128 == 0) mbarrier_arrive(&shared.empty[slot]);
  };
  int before = 0;
  ROOFTILE_UNROLL_BY(1) for (int s = 0; s < slices; ++s, ring.next()) {
    mbarrier_wait(&shared.full[ring.slot], ring.phase);
    const std::uint64_t a =
        wgmma_descriptor(shared.a[ring.slot] + consumer * 64 * Tile::kK, 0, kGroup, Swizzle::k128);
    const std::uint64_t b = wgmma_descriptor(shared.b[ring.slot], 0, kGroup, Swizzle::k128);
    wgmma_pin(sums);
    wgmma_fence();
    ROOFTILE_UNROLL for (unsigned i = 0; i < Tile::kK / 16; ++i) {
      wgmma<T, Tile::kN>(sums, advance_descriptor(a, i * 32), advance_descriptor(b, i * 32),
                         s != 0 || i != 0);
    }
    wgmma_commit();
    wgmma_pin(sums);
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

/// A warp's 16 rows, 64 columns at a time through one of its two buffers. `buffer`: the one to be written
/// next, from tile to tile.
template <class T, class Tile>
ROOFTILE_TILE void store_boxes(const float (&sums)[Tile::kN / 2], std::byte* staging, int& buffer,
                               const TensorMap* y_map, const GpuConv& p, int m, int n) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  ROOFTILE_UNROLL for (int i = 0; i < Tile::kN / 64; ++i) {
    const int first = n + i * 64;
    if (first >= p.n) break;
    float bias[2] = {};  // of columns 2·lane and the next
    ROOFTILE_UNROLL for (int e = 0; e < 2; ++e) {
      const std::int64_t column = first + 2 * lane + e;
      if (p.bias && column < p.n) bias[e] = gemm_gpu::float_at(p.bias, column * p.bias_stride, p.bias_dtype);
    }
    std::byte* const to = staging + buffer * (Tile::kStaging / 2);
    buffer ^= 1;
    if (lane == 0) tensor_store_wait_read<1>();  // the store before the last has left this buffer
    __syncwarp();
    float of_column[16];  // of the fragments' columns 8j + 2 (lane % 4) + e
    ROOFTILE_UNROLL for (int j = 0; j < 16; ++j) {
      of_column[j] = __shfl_sync(0xffffffff, bias[j % 2], j / 2 * 4 + lane % 4);
    }
    stage_results<T>(to, [&](int at) {
      const float sum = sums[i * 32 + at];
      return p.bias ? sum + of_column[at / 4 * 2 + at % 2] : sum;
    });
    fence_proxy_async();
    __syncwarp();
    if (lane == 0) {
      tensor_store(y_map, {first, m}, to);
      tensor_store_commit();
    }
  }
}

/// All else: 64 columns of a warp's 16 rows at a time, from fragments to four neighbours.
template <class T, class Tile, bool kAlongRows>
ROOFTILE_TILE void store_fours(const float (&sums)[Tile::kN / 2], std::byte* staging, const GpuConv& p, int m,
                               int n) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float* const part = reinterpret_cast<float*>(staging);
  // Words of four stand so that neither lanes' writes nor their reads of words meet in a bank more than
  // twice.
  const auto place = [](int row, int column) {
    return kAlongRows ? column * 16 + (((row / 4) ^ (column / 2 % 4)) * 4 | row % 4)
                      : row * 64 + (((column / 4) ^ (row % 4 * 2)) * 4 | column % 4);
  };
  // A lane's words: of four rows and every eighth column, or of four columns and every second row.
  const int own_row = kAlongRows ? lane % 4 * 4 : lane / 16,
            own_column = kAlongRows ? lane / 4 : lane % 16 * 4;
  const std::int64_t found = pixel_of(p.out, m + (kAlongRows ? own_row : lane % 16));
  ROOFTILE_UNROLL_BY(1) for (int i = 0; i < Tile::kN / 64; ++i) {
    if (n + i * 64 >= p.n) break;
    ROOFTILE_UNROLL for (int which = 0; which < Tile::kN / 64; ++which) {
      if (which != i) continue;  // which registers, the compiler must know
      ROOFTILE_UNROLL for (int j = 0; j < 8; ++j) {
        ROOFTILE_UNROLL for (int half = 0; half < 2; ++half) {
          const float* const d = sums + which * 32 + j * 4 + half * 2;
          float* const to = part + place(lane / 4 + 8 * half, j * 8 + lane % 4 * 2);
          if constexpr (kAlongRows) {
            to[0] = d[0], to[16] = d[1];
          } else {
            const float2 pair{d[0], d[1]};
            *reinterpret_cast<float2*>(to) = pair;
          }
        }
      }
    }
    __syncwarp();
    const auto row_of = [&](int s) { return kAlongRows ? own_row : own_row + s * 2; };
    const auto column_of = [&](int s) { return kAlongRows ? own_column + s * 8 : own_column; };
    const auto word_at = [&](int s) {
      return reinterpret_cast<float4*>(part + place(row_of(s), column_of(s)));
    };
    const auto biased = [&](int s) {
      const std::int64_t first = n + i * 64 + column_of(s), rest = p.n - first;
      const Four v = gemm_gpu::four_of(*word_at(s), DType::f32);
      if (!p.bias || rest <= 0) return v;
      return v + gemm_gpu::floats_at(p.bias, first * p.bias_stride, kAlongRows ? 0 : p.bias_stride,
                                     rest < 4 && !kAlongRows ? static_cast<int>(rest) : 4, p.bias_dtype,
                                     false);
    };
    if (p.activation != 0) {  // in a loop of its own: its code is there once
      ROOFTILE_UNROLL_BY(1) for (int s = 0; s < 8; ++s) {
        const Four v = gemm_gpu::activated(biased(s), p.activation);
        const float4 word{v.v[0], v.v[1], v.v[2], v.v[3]};
        *word_at(s) = word;
      }
    }
    ROOFTILE_UNROLL_BY(2) for (int s = 0; s < 8; ++s) {
      const int row = row_of(s);
      const std::int64_t first = n + i * 64 + column_of(s), rest = p.n - first;
      const std::int64_t at = kAlongRows ? found : __shfl_sync(0xffffffff, found, row);
      if (m + row >= p.m || rest <= 0) continue;
      const auto live = static_cast<int>(rest < 4 && !kAlongRows ? rest : 4);
      const Four v = p.activation != 0 ? gemm_gpu::four_of(*word_at(s), DType::f32) : biased(s);
      T* const y = static_cast<T*>(p.out.data) + at + first * p.out.i_stride;
      if (kAlongRows || p.fours) {
        const uint2 word{pack<T>(v.v[0], v.v[1]), pack<T>(v.v[2], v.v[3])};
        *reinterpret_cast<uint2*>(y) = word;
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
ROOFTILE_TILE void consume(typename Tile::Shared& shared, const TensorMap* y_map, const GpuConv& p,
                           const HopperRun& run, int consumer) {
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
  std::byte* const staging = shared.y[consumer * 4 + warp];
  Ring<Tile::kStages> ring;
  int buffer = 0;
  float sums[Tile::kN / 2];
  each_tile<Tile>(run, [&](int row, int column) {
    multiply<T, Tile>(sums, shared, ring, run.slices, consumer);
    const int m = row + consumer * 64 + warp * 16;
    if (run.store == HopperStore::engine)
      store_boxes<T, Tile>(sums, staging, buffer, y_map, p, m, column);
    else if (run.store == HopperStore::rows)
      store_fours<T, Tile, true>(sums, staging, p, m, column);
    else
      store_fours<T, Tile, false>(sums, staging, p, m, column);
  });
  if (run.store == HopperStore::engine && threadIdx.x % 32 == 0) tensor_store_wait_read<0>();
}

}  // namespace hopper
#endif

template <class T, class Tile>
__global__ void __launch_bounds__(Tile::kThreads, 1)
    conv_hopper(const __grid_constant__ TensorMap filters, const __grid_constant__ TensorMap y,
                const __grid_constant__ HopperPicture picture, const __grid_constant__ GpuConv p,
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
      mbarrier_init(&shared.empty[i], Tile::kConsumers);
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  if (run.early) wait_for_previous();
  if (warpgroup == 0) {
    give_registers<56>();
    produce<T, Tile>(shared, &filters, picture, run);
  } else {
    take_registers<224>();
    consume<T, Tile>(shared, &y, p, run, warpgroup - 1);
  }
#endif
}

}  // namespace rooftile::conv_gpu
