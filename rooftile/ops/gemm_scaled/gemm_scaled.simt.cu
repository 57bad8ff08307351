// A product of codes by gemm's main loop without matrix instructions. Of f8 a thread turns four codes of each
// operand into floats per stage, which it asked for a stage earlier; i8 is multiplied as it is, four products
// at once. After a block's last stage its sums are scaled into the totals.
#include "rooftile/ops/gemm/gemm.simt.h"
#include "rooftile/ops/gemm_scaled/gemm_scaled.gpu.h"

namespace rooftile::scaled_gpu {
namespace {

/// An operand's part of a stage, turned: Shape::kDepth steps of K of Shape::kSide rows or columns.
template <class Shape>
class TurnedCodes {
  static constexpr int kCodes = 4;
  static_assert(Shape::kThreads == Shape::kSide * Shape::kDepth / kCodes);

 public:
  using Stage = StageOfK<Shape::kDepth>;
  ROOFTILE_TILE TurnedCodes(const GpuOperand& o, const std::byte* matrix, std::int64_t first,
                            std::int64_t extent, const bool& large, const Stage& stage)
      : operand_(o),
        data_(reinterpret_cast<const std::uint8_t*>(matrix) + first * o.mn_stride),
        rows_(extent - first < Shape::kSide ? int(extent - first) : Shape::kSide),
        large_(large) {
    const int t = static_cast<int>(threadIdx.x);
    // A thread's four are neighbours in memory, where any are.
    row_ = o.k_first ? t / 4 : t % 16 * kCodes;
    step_ = o.k_first ? t % 4 * kCodes : t / 16;
    fetch(stage);
  }
  ROOFTILE_TILE void copy(float* to, Stage stage) {
    Tile<float, kCodes> numbers;
    ROOFTILE_UNROLL for (int i = 0; i < kCodes; i += 2) {
      const unsigned halves = halves_of(held_ >> 8 * i, large_);
      numbers.v[i] = __half2float(__ushort_as_half(static_cast<unsigned short>(halves)));
      numbers.v[i + 1] = __half2float(__ushort_as_half(static_cast<unsigned short>(halves >> 16)));
    }
    float* const at = to + step_ * Shape::kPitch + row_;
    if (operand_.k_first) {
      ROOFTILE_UNROLL for (int i = 0; i < kCodes; ++i) at[i * Shape::kPitch] = numbers.v[i];
    } else {
      const float4 four{numbers.v[0], numbers.v[1], numbers.v[2], numbers.v[3]};
      *reinterpret_cast<float4*>(at) = four;
    }
    stage.advance();
    fetch(stage);
  }

 private:
  /// Zeros past the ends.
  ROOFTILE_TILE void fetch(const Stage& stage) {
    const int depth = stage.left() < Shape::kDepth ? int(stage.left()) : Shape::kDepth;
    const bool along_k = operand_.k_first;
    int live = along_k ? depth - step_ : rows_ - row_;
    if (along_k ? row_ >= rows_ : step_ >= depth) live = 0;
    const std::uint8_t* const from =
        data_ + row_ * operand_.mn_stride + (stage.first() + step_) * operand_.k_stride;
    held_ = 0;
    if (operand_.piece >= kCodes && live >= kCodes) {
      held_ = *reinterpret_cast<const unsigned*>(from);
      return;
    }
    const std::int64_t stride = along_k ? operand_.k_stride : operand_.mn_stride;
    ROOFTILE_UNROLL for (int i = 0; i < kCodes; ++i) {
      if (i < live) held_ |= static_cast<unsigned>(from[i * stride]) << 8 * i;
    }
  }

