#pragma once
// What gemm_scaled's kernels get; codes as halves, which hold every one of them exactly; and how K is cut.
#include "rooftile/backend/cuda/f8.h"
#include "rooftile/ops/gemm/gemm.gpu.h"
#include "rooftile/ops/gemm_scaled/gemm_scaled.problem.h"

namespace rooftile::scaled_gpu {
using namespace rooftile::tile;
using gemm_gpu::GpuOperand;
using gemm_gpu::GpuProduct;
using gemm_gpu::GpuTile;
using gemm_gpu::GpuTiles;

struct GpuScales {
  const float *a, *b;
  std::int64_t a_row, a_block, b_block, b_column, block_n;
  Rows<2> batch;
  std::int64_t block;     ///< of K
  bool a_large, b_large;  ///< codes are f8e5m2

  ROOFTILE_TILE const float* of_row(std::int64_t matrix, std::int64_t i) const {
    return a + offset_of(batch, 0, matrix) + i * a_row;
  }
  ROOFTILE_TILE const float* of_column(std::int64_t matrix, std::int64_t j) const {
    return b + offset_of(batch, 1, matrix) + gemm_gpu::quotient(j, block_n) * b_column;
  }
};
inline GpuScales scales_of(const GemmScaledProblem& p) {
  return {p.scale_a,
          p.scale_b,
          p.a_row,
          p.a_block,
          p.b_block,
          p.b_column,
          p.block_n,
          p.scales,
          p.block,
          p.product.type == DType::f8e5m2,
          p.b_type == DType::f8e5m2};
}

/// As gemm's; no operands change places. What is copied at once is aligned wherever a block begins.
inline GpuProduct product_of(const GemmScaledProblem& p) {
  GpuOperand a = gemm_gpu::a_of(p.product, 1), b = gemm_gpu::b_of(p.product, 1);
  for (GpuOperand* o : {&a, &b}) {
    while (o->k_first && p.blocks() > 1 && p.block % o->piece != 0) o->piece /= 2;
    if (o->piece < 4) o->piece = 1;  // nothing copies two at once
  }
  return gemm_gpu::product_in_order(p.product, a, b);
}

/// K in stages of kDepth elements, of which none has two blocks' elements.
template <int kDepth>
class StageOfK {
 public:
  /// Both are a kernel's parameters, and take no registers.
  ROOFTILE_TILE StageOfK(const std::int64_t& k, const std::int64_t& block) : k_(k), size_(block) {}
  ROOFTILE_TILE bool exists() const { return first_ < k_; }
  ROOFTILE_TILE std::int64_t first() const { return first_; }
  ROOFTILE_TILE std::int64_t left() const { return end() - first_; }  ///< to the block's end
  ROOFTILE_TILE bool is_last() const { return left() <= kDepth; }     ///< of its block
  ROOFTILE_TILE int block() const { return block_; }
  ROOFTILE_TILE void advance() {
    const bool last = is_last();
    first_ = last ? end() : first_ + kDepth;
    block_ += last;
  }
  ROOFTILE_TILE static int count(std::int64_t k, std::int64_t block) {
    const std::int64_t whole = gemm_gpu::quotient(k, block), rest = k - whole * block;
    return static_cast<int>(whole * ((block + kDepth - 1) / kDepth) + (rest + kDepth - 1) / kDepth);
  }

 private:
  ROOFTILE_TILE std::int64_t end() const {
    const std::int64_t its = (block_ + std::int64_t{1}) * size_;
    return its < k_ ? its : k_;
  }
  const std::int64_t &k_, &size_;
  std::int64_t first_ = 0;
  int block_ = 0;
};

ROOFTILE_TILE float float_of(unsigned code, bool large) {
  const unsigned size = code & 0x7F, bits = size << (large ? 21 : 20);
  // One product corrects the exponent, and makes subnormal ones normal.
  const float number = __uint_as_float(bits) * (large ? 0x1p112f : 0x1p120f);
  const unsigned magnitude = size >= (large ? 0x7C : 0x7F) ? bits | 0x7F800000 : __float_as_uint(number);
  return __uint_as_float(magnitude | (code & 0x80) << 24);
}
/// Two codes of f8 in the lower 16 bits, as halves.
ROOFTILE_TILE unsigned halves_of(unsigned pair, bool large) {
  if (large) return (pair & 0xFF) << 8 | (pair & 0xFF00) << 16;  // the upper bytes of halves
#if defined(ROOFTILE_HAS_F8_CODES)
  return rooftile::cuda::halves_of_f8e4m3(static_cast<std::uint16_t>(pair));
#else
  const unsigned low = __half_as_ushort(__float2half_rn(float_of(pair, false))),
                 high = __half_as_ushort(__float2half_rn(float_of(pair >> 8, false)));
  return low | high << 16;
#endif
}

Status launch_hopper_i8(const CudaLaunch&, const GemmScaledProblem&);      // gemm_scaled.hopper.cu
Status launch_hopper_f8(const CudaLaunch&, const GemmScaledProblem&);      // the same file
Status launch_hopper_halves(const CudaLaunch&, const GemmScaledProblem&);  // gemm_scaled.halves.cu
Status launch_few(const CudaLaunch&, const GemmScaledProblem&);            // gemm_scaled.few.cu
Status launch_mma_f8(const CudaLaunch&, const GemmScaledProblem&);         // gemm_scaled.mma.cu
Status launch_mma_i8(const CudaLaunch&, const GemmScaledProblem&);         // gemm_scaled.i8.cu
Status launch_simt(const CudaLaunch&, const GemmScaledProblem&);           // gemm_scaled.simt.cu

}  // namespace rooftile::scaled_gpu
