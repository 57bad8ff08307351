// Codes by Hopper's tensor cores.
#include "rooftile/ops/gemm_scaled/gemm_scaled.hopper.h"

#include "rooftile/ops/gemm/gemm.hopper_maps.h"

namespace rooftile::scaled_gpu {
namespace {
template <class T, bool kMany>
Status launch_codes(const CudaLaunch& launch, const GpuProduct& p, const GpuScales& scales) {
  using Tile = HopperTile<T, 128>;
  const GpuTiles single(p, Tile::kM, Tile::kN);
  // As gemm's: two blocks that share B pay where there are several waves.
  const int cluster = single.count > launch.multiprocessors && launch.multiprocessors > 1 ? 2 : 1;
  const HopperRun run{cluster, static_cast<int>((p.k + Tile::kK - 1) / Tile::kK), false};
  rooftile::cuda::TensorMap a{}, b{};
  Status s = gemm_gpu::map_of(a, 1, p.a, p.m, p.k, p.batch, p.a_index, Tile::kM, Tile::kK);
  if (s) s = gemm_gpu::map_of(b, 1, p.b, p.n, p.k, p.batch, p.b_index, Tile::kN / cluster, Tile::kK);
  if (!s) return s;
  const GpuTiles tiles(p, Tile::kM * cluster, Tile::kN);
  const std::int64_t most = launch.multiprocessors / cluster;
  const auto clusters = static_cast<unsigned>(tiles.count < most ? tiles.count : most);
  const auto size = static_cast<unsigned>(cluster);
  return rooftile::cuda::launch(launch, "gemm_scaled",
                                {clusters * size, Tile::kThreads, sizeof(typename Tile::Shared), size},
                                gemm_scaled_hopper<T, Tile, kMany>, a, b, p, scales, tiles, run);
}

template <class T>
Status launch_blocks(const CudaLaunch& launch, const GemmScaledProblem& problem) {
  if (problem.product.empty()) return {};
  const GpuProduct p = product_of(problem);
  const GpuScales scales = scales_of(problem);
  return problem.blocks() > 1 ? launch_codes<T, true>(launch, p, scales)
                              : launch_codes<T, false>(launch, p, scales);
}
}  // namespace

Status launch_hopper_i8(const CudaLaunch& launch, const GemmScaledProblem& p) {
  // Where tiles are few, mma's small ones fill more multiprocessors; they have the same bits.
  using Tile = HopperTile<std::int8_t, 128>;
  if (2 * GpuTiles(product_of(p), Tile::kM, Tile::kN).count < launch.multiprocessors)
    return p.product.empty() ? Status{} : launch_mma_i8(launch, p);
  return launch_blocks<std::int8_t>(launch, p);
}
Status launch_hopper_f8(const CudaLaunch& launch, const GemmScaledProblem& p) {
  return launch_blocks<f8e4m3>(launch, p);  // of either format
}
}  // namespace rooftile::scaled_gpu
