#include "rooftile/ops/batch_norm/batch_norm.gpu.h"

namespace rooftile {
namespace {
using namespace tile;
using namespace norm;

enum class Step { forward, inference, backward };
/// A warp has a channel: its segments' sums, 32 at a time.
template <Step kStep>
__global__ void __launch_bounds__(kThreads) join_segments(const __grid_constant__ BatchNormProblem p) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int64_t channel = std::int64_t{blockIdx.x} * kWarps + static_cast<int>(threadIdx.x) / kWarp;
  if (channel >= p.c) return;
  if constexpr (kStep == Step::inference) {
    if (lane == 0)
      kernels::store_inference(p, channel, weight_at(p.weight, channel, 1), weight_at(p.bias, channel, 0));
  } else if constexpr (kStep == Step::forward) {
    double total = 0, squares = 0;
    for (std::int64_t i = lane; i < p.segments.count; i += kWarp)
      total += kernels::SegmentMoments(p, channel, i).total();
    const double mean = warp_sum(total) / p.size();
    for (std::int64_t i = lane; i < p.segments.count; i += kWarp)
      squares += kernels::SegmentMoments(p, channel, i).squares_about(mean);
    squares = warp_sum(squares);
    if (lane == 0)
      kernels::store_forward(p, channel, mean, squares, weight_at(p.weight, channel, 1),
                             weight_at(p.bias, channel, 0));
  } else {
    double sum = 0, products = 0;
    for (std::int64_t i = lane; i < p.segments.count; i += kWarp) {
      sum += static_cast<double>(p.partial_of(channel, i)[1]);
      products += static_cast<double>(p.partial_of(channel, i)[2]);
    }
    sum = warp_sum(sum), products = warp_sum(products);
    if (lane != 0) return;
    store_weight(p.dbias, channel, sum);
    store_weight(p.dweight, channel,
                 kernels::store_backward(p, channel, sum, products, weight_at(p.weight, channel, 1)));
  }
}

template <Step kStep>
Status launch_steps(const CudaLaunch& launch, const char* name, const BatchNormProblem& p) {
  constexpr bool kBackward = kStep == Step::backward;
  if (p.c == 0) return {};
  Status status;
  if (kStep != Step::inference) status = sum_segments<kBackward>(launch, name, p);
  if (status) status = launch_blocks(launch, name, (p.c + kWarps - 1) / kWarps, join_segments<kStep>, p);
  return status ? norm::normalize<kBackward>(launch, name, p) : status;
}
Status launch_forward(const CudaLaunch& launch, const BatchNormProblem& p) {
  return launch_steps<Step::forward>(launch, "batch_norm", p);
}
Status launch_inference(const CudaLaunch& launch, const BatchNormProblem& p) {
  return launch_steps<Step::inference>(launch, "batch_norm_inference", p);
}
Status launch_backward(const CudaLaunch& launch, const BatchNormProblem& p) {
  return launch_steps<Step::backward>(launch, "batch_norm_backward", p);
}

}  // namespace

ROOFTILE_CUDA_KERNELS(batch_norm) = {
    entry<launch_forward>("batch_norm", "tile"),
    entry<launch_inference>("batch_norm_inference", "tile"),
    entry<launch_backward>("batch_norm_backward", "tile"),
    {},
};

}  // namespace rooftile
