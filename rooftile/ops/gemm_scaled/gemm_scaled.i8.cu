// i8's codes on tensor cores, in i32.
#include "rooftile/ops/gemm_scaled/gemm_scaled.mma.h"

namespace rooftile::scaled_gpu {

/// Copied as they are.
template <Order kOrder, int kExtent, class Shape>
class CodeTile<std::int8_t, kOrder, kExtent, Shape>
    : public gemm_gpu::OperandTile<std::int8_t, kOrder, kExtent, Shape::kThreads, Shape::kRow> {
  using Base = gemm_gpu::OperandTile<std::int8_t, kOrder, kExtent, Shape::kThreads, Shape::kRow>;

 public:
  ROOFTILE_TILE CodeTile(const GpuOperand& o, const std::byte* matrix, std::int64_t first,
                         std::int64_t extent, const bool&, const Stage<std::int8_t, Shape>&)
      : Base(o, matrix, first, extent) {}
  ROOFTILE_TILE void copy(std::byte* to, const Stage<std::int8_t, Shape>& stage) const {
    Base::copy(to, stage.first(), stage.left());
  }
};

/// As f8's; a stage has twice the codes.
using LargeTile = MmaShape<128, 128, 64, 32, 4, 1>;
using LargeTileOfOne = MmaShape<128, 256, 64, 64, 4, 1>;
using SmallTile = MmaShape<64, 64, 32, 32, 3, 2, 128>;

Status launch_mma_i8(const CudaLaunch& launch, const GemmScaledProblem& p) {
  return launch_codes<std::int8_t, LargeTile, LargeTileOfOne, SmallTile>(launch, p, true);
}

}  // namespace rooftile::scaled_gpu
