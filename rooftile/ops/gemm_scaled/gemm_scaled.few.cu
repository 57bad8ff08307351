// Few rows of a, whose limit is reading b's codes. They come into a ring of stages as they are; lanes read
// them as words of four and multiply b as the left operand. Which four of K a lane has is one for both
// operands, and within an instruction's 16 or 32 of K their order changes no bit: it is mma's.
#include "rooftile/ops/gemm/gemm.mma_loop.h"
#include "rooftile/ops/gemm_scaled/gemm_scaled.gpu.h"

namespace rooftile::scaled_gpu {
namespace {

/// kN columns of b, 16 to a warp; up to kM rows of a; kDepth of K in a stage.
struct FewShape {
  static constexpr int kM = GemmScaledProblem::kFewRows, kN = 32, kThreads = kN * 2, kStages = 8;
  static constexpr int kDepth = 128, kWords = kDepth / 16;  // bytes and 16-byte vectors of a row
  static constexpr int kStage = (kM + kN) * kDepth, kShared = kStages * kStage;
  static constexpr int kPitch = 20;  // floats; of y's part
  static_assert(kN / 16 * kM * kPitch * 4 <= kShared);

  /// Eight rows' words of one vector are in all banks.
  ROOFTILE_TILE static int place(int row, int vector) { return row * kDepth + (vector ^ row % 8) * 16; }
};

/// One operand's part of a stage, kRows of M or N; zeros past the ends.
template <int kRows>
class FewRowsOfK {
 public:
  ROOFTILE_TILE FewRowsOfK(const GpuOperand& o, const std::byte* matrix, std::int64_t first,
                           std::int64_t extent)
      : step_(kAcross * o.mn_stride),
        data_(matrix + (first + row()) * o.mn_stride + vector() * 16),
        left_(extent - first < kRows ? int(extent - first) : kRows) {}
  ROOFTILE_TILE void copy(std::byte* to, const StageOfK<FewShape::kDepth>& stage) const {
    const std::int64_t rest = stage.left() - vector() * 16;
    const int bytes = rest < 0 ? 0 : rest > 16 ? 16 : int(rest);
    const std::byte* from = data_ + stage.first();
    ROOFTILE_UNROLL for (int i = 0; i < kRows / kAcross; ++i) {
      const int at = row() + i * kAcross;
      rooftile::cuda::cp_async_16(to + FewShape::place(at, vector()), from, at < left_ ? bytes : 0);
      from += step_;
    }
  }

 private:
  static constexpr int kAcross = FewShape::kThreads / FewShape::kWords;  // rows at once
  ROOFTILE_TILE static int row() { return static_cast<int>(threadIdx.x) / FewShape::kWords; }
  ROOFTILE_TILE static int vector() { return static_cast<int>(threadIdx.x) % FewShape::kWords; }
  std::int64_t step_;
  const std::byte* data_;
  int left_;
};

/// This lane's four codes of vector `vector` of a row.
ROOFTILE_TILE unsigned four_codes(const std::byte* rows, int row, int vector) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  return *reinterpret_cast<const unsigned*>(rows + FewShape::place(row, vector) + lane % 4 * 4);
}

/// sums += b · a for a warp's 16 columns of y and its rows, eight in each of the fragments that live.
template <class T, class Sum>
ROOFTILE_TILE void multiply_stage(Sum (&sums)[2][4], const std::byte* a, const std::byte* b, int m,
                                  const GpuScales& scales) {
  constexpr int kVectors = std::is_same_v<T, f16> ? 1 : 2;  // of K in an instruction
  const int row = static_cast<int>(threadIdx.x) % 32 / 4;
  ROOFTILE_UNROLL for (int v = 0; v < FewShape::kWords; v += kVectors) {
    unsigned left[4];
    if constexpr (kVectors == 1) {
      const unsigned upper = four_codes(b, row, v), lower = four_codes(b, row + 8, v);
      left[0] = halves_of(upper, scales.b_large), left[2] = halves_of(upper >> 16, scales.b_large);
      left[1] = halves_of(lower, scales.b_large), left[3] = halves_of(lower >> 16, scales.b_large);
    } else {
      left[0] = four_codes(b, row, v), left[2] = four_codes(b, row, v + 1);
      left[1] = four_codes(b, row + 8, v), left[3] = four_codes(b, row + 8, v + 1);
    }
    ROOFTILE_UNROLL for (int i = 0; i < 2; ++i) {
      if (i * 8 >= m) break;
      unsigned right[2];
      if constexpr (kVectors == 1) {
        const unsigned codes = four_codes(a, i * 8 + row, v);
        right[0] = halves_of(codes, scales.a_large), right[1] = halves_of(codes >> 16, scales.a_large);
      } else {
        right[0] = four_codes(a, i * 8 + row, v), right[1] = four_codes(a, i * 8 + row, v + 1);
      }
      gemm_gpu::multiply_add<T>(sums[i], left, right);
    }
  }
}

/// The scales of a lane's elements: of two columns of y, and of four rows.
struct FewScales {
  const float *of_a[4], *of_b[2];
  float a[4], b[2];

