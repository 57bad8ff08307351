// Codes by Hopper's tensor cores.
#include "rooftile/ops/gemm_scaled/gemm_scaled.hopper_launch.h"

namespace rooftile::scaled_gpu {

Status launch_hopper_i8(const CudaLaunch& launch, const GemmScaledProblem& p) {
  if (p.product.empty()) return {};
  // Where tiles are few, mma's small ones fill more multiprocessors; they have the same bits.
  using Tile = PlainTile<std::int8_t>;
  if (2 * GpuTiles(product_of(p), Tile::kM, Tile::kN).count < launch.multiprocessors)
    return launch_mma_i8(launch, p);
  return launch_blocks<std::int8_t>(launch, product_of(p), scales_of(p), p.blocks());
}
Status launch_hopper_f8(const CudaLaunch& launch, const GemmScaledProblem& p) {
  if (p.product.empty()) return {};
  return launch_blocks<f8e4m3>(launch, product_of(p), scales_of(p), p.blocks());  // of either format
}
}  // namespace rooftile::scaled_gpu
