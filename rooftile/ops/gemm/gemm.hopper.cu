// Tensor cores of Hopper.
#include "rooftile/ops/gemm/gemm.hopper.h"

#include "rooftile/ops/gemm/gemm.hopper_maps.h"

namespace rooftile::gemm_gpu {
namespace {

/// Whether the copy engine can store y: 16-bit results of 16-bit operands, else of 32 bits.
bool is_whole(const GpuProduct& p, DType type) {
  const GpuEpilogue& e = p.epilogue;
  const int size = bits(e.out) / 8;
  // It stores words of 4 bytes (H200): of an odd row of 16 bits the next element, too.
  if (size == 2 ? p.n % 2 != 0 : bits(type) == 16) return false;
  if (e.c || e.bias || e.activation != 0) return false;
  constexpr std::int64_t kMaxStride = std::int64_t{1} << 39;
  if (e.y_row < 0 || e.y_row >= kMaxStride) return false;
  for (int d = 0; d < p.batch.rank; ++d)
    if (p.batch.stride[0][d] <= 0 || p.batch.stride[0][d] >= kMaxStride) return false;
  return piece_of(p.batch, 0, e.y, e.y_column, e.y_row, size) == 16;
}

template <class T, int kN>
Status launch_width(const CudaLaunch& launch, const GpuProduct& p, const HopperPlan& plan) {
  using Tile = HopperTile<T, kN>;
  TensorMap a{}, b{}, y{};
  const HopperRun run{plan.cluster, static_cast<int>((p.k + Tile::kK - 1) / Tile::kK),
                      is_whole(p, dtype_of<T>)};
  constexpr int kSize = int(sizeof(T));
  Status s = map_of(a, kSize, p.a, p.m, p.k, p.batch, p.a_index, Tile::kM, Tile::kK);
  if (s)  // of which each block of a cluster copies its part
    s = map_of(b, kSize, p.b, p.n, p.k, p.batch, p.b_index, Tile::kN / plan.cluster, Tile::kK / plan.cluster);
  const GpuEpilogue& e = p.epilogue;
  if (s && run.whole) s = map_of(y, bits(e.out) / 8, e.y, p.n, p.m, e.y_row, p.batch, 0, 16);
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
