#pragma once
// A product without matrix instructions: f32, f64 and i8, four of whose products over K are one instruction.
// A thread computes a square of y in registers, one chain over ascending K for each element. Tiles of both
// operands come by cp.async into a ring, turned so that a row holds one step of K: any strides, since a copy
// may be one element.
#include "rooftile/backend/cuda/ptx.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/gemm/gemm.gpu.h"

namespace rooftile::gemm_gpu {

/// What a step of K is: Word, kElements of K in one; Sum.
template <class T>
struct Step {
  using Word = T;
  using Sum = T;
  static constexpr int kElements = 1;
  ROOFTILE_TILE static Sum multiply_add(Word a, Word b, Sum sum) { return fused(a, b, sum); }
};
template <>
struct Step<std::int8_t> {
  using Word = int;
  using Sum = int;
  static constexpr int kElements = 4;
  ROOFTILE_TILE static Sum multiply_add(Word a, Word b, Sum sum) {
#if defined(ROOFTILE_EMULATED)
    unsigned total = static_cast<unsigned>(sum);
    for (int i = 0; i < 32; i += 8)
      total += static_cast<unsigned>(static_cast<std::int8_t>(a >> i) * static_cast<std::int8_t>(b >> i));
    return static_cast<int>(total);
#else
    return __dp4a(a, b, sum);
#endif
  }
};

/// A block's tile: kSide squared, 256 threads of four rows and columns each.
template <class T, int kBlocks_>
struct SimtShape {
  using Word = typename Step<T>::Word;
  static constexpr int kSide = 64, kThreads = 256, kBlocks = kBlocks_, kStages = 3;
  static constexpr int kDepth = 16;  // words of K in a stage
  // Lanes that copy along K write rows of these: 4 words of 4 bytes more, and eight rows are in other banks.
  static constexpr int kPitch = kSide + 16 / int(sizeof(Word));
  static constexpr int kPart = kDepth * kPitch * int(sizeof(Word)), kStage = 2 * kPart;
  static constexpr int kShared = kStages * kStage;
};

/// kDepth steps of K of an operand's rows or columns, turned.
template <class T, class Shape>
struct TurnedTile {
  using Word = typename Shape::Word;
  static constexpr int kSize = int(sizeof(T)), kElements = Step<T>::kElements, kBytes = int(sizeof(Word));
  const GpuOperand& operand;
  const std::byte* data;
  int left;

  ROOFTILE_TILE TurnedTile(const GpuOperand& o, const std::byte* matrix, std::int64_t first,
                           std::int64_t extent)
      : operand(o),
        data(matrix + first * o.mn_stride * kSize),
        left(extent - first < Shape::kSide ? int(extent - first) : Shape::kSide) {}

