#pragma once
// A large f32 product without matrix instructions, of whole 16-byte words. A thread computes 8 x 16 of y: six
// words from shared memory for 128 multiply-adds, where 8 x 8 take four for 64. The words of the stage after
// the next come between the steps of K: by cp.async where neighbours lie as shared memory has them, along M
// or N; through registers, and turned, where they lie along K. Four copies of 4 bytes in place of one turned
// word took 3.07 instead of 2.72 ms, 8 x 8 of a thread 2.92 (4096³, H200).
#include "rooftile/backend/cuda/ptx.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/gemm/gemm.gpu.h"

namespace rooftile::gemm_gpu {

/// A block's tile, of 4 warps in a square, of 4 by 8 threads each.
struct WideShape {
  static constexpr int kDown = 8, kAcross = 16;  ///< of a thread, in groups of four
  static constexpr int kM = 2 * 4 * kDown, kN = 2 * 8 * kAcross, kThreads = 128, kBlocks = 2, kStages = 3;
  static constexpr int kDepth = 16;  ///< of K in a stage
};

/// kDepth steps of K of an operand: a row for each step, of kExtent of M or N.
template <bool kKFirst, int kExtent>
struct WideTile {
  static constexpr int kThreads = WideShape::kThreads, kDepth = WideShape::kDepth;
  // Lanes that turn words write columns of 4: rows 4 words longer are in other banks.
  static constexpr int kPitch = kExtent + (kKFirst ? 4 : 0), kPart = kDepth * kPitch;
  static constexpr int kRowWords = (kKFirst ? kDepth : kExtent) / 4, kStep = kThreads / kRowWords;
  static constexpr int kWords = kDepth * kExtent / 4 / kThreads;  ///< of a thread in a stage
  const float* next;                                              ///< the word that the thread brings next
  std::int64_t step;                                              ///< elements from a word to the next
  std::int64_t back;  ///< and from a stage's end to the next one's first
  int row, word, left;

