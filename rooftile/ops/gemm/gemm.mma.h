#pragma once
// A product by mma.sync: f16, bf16, tf32, sums in f32, for each element one chain over ascending K whatever
// the tile is. Tiles of A and B, 64 or 128 bytes of K, come by cp.async into a ring; a warp's fragments come
// from there by ldmatrix, the next ones while this step is multiplied.
//
// Shared memory, in 16-byte words: an operand whose neighbours lie along K is kept as rows of K, 4 words
// each; one whose neighbours lie along M or N, as rows of those. Word w of row r lies at w ^ s(r): the eight
// rows that ldmatrix reads at once then are in all 32 banks.
#include "rooftile/backend/cuda/ptx.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/gemm/gemm.gpu.h"

namespace rooftile::gemm_gpu {

/// How an operand lies in shared memory; any: known at run time, and copied in pieces of any size.
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
  static constexpr int kShared = kStages * kStage > kEpilogue ? kStages* kStage : kEpilogue;
};

template <class T>
ROOFTILE_TILE void multiply_add(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  if constexpr (std::is_same_v<T, bf16>)
    rooftile::cuda::mma_bf16(d, a, b);
  else if constexpr (std::is_same_v<T, f16>)
    rooftile::cuda::mma_f16(d, a, b);
  else
    rooftile::cuda::mma_tf32(d, a, b);
}

/// One operand's part of a stage: kExtent of M or N, kRow bytes of K.
template <class T, Order kOrder, int kExtent, int kThreads, int kRow>
class OperandTile {
 public:
  static constexpr int kSize = int(sizeof(T)), kInWord = 16 / kSize;  // elements
  static constexpr int kDepth = kRow / kSize, kRowWords = kRow / 16;  // of K: elements, words
  static constexpr int kWide = kExtent * kSize;                       // bytes of a row of M or N
  static constexpr int kWords = kExtent * kRow / 16 / kThreads;       // of a thread
  static_assert(kExtent * kRow % (16 * kThreads) == 0);

  ROOFTILE_TILE OperandTile(const GpuOperand& o, const std::byte* matrix, std::int64_t first,
                            std::int64_t extent)
      : operand_(o), data_(matrix), left_(extent - first < kExtent ? int(extent - first) : kExtent) {
    data_ += first * o.mn_stride * kSize;
  }
  ROOFTILE_TILE bool k_first() const {
    return kOrder == Order::any ? operand_.k_first : kOrder == Order::k_first;
  }

  /// Brings K from `first` on, `k_left` of it; the rest is zeros.
  ROOFTILE_TILE void copy(std::byte* to, std::int64_t first, std::int64_t k_left) const {
    const int k = k_left < kDepth ? int(k_left) : kDepth;
    const int t = static_cast<int>(threadIdx.x);
    if (kOrder == Order::any && operand_.piece != 16) return copy_pieces(to, first, k);
    if (k_first()) {
      constexpr int kStep = kThreads / kRowWords;  // rows
      const int word = t % kRowWords, row = t / kRowWords;
      const std::byte* from = data_ + row * operand_.mn_stride * kSize + first * kSize + word * 16;
      const int bytes = within((k - word * kInWord) * kSize);
      ROOFTILE_UNROLL for (int i = 0; i < kWords; ++i) {
        const int here = row + i * kStep < left_ ? bytes : 0;
        rooftile::cuda::cp_async_16(to + place_k(row, word) + i * kStep * kRow, from, here);
        from += kStep * operand_.mn_stride * kSize;
      }
    } else {
      constexpr int kAcross = kWide / 16, kStep = kThreads / kAcross;  // rows
      static_assert(kThreads % kAcross == 0);
      const int word = t % kAcross, row = t / kAcross;
      const std::byte* from = data_ + (first + row) * operand_.k_stride * kSize + word * 16;
      const int bytes = within((left_ - word * kInWord) * kSize);
      ROOFTILE_UNROLL for (int i = 0; i < kWords; ++i) {
        const int here = row + i * kStep < k ? bytes : 0;
        rooftile::cuda::cp_async_16(to + place_mn(row + i * kStep, word), from, here);
        from += kStep * operand_.k_stride * kSize;
      }
    }
  }

