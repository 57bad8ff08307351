// Tensor cores of Hopper, few rows.
#include "rooftile/ops/gemm/gemm.hopper_skinny.h"

#include "rooftile/ops/gemm/gemm.hopper_maps.h"

namespace rooftile::gemm_gpu {
namespace {

template <class T, int kRows>
Status launch_rows(const CudaLaunch& launch, const GpuProduct& p, const HopperPlan& plan) {
  using Tile = SkinnyTile<T, kRows>;
  TensorMap a{}, b{};
  // Tiles of equal heights, no higher than rows are: the copy engine is slow to fill rows past the end.
  const std::int64_t tiles_of_column = (p.m + kRows - 1) / kRows;
  const int high = box_rows((p.m + tiles_of_column - 1) / tiles_of_column);
  const SkinnyRun run{plan.width, high, static_cast<int>((p.k + Tile::kK - 1) / Tile::kK)};
  constexpr int kSize = int(sizeof(T));
  Status s = map_of(a, kSize, p.a, p.m, p.k, p.batch, p.a_index, high, 64);
  if (s) s = map_of(b, kSize, p.b, p.n, p.k, p.batch, p.b_index, plan.width, 64);
  if (!s) return s;
  const GpuTiles tiles(p, high, plan.width);
  const std::int64_t most = launch.multiprocessors;
  const auto blocks = static_cast<unsigned>(tiles.count < most ? tiles.count : most);
  return rooftile::cuda::launch(launch, "gemm", {blocks, Tile::kThreads, sizeof(typename Tile::Shared)},
                                gemm_skinny<T, Tile>, a, b, p, tiles, run);
}

template <class T>
Status launch_type(const CudaLaunch& launch, const GpuProduct& p, const HopperPlan& plan) {
  if constexpr (sizeof(T) == 2) {
    if (plan.height == 8) return launch_rows<T, 8>(launch, p, plan);
    if (plan.height == 16) return launch_rows<T, 16>(launch, p, plan);
    if (plan.height == 32) return launch_rows<T, 32>(launch, p, plan);
  }
  return launch_rows<T, kMaxSkinny>(launch, p, plan);
}
}  // namespace

Status launch_skinny(const CudaLaunch& launch, DType type, const GpuProduct& p, const HopperPlan& plan) {
  return with_type<bf16, f16, tf32, std::int8_t>(type,
                                                 [&]<class T>() { return launch_type<T>(launch, p, plan); });
}
}  // namespace rooftile::gemm_gpu
