// Tensor cores of Hopper, 16-bit operands.
#include "rooftile/ops/gemm/gemm.hopper.h"

namespace rooftile::gemm_gpu {
namespace {

/// Where 64 neighbours of a matrix, 128 bytes, are a row of a box, `box` rows high. A dimension of the batch
/// along which the matrix is the same is not in the map: its coordinate stays 0.
Status map_of(TensorMap& map, const void* data, std::int64_t near, std::int64_t far, std::int64_t far_stride,
              const Rows<4>& batch, int operand, int box) {
  const auto outer = [&](int d) -> rooftile::cuda::MapDimension {
    const std::int64_t stride = d < batch.rank ? batch.stride[operand][d] : 0;
    if (stride == 0) return {1, 16, 1};
    return {batch.extent[d], stride * 2, 1};
  };
  return rooftile::cuda::make_tensor_map(
      map, "gemm", data, 2,
      {{near, 2, 64}, {far, far_stride == 0 ? 16 : far_stride * 2, box}, outer(0), outer(1)},
      rooftile::cuda::Swizzle::k128);
}
/// A or B, a slice of which is `extent` by 64 of K. Boxes whose neighbours are along M or N are 64 wide.
Status map_of(TensorMap& map, const GpuOperand& o, std::int64_t mn, std::int64_t k, const Rows<4>& batch,
              int operand, int extent, int parts) {
  return o.k_first ? map_of(map, o.data, k, mn, o.mn_stride, batch, operand, extent / parts)
                   : map_of(map, o.data, mn, k, o.k_stride, batch, operand, kHopperDepth / parts);
}

/// Whether the copy engine can store y.
bool is_whole(const GpuProduct& p, DType type) {
  const GpuEpilogue& e = p.epilogue;
  if (e.out != type || e.c || e.bias || e.activation != 0 || e.y_row < 0) return false;
  for (int d = 0; d < p.batch.rank; ++d)
    if (p.batch.stride[0][d] <= 0) return false;
  return piece_of(p.batch, 0, e.y, e.y_column, e.y_row, 2) == 16;
}

template <class T, int kN>
Status launch_width(const CudaLaunch& launch, const GpuProduct& p, const HopperPlan& plan) {
  using Tile = HopperTile<T, kN>;
  TensorMap a{}, b{}, y{};
  HopperRun run{plan.cluster, static_cast<int>((p.k + Tile::kK - 1) / Tile::kK), is_whole(p, dtype_of<T>)};
  Status s = map_of(a, p.a, p.m, p.k, p.batch, p.a_index, Tile::kM, 1);
  if (s) s = map_of(b, p.b, p.n, p.k, p.batch, p.b_index, Tile::kN, plan.cluster);
  if (s && run.whole) s = map_of(y, p.epilogue.y, p.n, p.m, p.epilogue.y_row, p.batch, 0, 16);
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
Status launch_type(const CudaLaunch& launch, const GpuProduct& p) {
  const HopperPlan plan = hopper_plan(p.m, p.n, p.batch.rows, launch.multiprocessors);
  switch (plan.width) {
    case 256:
      return launch_width<T, 256>(launch, p, plan);
    case 192:
      return launch_width<T, 192>(launch, p, plan);
    case 128:
      return launch_width<T, 128>(launch, p, plan);
    default:
      return launch_width<T, 64>(launch, p, plan);
  }
}
}  // namespace

Status launch_hopper(const CudaLaunch& launch, const GemmProblem& problem) {
  if (problem.empty()) return {};
  const GpuProduct p = product_of(problem, 2);
  return problem.type == DType::bf16 ? launch_type<bf16>(launch, p) : launch_type<f16>(launch, p);
}
}  // namespace rooftile::gemm_gpu
