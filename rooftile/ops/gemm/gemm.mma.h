#pragma once
// A product by mma.sync: f16, bf16, tf32, i8. Tiles of A and B, 64 or 128 bytes of K, come by cp.async into
// the ring of gemm.mma_loop.h; a warp's fragments come from there by ldmatrix, the next ones while this step
// is multiplied.
#include "rooftile/ops/gemm/gemm.gpu.h"
#include "rooftile/ops/gemm/gemm.mma_loop.h"

namespace rooftile::gemm_gpu {

/// One operand's part of a stage, copied from a matrix; where the order is any, in pieces of any size.
template <class T, Order kOrder, int kExtent, int kThreads, int kRow>
class OperandTile : public StageLayout<T, kOrder, kExtent, kRow> {
  using Layout = StageLayout<T, kOrder, kExtent, kRow>;
  using Layout::kDepth, Layout::kInWord, Layout::kRowWords, Layout::kSize, Layout::kWide, Layout::place_k,
      Layout::place_mn;
  static constexpr int kWords = kExtent * kRow / 16 / kThreads;  // of a thread
  static_assert(kExtent * kRow % (16 * kThreads) == 0);

 public:
  using Layout::k_first;
  ROOFTILE_TILE OperandTile(const GpuOperand& o, const std::byte* matrix, std::int64_t first,
                            std::int64_t extent)
      : Layout(o.k_first),
        operand_(o),
        data_(matrix),
        left_(extent - first < kExtent ? int(extent - first) : kExtent) {
    data_ += first * o.mn_stride * kSize;
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

 private:
  ROOFTILE_TILE static int within(int bytes) { return bytes < 0 ? 0 : bytes > 16 ? 16 : bytes; }

  /// Pieces of 4 or 8 bytes by cp.async; smaller elements that lie anywhere one by one, through registers.
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
      if (kSize < 4 && size == kSize) {
        using Element = std::conditional_t<kSize == 1, std::uint8_t, std::uint16_t>;
        *reinterpret_cast<Element*>(at) = bytes != 0 ? *reinterpret_cast<const Element*>(source) : Element{0};
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

/// Small tiles, which may have few rows.
struct FewRows {
  std::int64_t rows_left;
  bool without_columns;
  ROOFTILE_TILE bool idle() const { return rows_left <= 0 || without_columns; }
  ROOFTILE_TILE bool lives(int i) const { return i * 16 < rows_left; }
};

/// A tile of y from its operands, each of which copies its own part of a stage.
template <class T, class Shape, class A, class B, class Live>
ROOFTILE_TILE void multiply_operands(const GpuProduct& p, const GpuTile& tile, std::byte* ring, A& a, B& b,
                                     Live live) {
  constexpr int kDepth = Shape::kRow / int(sizeof(T));
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
  using Sum = MmaSum<T>;
  Sum sums[Shape::kWarpM / 16][Shape::kWarpN / 8][4] = {};
  multiply_stages<T, Shape>(sums, ring, a, b, stages, live, copy);

  const std::int64_t first_i = tile.row * Shape::kM, first_j = tile.column * Shape::kN,
                     y_first = offset_of(p.batch, 0, tile.matrix),
                     c_first = offset_of(p.batch, 3, tile.matrix);
  const auto finish_four = [&](int row, int column, const Tile<Sum, 4>& four) {
    const std::int64_t at_i = first_i + row, at_j = first_j + column, rest = p.n - at_j;
    if (at_i < p.m && rest > 0)
      finish(p.epilogue, y_first, c_first, at_i, at_j, rest < 4 ? int(rest) : 4, four);
  };
  finish_fragments<Shape>(sums, ring, live, finish_four, FragmentPlace{a.by_parity(), b.by_parity()});
}

template <class T, Order kOrderA, Order kOrderB, class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    gemm_mma(const __grid_constant__ GpuProduct p, const __grid_constant__ GpuTiles tiles,
             std::int64_t first_tile) {
  ROOFTILE_DYNAMIC_SHARED(ring);
  const GpuTile tile = tile_at(tiles, first_tile + blockIdx.x);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t first_i = tile.row * Shape::kM, first_j = tile.column * Shape::kN;
  const OperandTile<T, kOrderA, Shape::kM, Shape::kThreads, Shape::kRow> a(
      p.a, p.a.data + offset_of(p.batch, p.a_index, tile.matrix) * int(sizeof(T)), first_i, p.m);
  const OperandTile<T, kOrderB, Shape::kN, Shape::kThreads, Shape::kRow> b(
      p.b, p.b.data + offset_of(p.batch, p.b_index, tile.matrix) * int(sizeof(T)), first_j, p.n);
  using Live = std::conditional_t<kOrderA == Order::any, FewRows, AllRows>;
  Live live{};
  if constexpr (kOrderA == Order::any)
    live = {p.m - first_i - Shape::row_of(warp), first_j + Shape::column_of(warp) >= p.n};
  multiply_operands<T, Shape>(p, tile, ring, a, b, live);
}

/// Large tiles for what is whole 16-byte words and fills them; small ones for all else.
/// Two blocks of an SM cover each other's waits: 128 by 256 in one took 0.445 ms where these take 0.382 (bf16
/// 4096³, H200; 8192³ 3.13, 2.72).
using LargeTile = MmaShape<128, 128, 64, 64, 4, 2>;
using SmallTile = MmaShape<64, 64, 32, 32, 4, 3>;

template <class T>
Status launch_mma(const CudaLaunch& launch, const GemmProblem& problem) {
  if (problem.empty()) return {};
  const GpuProduct p = product_of(problem, int(sizeof(T)));
  const auto run = [&]<Order kA, Order kB, class Shape>() {
    return launch_tiles(launch, "gemm", p, Shape::kM, Shape::kN, Shape::kThreads, Shape::kShared,
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