  /// Where this lane reads the fragments of A (kRows = 16 rows of it) or of B (two times 8 columns): `of` is
  /// the warp's first row or column.
  ROOFTILE_TILE int lane_place(int lane, int of, bool is_a) const {
    if (k_first()) {
      const int row = is_a ? lane % 16 : lane % 8 + lane / 16 * 8, word = is_a ? lane / 16 : lane / 8 % 2;
      return place_k(of + row, word);
    }
    if constexpr (kSize == 4) return place_mn(lane % 4, (of + lane / 4) / 4) + lane / 4 % 4 * 4;
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
    } else {
      rooftile::cuda::load_matrix<true>(registers, stage + (place ^ i * 32) + step * 16 * kWide);
    }
  }

 private:
  ROOFTILE_TILE static int within(int bytes) { return bytes < 0 ? 0 : bytes > 16 ? 16 : bytes; }
  ROOFTILE_TILE static unsigned word_at(const std::byte* from) {
    return *reinterpret_cast<const unsigned*>(from);
  }
  ROOFTILE_TILE static int place_k(int row, int word) {
    return row * kRow + (word ^ (kRowWords == 4 ? row / 2 % 4 : row % 8)) * 16;
  }
  ROOFTILE_TILE static int place_mn(int row, int word) {
    return row * kWide + (word ^ (kSize == 4 ? row % 4 * 2 : row % 8)) * 16;
  }

  /// Pieces of 4 or 8 bytes by cp.async; elements of 2 that lie anywhere one by one, through registers.
  ROOFTILE_TILE void copy_pieces(std::byte* to, std::int64_t first, int k) const {
    const int size = operand_.piece, in_piece = size / kSize;
    const bool along_k = operand_.k_first;
    const std::int64_t near = (along_k ? operand_.k_stride : operand_.mn_stride) * kSize;
    const std::int64_t far = (along_k ? operand_.mn_stride : operand_.k_stride) * kSize;
    const std::byte* from = data_ + first * operand_.k_stride * kSize;
    const int rows = along_k ? kExtent : kDepth, across = (along_k ? kDepth : kExtent) / in_piece;
    const int live_rows = along_k ? left_ : k, live = along_k ? k : left_;
    ROOFTILE_UNROLL_BY(1) for (int e = static_cast<int>(threadIdx.x); e < rows * across; e += kThreads) {
      const int row = e / across, column = e % across * in_piece, rest = live - column;
      const int byte = column * kSize, word = byte / 16;
      std::byte* const at = to + (along_k ? place_k(row, word) : place_mn(row, word)) + byte % 16;
      const std::byte* source = from + row * far + column * near;
      const int bytes = row >= live_rows || rest <= 0 ? 0 : rest < in_piece ? rest * kSize : size;
      if (size == 2) {
        *reinterpret_cast<std::uint16_t*>(at) =
            bytes != 0 ? *reinterpret_cast<const std::uint16_t*>(source) : std::uint16_t{0};
      } else if (size == 4) {
        rooftile::cuda::cp_async<4>(at, source, bytes);
      } else {
        rooftile::cuda::cp_async<8>(at, source, bytes);
      }
    }
  }

  const GpuOperand& operand_;
  const std::byte* data_;
  int left_;
};