  const GpuOperand& operand_;
  const std::uint8_t* data_;
  int rows_, row_, step_;
  const bool& large_;
  unsigned held_ = 0;
};

/// The same of i8.
template <class Shape>
class TurnedIntegers : gemm_gpu::TurnedTile<std::int8_t, Shape> {
 public:
  using Stage = StageOfK<Shape::kDepth * gemm_gpu::Step<std::int8_t>::kElements>;
  ROOFTILE_TILE TurnedIntegers(const GpuOperand& o, const std::byte* matrix, std::int64_t first,
                               std::int64_t extent, const bool&, const Stage&)
      : gemm_gpu::TurnedTile<std::int8_t, Shape>(o, matrix, first, extent) {}
  ROOFTILE_TILE void copy(int* to, const Stage& stage) const {
    gemm_gpu::TurnedTile<std::int8_t, Shape>::copy(to, stage.first(), stage.left());
  }
};

template <class T>
using Operand = std::conditional_t<std::is_same_v<T, float>, TurnedCodes<gemm_gpu::SimtShape<float, 2>>,
                                   TurnedIntegers<gemm_gpu::SimtShape<std::int8_t, 2>>>;

template <class T>
__global__ void __launch_bounds__(256, 2)
    gemm_scaled_simt(const __grid_constant__ GpuProduct p, const __grid_constant__ GpuScales scales,
                     const __grid_constant__ GpuTiles tiles, std::int64_t first_tile) {
  using Shape = gemm_gpu::SimtShape<T, 2>;
  using Word = typename Shape::Word;
  ROOFTILE_DYNAMIC_SHARED(ring);
  const GpuTile tile = tile_at(tiles, first_tile + blockIdx.x);
  const std::int64_t first_i = tile.row * Shape::kSide, first_j = tile.column * Shape::kSide;
  typename Operand<T>::Stage copied(p.k, scales.block), multiplied = copied;
  Operand<T> a(p.a, p.a.data + offset_of(p.batch, p.a_index, tile.matrix), first_i, p.m, scales.a_large,
               copied);
  Operand<T> b(p.b, p.b.data + offset_of(p.batch, p.b_index, tile.matrix), first_j, p.n, scales.b_large,
               copied);
  const auto copy = [&](int slot) {
    if (copied.exists()) {
      std::byte* const stage = ring + slot * Shape::kStage;
      a.copy(reinterpret_cast<Word*>(stage), copied);
      b.copy(reinterpret_cast<Word*>(stage + Shape::kPart), copied);
      copied.advance();
    }
    rooftile::cuda::cp_async_commit();
  };

  typename gemm_gpu::Step<T>::Sum sums[4][4] = {};
  float totals[4][4] = {};
  const gemm_gpu::TurnedPlace place;
  const auto promote = [&] {
    if (multiplied.is_last()) {
      const std::int64_t rows_left = p.m - first_i - place.row;
      const float* const of_a =
          scales.of_row(tile.matrix, first_i + place.row) + multiplied.block() * scales.a_block;
      float of_rows[4];
      ROOFTILE_UNROLL for (int i = 0; i < 4; ++i) of_rows[i] = i < rows_left ? of_a[i * scales.a_row] : 0;
      ROOFTILE_UNROLL for (int j = 0; j < 4; ++j) {
        const std::int64_t column = first_j + place.column + j;
        const float of_column =
            column < p.n ? scales.of_column(tile.matrix, column)[multiplied.block() * scales.b_block] : 0;
        ROOFTILE_UNROLL for (int i = 0; i < 4; ++i) {
          totals[i][j] = __fmaf_rn(static_cast<float>(sums[i][j]), of_rows[i] * of_column, totals[i][j]);
          sums[i][j] = 0;
        }
      }
    }
    multiplied.advance();
  };
  gemm_gpu::multiply_turned_stages<T, Shape>(sums, ring, Operand<T>::Stage::count(p.k, scales.block), copy,
                                             promote);
  gemm_gpu::finish_turned<Shape>(p, tile, totals);
}

template <class T>
Status launch_type(const CudaLaunch& launch, const GemmScaledProblem& p) {
  using Shape = gemm_gpu::SimtShape<T, 2>;
  return gemm_gpu::launch_tiles(launch, "gemm_scaled", product_of(p), Shape::kSide, Shape::kSide,
                                Shape::kThreads, Shape::kShared, gemm_scaled_simt<T>, scales_of(p));
}
}  // namespace

Status launch_simt(const CudaLaunch& launch, const GemmScaledProblem& p) {
  if (p.product.empty()) return {};
  return p.integers() ? launch_type<std::int8_t>(launch, p) : launch_type<float>(launch, p);
}

}  // namespace rooftile::scaled_gpu
