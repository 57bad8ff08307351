#pragma once
// What products by mma.sync share, whatever their operands come from: where a stage's words lie, the main
// loop over a ring of stages, and the way from fragments to rows. f16, bf16, tf32, whose sums are f32, for
// each element one chain over ascending K whatever the tile is; i8, whose sums are i32.
//
// Shared memory, in 16-byte words: an operand whose neighbours lie along K is kept as rows of K, 4 words
// each; one whose neighbours lie along M or N, as rows of those. Word w of row r lies at w ^ s(r): the eight
// rows that ldmatrix reads at once then are in all 32 banks. It turns elements of 16 bits: of bytes, pairs
// along M or N. So of those the first eight of 16 rows or columns are the even ones (FragmentPlace).
#include "rooftile/backend/cuda/ptx.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/gemm/gemm.gpu_epilogue.h"

namespace rooftile::gemm_gpu {
using namespace rooftile::tile;

/// How an operand lies in shared memory; any: known at run time.
enum class Order { k_first, mn_first, any };

/// A block's tile, and the warps that share it.
template <int kM_, int kN_, int kWarpM_, int kWarpN_, int kStages_, int kBlocks_, int kRow_ = 64>
struct MmaShape {
  static constexpr int kM = kM_, kN = kN_, kWarpM = kWarpM_, kWarpN = kWarpN_, kStages = kStages_;
  static constexpr int kBlocks = kBlocks_;  // of a multiprocessor
  static constexpr int kAcross = kN / kWarpN, kThreads = kM / kWarpM * kAcross * 32;
  static constexpr int kRow = kRow_;  // bytes of K in a stage
  static constexpr int kStage = (kM + kN) * kRow;
  static constexpr int kPitch = kWarpN + 8;  // floats; of a warp's part of the epilogue
  static constexpr int kEpilogue = kThreads / 32 * 16 * kPitch * 4;
  ROOFTILE_TILE static int row_of(int warp) { return warp / kAcross * kWarpM; }  // a warp's first
  ROOFTILE_TILE static int column_of(int warp) { return warp % kAcross * kWarpN; }
  static constexpr int kShared = kStages * kStage > kEpilogue ? kStages* kStage : kEpilogue;
};

template <class T>
using MmaSum = std::conditional_t<std::is_same_v<T, std::int8_t>, int, float>;

template <class T>
ROOFTILE_TILE void multiply_add(MmaSum<T> (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  if constexpr (std::is_same_v<T, std::int8_t>)
    rooftile::cuda::mma_s8(d, a, b);
  else if constexpr (std::is_same_v<T, bf16>)
    rooftile::cuda::mma_bf16(d, a, b);
  else if constexpr (std::is_same_v<T, f16>)
    rooftile::cuda::mma_f16(d, a, b);
  else
    rooftile::cuda::mma_tf32(d, a, b);
}

/// How one operand's part of a stage lies: kExtent of M or N, kRow bytes of K.
template <class T, Order kOrder, int kExtent, int kRow>
class StageLayout {
 public:
  static constexpr int kSize = int(sizeof(T)), kInWord = 16 / kSize;  // elements
  static constexpr int kDepth = kRow / kSize, kRowWords = kRow / 16;  // of K: elements, words
  static constexpr int kWide = kExtent * kSize;                       // bytes of a row of M or N

  /// `k_first`: counts where the order is any.
  ROOFTILE_TILE explicit StageLayout(bool k_first = true) : k_first_(k_first) {}
  ROOFTILE_TILE bool k_first() const { return kOrder == Order::any ? k_first_ : kOrder == Order::k_first; }
  ROOFTILE_TILE bool by_parity() const { return kSize == 1 && !k_first(); }  // see FragmentPlace

  /// Where this lane reads the fragments of A (kRows = 16 rows of it) or of B (two times 8 columns): `of` is
  /// the warp's first row or column.
  ROOFTILE_TILE int lane_place(int lane, int of, bool is_a) const {
    if (k_first()) {
      const int row = is_a ? lane % 16 : lane % 8 + lane / 16 * 8, word = is_a ? lane / 16 : lane / 8 % 2;
      return place_k(of + row, word);
    }
    if constexpr (kSize == 4) return place_mn(lane % 4, (of + lane / 4) / 4) + lane / 4 % 4 * 4;
    // The rows of a matrix are 0 and 1 of every four of K, those of the next one 2 and 3.
    if constexpr (kSize == 1)
      return place_mn(lane / 16 * 16 + lane % 8 / 2 * 4 + lane / 8 % 2 * 2 + lane % 2, of / 16);
    const int row = is_a ? lane % 8 + lane / 16 * 8 : lane % 16, word = is_a ? lane / 8 % 2 : lane / 16;
    return place_mn(row, of / kInWord + word);
  }
  /// The 16 rows or columns from `of` + 16·i on, of the step-th 32 bytes of K.
  ROOFTILE_TILE void load(unsigned (&registers)[4], const std::byte* stage, int place, int i, int step,
                          bool is_a) const {
    if (k_first()) {
      rooftile::cuda::load_matrix(registers, stage + (place ^ step * 32) + i * 16 * kRow);
    } else if constexpr (kSize == 4) {
      // Eight of K; no instruction turns 32-bit elements. Rows of K 4 apart have the same place within a row.
      const std::byte* from = stage + (place ^ i * 64) + step * 8 * kWide;
      const int other = is_a ? 1 : 2;
      registers[0] = word_at(from);
      registers[other] = word_at(stage + ((place ^ i * 64) ^ 32) + step * 8 * kWide);
      registers[3 - other] = word_at(from + 4 * kWide);
      registers[3] = word_at(stage + ((place ^ i * 64) ^ 32) + (step * 8 + 4) * kWide);
    } else if constexpr (kSize == 1) {
      unsigned pairs[4];  // a byte of an even row or column, then of the odd one, of each of two steps of K
      rooftile::cuda::load_matrix<true>(pairs, stage + (place ^ i * 16) + step * 32 * kWide);
      const int other = is_a ? 1 : 2;
      registers[0] = __byte_perm(pairs[0], pairs[1], 0x6420);
      registers[other] = __byte_perm(pairs[0], pairs[1], 0x7531);
      registers[3 - other] = __byte_perm(pairs[2], pairs[3], 0x6420);
      registers[3] = __byte_perm(pairs[2], pairs[3], 0x7531);
    } else {
      rooftile::cuda::load_matrix<true>(registers, stage + (place ^ i * 32) + step * 16 * kWide);
    }
  }

  ROOFTILE_TILE static int place_k(int row, int word) {
    return row * kRow + (word ^ (kRowWords == 4 ? row / 2 % 4 : row % 8)) * 16;
  }
  ROOFTILE_TILE static int place_mn(int row, int word) {
    if constexpr (kSize == 1)
      return row * kWide + (word ^ (kWide == 64 ? row / 4 % 4 : row / 4 % 4 * 2 + row % 2)) * 16;
    return row * kWide + (word ^ (kSize == 4 ? row % 4 * 2 : row % 8)) * 16;
  }

 private:
  ROOFTILE_TILE static unsigned word_at(const std::byte* from) {
    return *reinterpret_cast<const unsigned*>(from);
  }
  bool k_first_;
};

/// Which rows of a warp's fragments count: all here.
struct AllRows {
  ROOFTILE_TILE bool idle() const { return false; }
  ROOFTILE_TILE bool lives(int) const { return true; }
};

/// Where a lane's elements of a fragment lie in a warp's tile: halves of 16 rows or columns are eight each,
/// one after the other or, by parity, the even and the odd ones.
struct FragmentPlace {
  bool rows_by_parity = false, columns_by_parity = false;
  ROOFTILE_TILE int row(int lane, int half) const {  // of 16
    return rows_by_parity ? lane / 4 * 2 + half : lane / 4 + half * 8;
  }
  /// j: the fragment, of 8 columns; e: 0 or 1.
  ROOFTILE_TILE int column(int lane, int j, int e) const {
    const int within = lane % 4 * 2 + e;
    return columns_by_parity ? j / 2 * 16 + within * 2 + j % 2 : j * 8 + within;
  }
};

struct Nothing {
  ROOFTILE_TILE void operator()() const {}
};

/// sums += A · B over all stages. `copy(slot)` asks for the next stage's words, by cp.async, and closes their
/// group, also where no stage is left. `after()` follows each stage.
template <class T, class Shape, class A, class B, class Live, class Copy, class After = Nothing>
ROOFTILE_TILE void multiply_stages(MmaSum<T> (&sums)[Shape::kWarpM / 16][Shape::kWarpN / 8][4],
                                   const std::byte* ring, const A& a, const B& b, int stages, Live live,
                                   Copy&& copy, After&& after = {}) {
  constexpr int kSteps = Shape::kRow / 32, kStages = Shape::kStages;
  constexpr int kDown = Shape::kWarpM / 16, kAcross = Shape::kWarpN / 16;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int a_place = a.lane_place(lane, Shape::row_of(warp), true);
  const int b_place = Shape::kM * Shape::kRow + b.lane_place(lane, Shape::column_of(warp), false);
  unsigned left[2][kDown][4], right[2][kAcross][4];
  const auto load = [&](int to, int slot, int step) {
    if (live.idle()) return;
    const std::byte* const stage = ring + slot * Shape::kStage;
    ROOFTILE_UNROLL for (int i = 0; i < kDown; ++i) {
      if (live.lives(i)) a.load(left[to][i], stage, a_place, i, step, true);
    }
    ROOFTILE_UNROLL for (int j = 0; j < kAcross; ++j) b.load(right[to][j], stage, b_place, j, step, false);
  };

  ROOFTILE_UNROLL for (int s = 0; s < kStages - 1; ++s) copy(s);
  rooftile::cuda::cp_async_wait<kStages - 2>();
  __syncthreads();
  if (stages > 0) load(0, 0, 0);
  int slot = 0, free_slot = kStages - 1;
  ROOFTILE_UNROLL_BY(1) for (int s = 0; s < stages; ++s) {
    const int next_slot = slot + 1 == kStages ? 0 : slot + 1;
    ROOFTILE_UNROLL for (int step = 0; step < kSteps; ++step) {
      // [ring]
      const bool last = step + 1 == kSteps;
      if (last) {  // the next stage is here for all, and all have read the one before this
        rooftile::cuda::cp_async_wait<kStages - 2>();
        __syncthreads();
      }
      if (!last || s + 1 < stages) load((step + 1) % 2, last ? next_slot : slot, last ? 0 : step + 1);
      if (step == 0) copy(free_slot);
      // [/ring]
      ROOFTILE_UNROLL for (int i = 0; i < kDown; ++i) {
        if (live.idle() || !live.lives(i)) continue;
        ROOFTILE_UNROLL for (int j = 0; j < 2 * kAcross; ++j) {
          const unsigned(&columns)[4] = right[step % 2][j / 2];
          const unsigned pair[2] = {columns[j % 2 * 2], columns[j % 2 * 2 + 1]};
          multiply_add<T>(sums[i][j], left[step % 2][i], pair);
        }
      }
    }
    after();
    free_slot = slot;
    slot = next_slot;
  }
  rooftile::cuda::cp_async_wait<0>();
  __syncthreads();
}

/// Neighbours as one word of 8 or 16 bytes.
template <class Sum, int N>
ROOFTILE_TILE void put(Sum* to, const Tile<Sum, N>& neighbours) {
  using Word = std::conditional_t<N == 2, uint2, uint4>;
  Word word;
  memcpy(&word, neighbours.v, sizeof word);
  *reinterpret_cast<Word*>(to) = word;
}

/// 16 rows of a warp at a time through shared memory: from fragments to `finish(row, column, Tile)` for four
/// neighbours; row and column of the tile.
template <class Shape, class Sum, class Live, class Finish>
ROOFTILE_TILE void finish_fragments(const Sum (&sums)[Shape::kWarpM / 16][Shape::kWarpN / 8][4],
                                    std::byte* ring, Live live, Finish&& finish, FragmentPlace place = {}) {
  static_assert(sizeof(Sum) == 4);
  constexpr int kDown = Shape::kWarpM / 16, kAcross = Shape::kWarpN / 16;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  Sum* const part = reinterpret_cast<Sum*>(ring) + warp * 16 * Shape::kPitch;
  ROOFTILE_UNROLL_BY(1) for (int i = 0; i < kDown; ++i) {
    if (live.idle() || !live.lives(i)) break;
    ROOFTILE_UNROLL for (int which = 0; which < kDown; ++which) {
      if (which != i) continue;  // which registers, the compiler must know
      const auto& row = sums[which];
      ROOFTILE_UNROLL for (int half = 0; half < 2; ++half) {
        Sum* const to = part + place.row(lane, half) * Shape::kPitch;
        const int d = 2 * half;
        ROOFTILE_UNROLL for (int j = 0; j < 2 * kAcross; j += 2) {
          if (place.columns_by_parity) {
            put(to + place.column(lane, j, 0),
                Tile<Sum, 4>{{row[j][d], row[j + 1][d], row[j][d + 1], row[j + 1][d + 1]}});
          } else {
            put(to + place.column(lane, j, 0), Tile<Sum, 2>{{row[j][d], row[j][d + 1]}});
            put(to + place.column(lane, j + 1, 0), Tile<Sum, 2>{{row[j + 1][d], row[j + 1][d + 1]}});
          }
        }
      }
    }
    __syncwarp();
    constexpr int kFours = Shape::kWarpN / 4;  // in a row
    ROOFTILE_UNROLL_BY(1) for (int e = lane; e < 16 * kFours; e += 32) {
      const int row = e / kFours, column = e % kFours * 4;
      const uint4 word = *reinterpret_cast<const uint4*>(part + row * Shape::kPitch + column);
      Tile<Sum, 4> four;
      memcpy(four.v, &word, sizeof word);
      finish(Shape::row_of(warp) + i * 16 + row, Shape::column_of(warp) + column, four);
    }
    __syncwarp();
  }
}

}  // namespace rooftile::gemm_gpu
