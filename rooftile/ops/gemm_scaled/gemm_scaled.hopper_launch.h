#pragma once
// Launches of gemm_scaled.hopper.h.
#include "rooftile/ops/gemm/gemm.hopper_maps.h"
#include "rooftile/ops/gemm_scaled/gemm_scaled.hopper.h"

namespace rooftile::scaled_gpu {

template <class T, class Tile>
Status launch_tiles(const CudaLaunch& launch, const GpuProduct& p, const GpuScales& scales) {
  constexpr int kSize = int(sizeof(T));
  const GpuTiles single(p, Tile::kM, Tile::kN);
  // As gemm's: two blocks that share B pay where there are several waves.
  const int cluster = single.count > launch.multiprocessors && launch.multiprocessors > 1 ? 2 : 1;
  HopperRun run{cluster, static_cast<int>((p.k + Tile::kK - 1) / Tile::kK), gemm_gpu::is_whole(p), 0};
  gemm_gpu::HopperMaps a{};
  rooftile::cuda::TensorMap b{}, y{};
  Status s = gemm_gpu::maps_of_tiles(a, run.tail, kSize, p, Tile::kK);
  if (s) s = gemm_gpu::map_of(b, kSize, p.b, p.n, p.k, p.batch, p.b_index, Tile::kN / cluster, Tile::kK);
  if (s && run.whole) s = gemm_gpu::map_of_results(y, p);
  if (!s) return s;
  const GpuTiles tiles(p, Tile::kM * cluster, Tile::kN);
  const std::int64_t most = launch.multiprocessors / cluster;
  const auto clusters = static_cast<unsigned>(tiles.count < most ? tiles.count : most);
  const auto size = static_cast<unsigned>(cluster);
  return rooftile::cuda::launch(launch, "gemm_scaled",
                                {clusters * size, Tile::kThreads, sizeof(typename Tile::Shared), size},
                                gemm_scaled_hopper<T, Tile>, a, b, y, p, scales, tiles, run);
}

/// Elements T of A and B, of which `blocks` of K have scales of their own.
template <class T>
Status launch_blocks(const CudaLaunch& launch, const GpuProduct& p, const GpuScales& scales,
                     std::int64_t blocks) {
  return blocks > 1 ? launch_tiles<T, ScaledTile<T>>(launch, p, scales)
                    : launch_tiles<T, PlainTile<T>>(launch, p, scales);
}

}  // namespace rooftile::scaled_gpu