  /// From K = `first` on, `k` elements of it; the rest is zeros.
  ROOFTILE_TILE void copy(Word* to, std::int64_t first, std::int64_t k_left) const {
    const int k = k_left < Shape::kDepth * kElements ? int(k_left) : Shape::kDepth * kElements;
    const int t = static_cast<int>(threadIdx.x);
    const std::byte* const from = data + first * operand.k_stride * kSize;
    if (kElements == 1 && !operand.k_first && operand.piece == 16) {
      constexpr int kIn = 16 / kBytes, kAcross = Shape::kSide / kIn;  // elements in a copy, copies in a row
      ROOFTILE_UNROLL for (int e = 0; e < Shape::kDepth * kAcross / Shape::kThreads; ++e) {
        const int row = (e * Shape::kThreads + t) / kAcross, column = t % kAcross * kIn;
        const int rest = row < k ? (left - column) * kBytes : 0;
        rooftile::cuda::cp_async_16(to + row * Shape::kPitch + column,
                                    from + row * operand.k_stride * kSize + column * kBytes,
                                    rest < 0    ? 0
                                    : rest > 16 ? 16
                                                : rest);
      }
      return;
    }
    // Lanes go along the neighbours: 8 steps of K of 4 rows, or 32 rows of one step.
    const int across = operand.k_first ? 8 : 1, down = 32 / across;
    const int lane = t % 32, warp = t / 32;
    ROOFTILE_UNROLL_BY(4) for (int e = warp; e < Shape::kDepth * Shape::kSide / 32; e += 8) {
      const int per_row = Shape::kDepth / across;  // of the groups of 32
      const int step = e % per_row * across + lane % across, row = e / per_row * down + lane / across;
      const std::byte* const source =
          from + row * operand.mn_stride * kSize + step * kElements * operand.k_stride * kSize;
      Word* const at = to + step * Shape::kPitch + row;
      const int live = row < left ? k - step * kElements : 0;
      if constexpr (kElements == 1)
        rooftile::cuda::cp_async<kBytes>(at, source, live > 0 ? kBytes : 0);
      else
        copy_four(at, source, live);
    }
  }
  /// Four of K, neighbours and aligned or not.
  ROOFTILE_TILE void copy_four(Word* at, const std::byte* source, int live) const {
    live = live < 0 ? 0 : live > 4 ? 4 : live;
    if (operand.k_first && operand.piece % 4 == 0) return rooftile::cuda::cp_async<4>(at, source, live);
    unsigned word = 0;
    ROOFTILE_UNROLL for (int i = 0; i < 4; ++i) {
      if (i < live)
        word |= static_cast<unsigned>(static_cast<std::uint8_t>(source[i * operand.k_stride])) << 8 * i;
    }
    *at = static_cast<int>(word);
  }
};

/// Four neighbours, in words of 16 bytes.
template <class Word>
ROOFTILE_TILE void four_of(Word* to, const Word* from) {
  using Vector = std::conditional_t<sizeof(Word) == 8, double2, uint4>;
  constexpr int kIn = 16 / int(sizeof(Word));
  ROOFTILE_UNROLL for (int i = 0; i < 4; i += kIn) {
    const Vector v = *reinterpret_cast<const Vector*>(from + i);
    memcpy(to + i, &v, 16);
  }
}

/// A thread's square of a tile: where its four rows and columns begin. A warp is 4 by 8 threads: it reads 16
/// neighbours of A and 32 of B at once.
struct TurnedPlace {
  int row, column;
  ROOFTILE_TILE TurnedPlace() {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    row = (warp / 2 * 4 + lane / 8) * 4;
    column = (warp % 2 * 8 + lane % 8) * 4;
  }
};

/// sums += A · B over all stages. `copy(slot)` asks for the next stage's words, by cp.async, and closes their
/// group, also where no stage is left. `after()` follows each stage.
template <class T, class Shape, class Sums, class Copy, class After>
ROOFTILE_TILE void multiply_turned_stages(Sums& sums, const std::byte* ring, int stages, Copy&& copy,
                                          After&& after) {
  using Word = typename Shape::Word;
  constexpr int kStages = Shape::kStages;
  const TurnedPlace place;
  ROOFTILE_UNROLL for (int s = 0; s < kStages - 1; ++s) copy(s);
  int slot = 0, free_slot = kStages - 1;
  ROOFTILE_UNROLL_BY(1) for (int s = 0; s < stages; ++s) {
    rooftile::cuda::cp_async_wait<kStages - 2>();
    __syncthreads();  // the stage is here for all, and all have read the one before
    copy(free_slot);
    const Word* const lefts = reinterpret_cast<const Word*>(ring + slot * Shape::kStage) + place.row;
    const Word* const rights =
        reinterpret_cast<const Word*>(ring + slot * Shape::kStage + Shape::kPart) + place.column;
    ROOFTILE_UNROLL for (int step = 0; step < Shape::kDepth; ++step) {
      Word left[4], right[4];
      four_of(left, lefts + step * Shape::kPitch);
      four_of(right, rights + step * Shape::kPitch);
      ROOFTILE_UNROLL for (int i = 0; i < 4; ++i) {
        ROOFTILE_UNROLL for (int j = 0; j < 4; ++j) {
          sums[i][j] = Step<T>::multiply_add(left[i], right[j], sums[i][j]);
        }
      }
    }
    after();
    free_slot = slot;
    slot = slot + 1 == kStages ? 0 : slot + 1;
  }
}

/// A thread's square to y.
template <class Shape, class Sum>
ROOFTILE_TILE void finish_turned(const GpuProduct& p, const GpuTile& tile, const Sum (&sums)[4][4]) {
  const TurnedPlace place;
  const std::int64_t y_first = offset_of(p.batch, 0, tile.matrix),
                     c_first = offset_of(p.batch, 3, tile.matrix);
  const std::int64_t at_j = tile.column * Shape::kSide + place.column, rest = p.n - at_j;
  ROOFTILE_UNROLL_BY(1) for (int e = 0; e < 4; ++e) {
    Tile<Sum, 4> four{};
    ROOFTILE_UNROLL for (int i = 0; i < 4; ++i) {
      if (i != e) continue;  // which registers, the compiler must know
      ROOFTILE_UNROLL for (int l = 0; l < 4; ++l) four.v[l] = sums[i][l];
    }
    const std::int64_t at_i = tile.row * Shape::kSide + place.row + e;
    if (at_i < p.m && rest > 0)
      finish(p.epilogue, y_first, c_first, at_i, at_j, rest < 4 ? int(rest) : 4, four);
  }
}

/// A tile of y from its operands, each of which copies its own part of a stage.
template <class T, class Shape, class A, class B>
ROOFTILE_TILE void multiply_turned(const GpuProduct& p, const GpuTile& tile, std::byte* ring, A& a, B& b) {
  using Word = typename Shape::Word;
  constexpr int kDepth = Shape::kDepth * Step<T>::kElements;
  const int stages = static_cast<int>((p.k + kDepth - 1) / kDepth);
  int copied = 0;
  const auto copy = [&](int slot) {
    if (copied < stages) {
      const std::int64_t first = std::int64_t{copied} * kDepth;
      std::byte* const stage = ring + slot * Shape::kStage;
      a.copy(reinterpret_cast<Word*>(stage), first, p.k - first);
      b.copy(reinterpret_cast<Word*>(stage + Shape::kPart), first, p.k - first);
    }
    ++copied;
    rooftile::cuda::cp_async_commit();
  };
  typename Step<T>::Sum sums[4][4] = {};
  multiply_turned_stages<T, Shape>(sums, ring, stages, copy, [] {});
  finish_turned<Shape>(p, tile, sums);
}

template <class T, class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    gemm_simt(const __grid_constant__ GpuProduct p, const __grid_constant__ GpuTiles tiles,
              std::int64_t first_tile) {
  ROOFTILE_DYNAMIC_SHARED(ring);
  const GpuTile tile = tile_at(tiles, first_tile + blockIdx.x);
  const TurnedTile<T, Shape> a(p.a, p.a.data + offset_of(p.batch, p.a_index, tile.matrix) * int(sizeof(T)),
                               tile.row * Shape::kSide, p.m);
  const TurnedTile<T, Shape> b(p.b, p.b.data + offset_of(p.batch, p.b_index, tile.matrix) * int(sizeof(T)),
                               tile.column * Shape::kSide, p.n);
  multiply_turned<T, Shape>(p, tile, ring, a, b);
}

}  // namespace rooftile::gemm_gpu