  ROOFTILE_TILE WideTile(const GpuOperand& o, const float* matrix, std::int64_t first, std::int64_t extent)
      : row(static_cast<int>(threadIdx.x) / kRowWords), word(static_cast<int>(threadIdx.x) % kRowWords) {
    const std::int64_t rows = kKFirst ? o.mn_stride : o.k_stride;
    next = matrix + first * o.mn_stride + row * rows + word * 4;
    step = kStep * rows;
    back = kDepth * o.k_stride - kWords * step;
    left = extent - first < kExtent ? int(extent - first) : kExtent;
  }
  /// The thread's i-th word of a stage, of whose K `k` steps are there; the rest is zeros. Held in registers,
  /// or already on its way to `to`.
  ROOFTILE_TILE void bring(float4& held, float* to, int i, int k) {
    if constexpr (kKFirst) {
      held = row + i * kStep < left && word * 4 < k ? *reinterpret_cast<const float4*>(next) : float4{};
    } else {
      const int rest = row + i * kStep < k ? (left - word * 4) * 4 : 0;
      rooftile::cuda::cp_async_16(to + (row + i * kStep) * kPitch + word * 4, next,
                                  rest < 0    ? 0
                                  : rest > 16 ? 16
                                              : rest);
    }
    next += i + 1 < kWords ? step : step + back;
  }
  ROOFTILE_TILE void put(const float4& held, float* to, int i) const {
    if constexpr (kKFirst) {
      float* const at = to + word * 4 * kPitch + row + i * kStep;
      at[0] = held.x, at[kPitch] = held.y, at[2 * kPitch] = held.z, at[3 * kPitch] = held.w;
    }
  }
};

/// K is a multiple of 4 where neighbours lie along it.
template <bool kAKFirst, bool kBKFirst>
__global__ void __launch_bounds__(WideShape::kThreads, WideShape::kBlocks)
    gemm_simt_wide(const __grid_constant__ GpuProduct p, const __grid_constant__ GpuTiles tiles,
                   std::int64_t first_tile) {
  using Shape = WideShape;
  using A = WideTile<kAKFirst, Shape::kM>;
  using B = WideTile<kBKFirst, Shape::kN>;
  constexpr int kDown = Shape::kDown, kAcross = Shape::kAcross, kStages = Shape::kStages;
  constexpr int kDepth = Shape::kDepth, kStage = A::kPart + B::kPart;
  // A word is asked for so many steps before it is put: 128 multiply-adds of two warps each.
  constexpr int kWords = A::kWords + B::kWords, kHeld = 4;
  static_assert(kWords + kHeld <= kDepth);
  ROOFTILE_DYNAMIC_SHARED(bytes);
  float* const ring = reinterpret_cast<float*>(bytes);
  const GpuTile tile = tile_at(tiles, first_tile + blockIdx.x);
  const std::int64_t first_i = tile.row * Shape::kM, first_j = tile.column * Shape::kN;
  const auto matrix = [&](const GpuOperand& o, int index) {
    return reinterpret_cast<const float*>(o.data) + offset_of(p.batch, index, tile.matrix);
  };
  A a(p.a, matrix(p.a, p.a_index), first_i, p.m);
  B b(p.b, matrix(p.b, p.b_index), first_j, p.n);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int row = warp / 2 * 4 * kDown + lane / 8 * 4;       // and 16 further
  const int column = warp % 2 * 8 * kAcross + lane % 8 * 4;  // and 32 further
  const int stages = static_cast<int>((p.k + kDepth - 1) / kDepth);

  int copied = 0;  // stages
  float4 held[kHeld];
  const auto bring = [&](int word, float* to) {
    const std::int64_t rest = p.k - std::int64_t{copied} * kDepth;
    const int k = rest < kDepth ? int(rest) : kDepth;
    if (word < A::kWords)
      a.bring(held[word % kHeld], to, word, k);
    else
      b.bring(held[word % kHeld], to + A::kPart, word - A::kWords, k);
  };
  const auto put = [&](int word, float* to) {
    if (word < A::kWords)
      a.put(held[word % kHeld], to, word);
    else
      b.put(held[word % kHeld], to + A::kPart, word - A::kWords);
  };
  const auto close = [&] {
    rooftile::cuda::cp_async_commit();
    ++copied;
  };
  ROOFTILE_UNROLL for (int s = 0; s < kStages - 1; ++s) {
    if (s < stages) {
      ROOFTILE_UNROLL for (int word = 0; word < kWords; ++word) {
        bring(word, ring + s * kStage);
        put(word, ring + s * kStage);
      }
    }
    close();
  }

  float sums[kDown][kAcross] = {};
  float left[2][kDown], right[2][kAcross];
  const auto load = [&](int to, const float* stage, int step) {
    ROOFTILE_UNROLL for (int g = 0; g < kDown; g += 4)
        memcpy(&left[to][g], stage + step * A::kPitch + row + 4 * g, 16);
    ROOFTILE_UNROLL for (int g = 0; g < kAcross; g += 4)
        memcpy(&right[to][g], stage + A::kPart + step * B::kPitch + column + 8 * g, 16);
  };
  int slot = 0, free_slot = kStages - 1;
  ROOFTILE_UNROLL_BY(1) for (int s = 0; s < stages; ++s) {
    rooftile::cuda::cp_async_wait<kStages - 2>();
    __syncthreads();  // the stage is here for all, and all have read the one before
    const float* const stage = ring + slot * kStage;
    float* const to = ring + free_slot * kStage;
    load(0, stage, 0);
    ROOFTILE_UNROLL for (int step = 0; step < kDepth; ++step) {
      if (step >= kHeld && step - kHeld < kWords) put(step - kHeld, to);
      if (step < kWords) bring(step, to);
      if (step + 1 < kDepth) load((step + 1) % 2, stage, step + 1);
      ROOFTILE_UNROLL for (int i = 0; i < kDown; ++i) {
        ROOFTILE_UNROLL for (int j = 0; j < kAcross; ++j) {
          sums[i][j] = fmaf(left[step % 2][i], right[step % 2][j], sums[i][j]);
        }
      }
    }
    close();
    free_slot = slot;
    slot = slot + 1 == kStages ? 0 : slot + 1;
  }
  rooftile::cuda::cp_async_wait<0>();

  const std::int64_t y_first = offset_of(p.batch, 0, tile.matrix),
                     c_first = offset_of(p.batch, 3, tile.matrix);
  ROOFTILE_UNROLL_BY(1) for (int e = 0; e < kDown * kAcross / 4; ++e) {
    Four four{};
    ROOFTILE_UNROLL for (int i = 0; i < kDown; ++i) {
      ROOFTILE_UNROLL for (int g = 0; g < kAcross / 4; ++g) {
        if (i * kAcross / 4 + g != e) continue;  // which registers, the compiler must know
        ROOFTILE_UNROLL for (int l = 0; l < 4; ++l) four.v[l] = sums[i][4 * g + l];
      }
    }
    const int i = e / (kAcross / 4), g = e % (kAcross / 4);
    const std::int64_t at_i = first_i + row + i % 4 + i / 4 * 16, at_j = first_j + column + g * 32;
    const std::int64_t rest = p.n - at_j;
    if (at_i < p.m && rest > 0)
      finish(p.epilogue, y_first, c_first, at_i, at_j, rest < 4 ? int(rest) : 4, four);
  }
}

/// Whether the wide kernel takes it, and its tiles fill the multiprocessors.
inline bool suits_wide(const GpuProduct& p, int multiprocessors) {
  const bool whole = (!p.a.k_first && !p.b.k_first) || p.k % 4 == 0;
  return whole && p.a.piece == 16 && p.b.piece == 16 && p.m > WideShape::kM / 2 && p.n > WideShape::kN / 2 &&
         GpuTiles(p, WideShape::kM, WideShape::kN).count >= multiprocessors;
}

inline Status launch_wide(const CudaLaunch& launch, const GpuProduct& p) {
  const auto run = [&]<bool kA, bool kB>() {
    using Shape = WideShape;
    constexpr int kStage = WideTile<kA, Shape::kM>::kPart + WideTile<kB, Shape::kN>::kPart;
    return launch_tiles(launch, "gemm", p, Shape::kM, Shape::kN, Shape::kThreads,
                        Shape::kStages * kStage * sizeof(float), gemm_simt_wide<kA, kB>);
  };
  if (p.a.k_first)
    return p.b.k_first ? run.template operator()<true, true>() : run.template operator()<true, false>();
  return p.b.k_first ? run.template operator()<false, true>() : run.template operator()<false, false>();
}

}  // namespace rooftile::gemm_gpu
