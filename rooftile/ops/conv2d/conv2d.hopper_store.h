#pragma once
// What becomes of a tile's sums on Hopper: bias, activation, one rounding, and the way from fragments to y.
#include "rooftile/ops/conv2d/conv2d.hopper_parts.h"

namespace rooftile::conv_gpu {

#if defined(ROOFTILE_HAS_HOPPER)
namespace hopper {

/// This thread's number in its warpgroup, about which the compiler knows nothing: what follows from it is
/// found anew for each tile. Kept, it would take registers that the sums need.
ROOFTILE_TILE int thread_of_tile() {
  int thread[1] = {static_cast<int>(threadIdx.x) % 128};
  wgmma_pin(thread);
  return thread[0];
}
ROOFTILE_TILE float bias_of(const GpuConv& p, std::int64_t filter) {
  return p.bias && filter < p.n ? gemm_gpu::float_at(p.bias, filter * p.bias_stride, p.bias_dtype) : 0.0f;
}

/// By the copy engine, rows are windows: a warp's 16 rows, 64 columns at a time through one of its two
/// buffers. `buffer`: the one to be written next, from tile to tile.
template <class T, class Tile>
ROOFTILE_TILE void store_boxes(const float (&sums)[Tile::kN / 2], std::byte* staging, int& buffer,
                               const TensorMap* y_map, const GpuConv& p, int window, int filter) {
  const int lane = thread_of_tile() % 32;
  ROOFTILE_UNROLL_BY(1) for (int i = 0; i < Tile::kN / 64; ++i) {
    const int first = filter + i * 64;
    if (first >= p.n) break;
    const float bias[2] = {bias_of(p, first + 2 * lane), bias_of(p, first + 2 * lane + 1)};
    std::byte* const to = staging + buffer * 2048;
    buffer ^= 1;
    if (lane == 0) tensor_store_wait_read<1>();  // the store before the last has left this buffer
    __syncwarp();
    float of_column[16];  // of the fragments' columns 8j + 2 (lane % 4) + e
    ROOFTILE_UNROLL for (int j = 0; j < 16; ++j) {
      of_column[j] = __shfl_sync(0xffffffff, bias[j % 2], j / 2 * 4 + lane % 4);
    }
    ROOFTILE_UNROLL for (int which = 0; which < Tile::kN / 64; ++which) {
      if (which != i) continue;  // which registers, the compiler must know
      stage_results<T>(to, [&](int at) {
        const float sum = sums[which * 32 + at];
        return p.bias ? sum + of_column[at / 4 * 2 + at % 2] : sum;
      });
    }
    fence_proxy_async();
    __syncwarp();
    if (lane == 0) {
      tensor_store(y_map, {first, window}, to);
      tensor_store_commit();
    }
  }
}

/// The same where rows are filters: 64 windows of a consumer's 64 filters at a time, turned on their way.
template <class T, class Tile>
ROOFTILE_TILE void store_turned(const float (&sums)[Tile::kN / 2], std::byte* staging, int& buffer,
                                const TensorMap* y_map, const GpuConv& p, int window, int filter) {
  const int thread = thread_of_tile(), lane = thread % 32, warp = thread / 32;
  const int barrier = 1 + static_cast<int>(threadIdx.x) / 128;
  const float bias[2] = {bias_of(p, filter + warp * 16 + lane / 4),
                         bias_of(p, filter + warp * 16 + lane / 4 + 8)};
  ROOFTILE_UNROLL_BY(1) for (int i = 0; i < Tile::kN / 64; ++i) {
    if (window + i * 64 >= p.m) break;
    std::byte* const to = staging + buffer * 8192;
    buffer ^= 1;
    if (thread == 0) tensor_store_wait_read<1>();  // the store before the last has left this buffer
    named_barrier_sync(barrier, 128);
    ROOFTILE_UNROLL for (int which = 0; which < Tile::kN / 64; ++which) {
      if (which != i) continue;
      ROOFTILE_UNROLL for (int j = 0; j < 8; j += 2) {
        unsigned words[4];
        ROOFTILE_UNROLL for (int w = 0; w < 4; ++w) {
          const float* const d = sums + which * 32 + (j + w / 2) * 4 + w % 2 * 2;
          words[w] = p.bias ? pack<T>(d[0] + bias[w % 2], d[1] + bias[w % 2]) : pack<T>(d[0], d[1]);
        }
        const int row = (j + lane / 16) * 8 + lane % 8, vector = warp * 2 + lane / 8 % 2;
        store_matrix<true>(to + row * 128 + (vector ^ row % 8) * 16, words);
      }
    }
    fence_proxy_async();
    named_barrier_sync(barrier, 128);
    if (thread == 0) {
      tensor_store(y_map, {filter, window + i * 64}, to);
      tensor_store_commit();
    }
  }
}

/// All else: a warp's 16 rows, 64 columns at a time, from fragments to four neighbours. kAlongRows:
/// neighbours in y are along rows.
template <class T, class Tile, bool kAlongRows>
ROOFTILE_TILE void store_fours(const float (&sums)[Tile::kN / 2], std::byte* staging, const GpuConv& p,
                               int window, int filter) {
  constexpr bool kWindows = kAlongRows != Tile::kTurned;  // neighbours in y are windows
  const int lane = thread_of_tile() % 32;
  float* const part = reinterpret_cast<float*>(staging);
  // Words of four stand so that neither lanes' writes nor their reads of words meet in a bank more than
  // twice.
  const auto place = [](int row, int column) {
    return kAlongRows ? column * 16 + (((row / 4) ^ (column / 2 % 4)) * 4 | row % 4)
                      : row * 64 + (((column / 4) ^ (row % 4 * 2)) * 4 | column % 4);
  };
  // A lane's words: of four rows and every eighth column, or of four columns and every second row.
  const int own = kAlongRows ? lane % 4 * 4 : lane % 16 * 4;
  const auto other = [&](int s) { return kAlongRows ? lane / 4 + s * 8 : lane / 16 + s * 2; };
  const auto word_at = [&](int s) {
    return reinterpret_cast<float4*>(part + (kAlongRows ? place(own, other(s)) : place(other(s), own)));
  };
  ROOFTILE_UNROLL_BY(1) for (int i = 0; i < Tile::kN / 64; ++i) {
    const int first_window = window + (Tile::kTurned ? i * 64 : 0),
              first_filter = filter + (Tile::kTurned ? 0 : i * 64);
    if (first_window >= p.m || first_filter >= p.n) break;
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
    // Lanes find the windows' places for each other.
    const std::int64_t found = pixel_of(p.out, first_window + (kWindows ? own : lane)),
                       found_next =
                           !kWindows && Tile::kTurned ? pixel_of(p.out, first_window + 32 + lane) : 0;
    const auto filter_of = [&](int s) { return std::int64_t{first_filter + (kWindows ? other(s) : own)}; };
    const auto live_of = [&](std::int64_t rest) {
      return rest < 4 && !kWindows ? static_cast<int>(rest) : 4;
    };
    const auto biased = [&](int s) {
      const std::int64_t first = filter_of(s), rest = p.n - first;
      const Four v = gemm_gpu::four_of(*word_at(s), DType::f32);
      if (!p.bias || rest <= 0) return v;
      return v + gemm_gpu::floats_at(p.bias, first * p.bias_stride, kWindows ? 0 : p.bias_stride,
                                     live_of(rest), p.bias_dtype, false);
    };
    if (p.activation != 0) {  // in a loop of its own: its code is there once
      ROOFTILE_UNROLL_BY(1) for (int s = 0; s < 8; ++s) {
        const Four v = gemm_gpu::activated(biased(s), p.activation);
        const float4 word{v.v[0], v.v[1], v.v[2], v.v[3]};
        *word_at(s) = word;
      }
    }
    ROOFTILE_UNROLL_BY(2) for (int s = 0; s < 8; ++s) {
      const std::int64_t first = filter_of(s), rest = p.n - first;
      const std::int64_t at =
          kWindows ? found
                   : __shfl_sync(0xffffffff, kAlongRows && s >= 4 ? found_next : found, other(s) % 32);
      if (first_window + (kWindows ? own : other(s)) >= p.m || rest <= 0) continue;
      const int live = live_of(rest);
      const Four v = p.activation != 0 ? gemm_gpu::four_of(*word_at(s), DType::f32) : biased(s);
      if (kWindows || p.fours) {
        const uint2 word{pack<T>(v.v[0], v.v[1]), pack<T>(v.v[2], v.v[3])};
        *reinterpret_cast<uint2*>(static_cast<T*>(p.out.data) + at + first * p.out.i_stride) = word;
      } else {
        ROOFTILE_UNROLL for (int l = 0; l < 4; ++l) {
          if (l < live) store_one(p.out, at + (first + l) * p.out.i_stride, v.v[l]);
        }
      }
    }
    __syncwarp();
  }
}

}  // namespace hopper
#endif

}  // namespace rooftile::conv_gpu
