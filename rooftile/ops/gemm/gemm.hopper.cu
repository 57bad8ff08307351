// Tensor cores of Hopper.
#include "rooftile/ops/gemm/gemm.hopper.h"

#include "rooftile/ops/gemm/gemm.hopper_maps.h"

namespace rooftile::gemm_gpu {
namespace {

template <class T, int kN>
Status launch_width(const CudaLaunch& launch, const GpuProduct& p, const HopperPlan& plan) {
  using Tile = HopperTile<T, kN>;
  HopperMaps a{};
  TensorMap b{}, y{};
  const bool fits = bits(p.epilogue.out) == (sizeof(T) == 2 ? 16 : 32);
  HopperRun run{plan.cluster, static_cast<int>((p.k + Tile::kK - 1) / Tile::kK), fits && is_whole(p), 0};
  constexpr int kSize = int(sizeof(T));
  Status s = maps_of_tiles(a, run.tail, kSize, p, Tile::kK);
  if (s)  // of which each block of a cluster copies its part
    s = map_of(b, kSize, p.b, p.n, p.k, p.batch, p.b_index, Tile::kN / plan.cluster, Tile::kK / plan.cluster);
  if (s && run.whole) s = map_of_results(y, p);
  if (!s) return s;
  const GpuTiles tiles(p, Tile::kM * plan.cluster, Tile::kN);
  const std::int64_t most = launch.multiprocessors / plan.cluster;
  const auto clusters = static_cast<unsigned>(tiles.count < most ? tiles.count : most);
  const auto size = static_cast<unsigned>(plan.cluster);
  return rooftile::cuda::launch(launch, "gemm",
                                {clusters * size, Tile::kThreads, sizeof(typename Tile::Shared), size},
                                gemm_hopper<T, Tile>, a, b, y, p, tiles, run);
}

template <class T>
Status launch_wide(const CudaLaunch& launch, const GpuProduct& p, const HopperPlan& plan) {
  if (plan.width == 256) return launch_width<T, 256>(launch, p, plan);
  if constexpr (sizeof(T) == 2) {
    if (plan.width == 192) return launch_width<T, 192>(launch, p, plan);
    if (plan.width == 128) return launch_width<T, 128>(launch, p, plan);
  }
  return launch_width<T, 64>(launch, p, plan);
}
}  // namespace

Status launch_hopper(const CudaLaunch& launch, const GemmProblem& problem) {
  if (problem.empty()) return {};
  const int size = bits(problem.type) / 8;
  const GpuProduct p = product_of(problem, size);
  const HopperPlan plan =
      hopper_plan(p.m, p.n, p.batch.rows, p.a.k_first, p.b.k_first, launch.multiprocessors, size);
  if (plan.skinny) return launch_skinny(launch, problem.type, p, plan);
  return with_type<bf16, f16, tf32, std::int8_t>(problem.type,
                                                 [&]<class T>() { return launch_wide<T>(launch, p, plan); });
}
}  // namespace rooftile::gemm_gpu
