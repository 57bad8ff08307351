#include "rooftile/ops/batch_norm/batch_norm.gpu.h"
#include "rooftile/ops/group_norm/group_norm.tile.h"

namespace rooftile {
namespace {
using namespace tile;

/// A warp's lanes as workers.
struct Warp {
  ROOFTILE_TILE double operator()(double mine) const { return norm::warp_sum(mine); }
};
ROOFTILE_TILE std::int64_t warp_index() {
  return std::int64_t{blockIdx.x} * norm::kWarps + static_cast<int>(threadIdx.x) / kWarp;
}

template <bool kBackward>
__global__ void __launch_bounds__(norm::kThreads) join_groups(const __grid_constant__ BatchNormProblem p) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (warp_index() >= p.n * p.groups) return;
  const auto weight_of = [&](std::int64_t c) { return norm::weight_at(p.weight, c, 1); };
  if constexpr (kBackward)
    kernels::join_group_backward(p, warp_index(), lane, kWarp, Warp{}, weight_of);
  else
    kernels::join_group(p, warp_index(), lane, kWarp, Warp{}, weight_of,
                        [&](std::int64_t c) { return norm::weight_at(p.bias, c, 0); });
}
__global__ void __launch_bounds__(norm::kThreads) join_channels(const __grid_constant__ BatchNormProblem p) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (warp_index() >= p.c) return;
  const auto sums = kernels::channel_sums(p, warp_index(), lane, kWarp, Warp{});
  if (lane != 0) return;
  norm::store_weight(p.dbias, warp_index(), sums.bias);
  norm::store_weight(p.dweight, warp_index(), sums.weight);
}

template <bool kBackward>
Status launch_steps(const CudaLaunch& launch, const char* name, const BatchNormProblem& p) {
  const auto warps = [](std::int64_t count) { return (count + norm::kWarps - 1) / norm::kWarps; };
  Status status = norm::sum_segments<kBackward>(launch, name, p);
  if (status && p.n > 0)
    status = norm::launch_blocks(launch, name, warps(p.n * p.groups), join_groups<kBackward>, p);
  if (status && p.c > 0 && (p.dweight.data || p.dbias.data))
    status = norm::launch_blocks(launch, name, warps(p.c), join_channels, p);
  return status ? norm::normalize<kBackward>(launch, name, p) : status;
}
Status launch_forward(const CudaLaunch& launch, const BatchNormProblem& p) {
  return launch_steps<false>(launch, "group_norm", p);
}
Status launch_backward(const CudaLaunch& launch, const BatchNormProblem& p) {
  return launch_steps<true>(launch, "group_norm_backward", p);
}

}  // namespace

ROOFTILE_CUDA_KERNELS(group_norm) = {
    entry<launch_forward>("group_norm", "tile"),
    entry<launch_backward>("group_norm_backward", "tile"),
    {},
};

}  // namespace rooftile