template <class T, Order kOrderA, Order kOrderB, class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    gemm_mma(const __grid_constant__ GpuProduct p, const __grid_constant__ GpuTiles tiles,
             std::int64_t first_tile) {
  constexpr int kSteps = Shape::kRow / 32, kDepth = Shape::kRow / int(sizeof(T)), kStages = Shape::kStages;
  constexpr int kDown = Shape::kWarpM / 16, kAcross = Shape::kWarpN / 16;
  ROOFTILE_DYNAMIC_SHARED(ring);
  const GpuTile tile = tile_at(tiles, first_tile + blockIdx.x);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_row = warp / Shape::kAcross * Shape::kWarpM,
            warp_column = warp % Shape::kAcross * Shape::kWarpN;
  const std::int64_t first_i = tile.row * Shape::kM, first_j = tile.column * Shape::kN;

  const OperandTile<T, kOrderA, Shape::kM, Shape::kThreads, Shape::kRow> a(
      p.a, p.a.data + offset_of(p.batch, p.a_index, tile.matrix) * int(sizeof(T)), first_i, p.m);
  const OperandTile<T, kOrderB, Shape::kN, Shape::kThreads, Shape::kRow> b(
      p.b, p.b.data + offset_of(p.batch, p.b_index, tile.matrix) * int(sizeof(T)), first_j, p.n);
  const int a_place = a.lane_place(lane, warp_row, true);
  const int b_place = Shape::kM * Shape::kRow + b.lane_place(lane, warp_column, false);
  const int stages = static_cast<int>((p.k + kDepth - 1) / kDepth);

  int copied = 0;  // stages
  const auto copy = [&](int slot) {
    if (copied < stages) {
      const std::int64_t first = std::int64_t{copied} * kDepth;
      a.copy(ring + slot * Shape::kStage, first, p.k - first);
      b.copy(ring + slot * Shape::kStage + Shape::kM * Shape::kRow, first, p.k - first);
    }
    ++copied;
    rooftile::cuda::cp_async_commit();
  };
  unsigned left[2][kDown][4], right[2][kAcross][4];
  // Of a small tile, warps and rows of fragments without an element of y do nothing.
  const bool small = kOrderA == Order::any;
  const std::int64_t rows_left = p.m - first_i - warp_row;
  const bool idle = small && (rows_left <= 0 || first_j + warp_column >= p.n);
  const auto lives = [&](int i) { return !small || i * 16 < rows_left; };
  const auto load = [&](int to, int slot, int step) {
    if (idle) return;
    const std::byte* const stage = ring + slot * Shape::kStage;
    ROOFTILE_UNROLL for (int i = 0; i < kDown; ++i) {
      if (lives(i)) a.load(left[to][i], stage, a_place, i, step, true);
    }
    ROOFTILE_UNROLL for (int j = 0; j < kAcross; ++j) b.load(right[to][j], stage, b_place, j, step, false);
  };

  float sums[kDown][2 * kAcross][4] = {};
  ROOFTILE_UNROLL for (int s = 0; s < kStages - 1; ++s) copy(s);
  rooftile::cuda::cp_async_wait<kStages - 2>();
  __syncthreads();
  if (stages > 0) load(0, 0, 0);
  int slot = 0, free_slot = kStages - 1;
  ROOFTILE_UNROLL_BY(1) for (int s = 0; s < stages; ++s) {
    const int next_slot = slot + 1 == kStages ? 0 : slot + 1;
    ROOFTILE_UNROLL for (int step = 0; step < kSteps; ++step) {
      const bool last = step + 1 == kSteps;
      if (last) {  // the next stage is here for all, and all have read the one before this
        rooftile::cuda::cp_async_wait<kStages - 2>();
        __syncthreads();
      }
      if (!last || s + 1 < stages) load((step + 1) % 2, last ? next_slot : slot, last ? 0 : step + 1);
      if (step == 0) copy(free_slot);
      ROOFTILE_UNROLL for (int i = 0; i < kDown; ++i) {
        if (idle || !lives(i)) continue;
        ROOFTILE_UNROLL for (int j = 0; j < 2 * kAcross; ++j) {
          const unsigned(&columns)[4] = right[step % 2][j / 2];
          const unsigned pair[2] = {columns[j % 2 * 2], columns[j % 2 * 2 + 1]};
          multiply_add<T>(sums[i][j], left[step % 2][i], pair);
        }
      }
    }
    free_slot = slot;
    slot = next_slot;
  }
  rooftile::cuda::cp_async_wait<0>();
  __syncthreads();

  // 16 rows of a warp at a time through shared memory: from fragments to four neighbours in y.
  float* const part = reinterpret_cast<float*>(ring) + warp * 16 * Shape::kPitch;
  const std::int64_t y_first = offset_of(p.batch, 0, tile.matrix),
                     c_first = offset_of(p.batch, 3, tile.matrix);
  ROOFTILE_UNROLL_BY(1) for (int i = 0; i < kDown; ++i) {
    if (idle || !lives(i)) break;
    ROOFTILE_UNROLL for (int which = 0; which < kDown; ++which) {
      if (which != i) continue;  // which registers, the compiler must know
      ROOFTILE_UNROLL for (int j = 0; j < 2 * kAcross; ++j) {
        float* const at = part + lane / 4 * Shape::kPitch + j * 8 + lane % 4 * 2;
        const float(&d)[4] = sums[which][j];
        const float2 upper{d[0], d[1]}, lower{d[2], d[3]};
        *reinterpret_cast<float2*>(at) = upper;
        *reinterpret_cast<float2*>(at + 8 * Shape::kPitch) = lower;
      }
    }
    __syncwarp();
    constexpr int kFours = Shape::kWarpN / 4;  // in a row
    ROOFTILE_UNROLL_BY(1) for (int e = lane; e < 16 * kFours; e += 32) {
      const int row = e / kFours, column = e % kFours * 4;
      const std::int64_t at_i = first_i + warp_row + i * 16 + row, at_j = first_j + warp_column + column;
      const std::int64_t rest = p.n - at_j;
      const float4 four = *reinterpret_cast<const float4*>(part + row * Shape::kPitch + column);
      if (at_i < p.m && rest > 0)
        finish(p.epilogue, y_first, c_first, at_i, at_j, rest < 4 ? int(rest) : 4,
               Four{{four.x, four.y, four.z, four.w}});
    }
    __syncwarp();
  }
}

/// Large tiles for what is whole 16-byte words and fills them; small ones for all else.
using LargeTile = MmaShape<128, 256, 64, 64, 4, 1>;
using SmallTile = MmaShape<64, 64, 32, 32, 4, 3>;

template <class T>
Status launch_mma(const CudaLaunch& launch, const GemmProblem& problem) {
  if (problem.empty()) return {};
  const GpuProduct p = product_of(problem, int(sizeof(T)));
  const auto run = [&]<Order kA, Order kB, class Shape>() {
    return launch_tiles(launch, p, Shape::kM, Shape::kN, Shape::kThreads, Shape::kShared,
                        gemm_mma<T, kA, kB, Shape>);
  };
  // Large tiles where they fill half the multiprocessors, and are filled. Which one it is changes no bit.
  const bool large = p.m > SmallTile::kM && p.n > LargeTile::kN / 2 &&
                     2 * GpuTiles(p, LargeTile::kM, LargeTile::kN).count >= launch.multiprocessors;
  if (!large || p.a.piece != 16 || p.b.piece != 16)
    return run.template operator()<Order::any, Order::any, SmallTile>();
  constexpr Order k = Order::k_first, mn = Order::mn_first;
  if (p.a.k_first)
    return p.b.k_first ? run.template operator()<k, k, LargeTile>()
                       : run.template operator()<k, mn, LargeTile>();
  return p.b.k_first ? run.template operator()<mn, k, LargeTile>()
                     : run.template operator()<mn, mn, LargeTile>();
}

}  // namespace rooftile::gemm_gpu