  ROOFTILE_TILE FewScales(const GpuProduct& p, const GpuScales& scales, std::int64_t matrix,
                          std::int64_t first) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    ROOFTILE_UNROLL for (int i = 0; i < 4; ++i) {
      const std::int64_t row = i / 2 * 8 + lane % 4 * 2 + i % 2;
      of_a[i] = scales.of_row(matrix, row < p.m ? row : p.m - 1);
    }
    ROOFTILE_UNROLL for (int i = 0; i < 2; ++i) {
      const std::int64_t column = first + lane / 4 + i * 8;
      of_b[i] = scales.of_column(matrix, column < p.n ? column : p.n - 1);
    }
  }
  ROOFTILE_TILE void load(const GpuScales& scales, int block) {
    ROOFTILE_UNROLL for (int i = 0; i < 4; ++i) a[i] = of_a[i][block * scales.a_block];
    ROOFTILE_UNROLL for (int i = 0; i < 2; ++i) b[i] = of_b[i][block * scales.b_block];
  }
};

template <class T>
__global__ void __launch_bounds__(FewShape::kThreads)
    gemm_scaled_few(const __grid_constant__ GpuProduct p, const __grid_constant__ GpuScales scales,
                    const __grid_constant__ GpuTiles tiles, std::int64_t first_tile) {
  using Shape = FewShape;
  ROOFTILE_DYNAMIC_SHARED(ring);
  const GpuTile tile = tile_at(tiles, first_tile + blockIdx.x);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int m = static_cast<int>(p.m);
  const std::int64_t first = tile.column * Shape::kN, of_warp = first + warp * 16;
  const FewRowsOfK<Shape::kM> a(p.a, p.a.data + offset_of(p.batch, p.a_index, tile.matrix), 0, p.m);
  const FewRowsOfK<Shape::kN> b(p.b, p.b.data + offset_of(p.batch, p.b_index, tile.matrix), first, p.n);
  StageOfK<Shape::kDepth> copied(p.k, scales.block), multiplied = copied;
  const auto copy = [&](int slot) {
    if (copied.exists()) {
      a.copy(ring + slot * Shape::kStage, copied);
      b.copy(ring + slot * Shape::kStage + Shape::kM * Shape::kDepth, copied);
      copied.advance();
    }
    rooftile::cuda::cp_async_commit();
  };

  ROOFTILE_UNROLL_BY(1) for (int s = 0; s < Shape::kStages - 1; ++s) copy(s);
  FewScales its(p, scales, tile.matrix, of_warp);
  if (multiplied.exists()) its.load(scales, 0);
  gemm_gpu::MmaSum<T> sums[2][4] = {};
  float totals[2][4] = {};
  int slot = 0;
  ROOFTILE_UNROLL_BY(1) while (multiplied.exists()) {
    rooftile::cuda::cp_async_wait<Shape::kStages - 2>();
    __syncthreads();  // the stage is here for all, and all have read the one before
    copy(slot == 0 ? Shape::kStages - 1 : slot - 1);
    const std::byte* const stage = ring + slot * Shape::kStage;
    multiply_stage<T>(sums, stage, stage + (Shape::kM + warp * 16) * Shape::kDepth, m, scales);
    const bool last = multiplied.is_last();
    multiplied.advance();
    slot = slot + 1 == Shape::kStages ? 0 : slot + 1;
    if (!last) continue;
    ROOFTILE_UNROLL for (int i = 0; i < 2; ++i) {
      ROOFTILE_UNROLL for (int d = 0; d < 4; ++d) {
        totals[i][d] =
            __fmaf_rn(static_cast<float>(sums[i][d]), its.a[i * 2 + d % 2] * its.b[d / 2], totals[i][d]);
        sums[i][d] = 0;
      }
    }
    if (multiplied.exists()) its.load(scales, multiplied.block());  // while this block is multiplied
  }
  rooftile::cuda::cp_async_wait<0>();
  __syncthreads();

  // Through shared memory: from fragments, whose rows are y's columns, to four neighbours in y.
  float* const part = reinterpret_cast<float*>(ring) + warp * Shape::kM * Shape::kPitch;
  ROOFTILE_UNROLL for (int e = 0; e < 8; ++e) {
    const int row = e / 4 * 8 + lane % 4 * 2 + e % 2, column = lane / 4 + e / 2 % 2 * 8;
    part[row * Shape::kPitch + column] = totals[e / 4][e % 4];
  }
  __syncwarp();
  ROOFTILE_UNROLL_BY(1) for (int e = lane; e < m * 4; e += 32) {
    const int row = e / 4, column = e % 4 * 4;
    const std::int64_t at = of_warp + column, rest = p.n - at;
    const float4 four = *reinterpret_cast<const float4*>(part + row * Shape::kPitch + column);
    if (rest > 0)
      finish(p.epilogue, offset_of(p.batch, 0, tile.matrix), 0, row, at, rest < 4 ? int(rest) : 4,
             gemm_gpu::Four{{four.x, four.y, four.z, four.w}});
  }
}
}  // namespace

Status launch_few(const CudaLaunch& launch, const GemmScaledProblem& p) {
  if (p.product.empty()) return {};
  const auto run = [&](auto kernel) {
    return gemm_gpu::launch_tiles(launch, "gemm_scaled", product_of(p), FewShape::kM, FewShape::kN,
                                  FewShape::kThreads, FewShape::kShared, kernel, scales_of(p));
  };
  return p.integers() ? run(gemm_scaled_few<std::int8_t>) : run(gemm_scaled_few<f16>);
}

}  // namespace rooftile::scaled_gpu
