#include "rooftile/ops/batch_norm/batch_norm.cpu.h"

namespace rooftile {
namespace {
using namespace tile;
using namespace norm;

template <bool kBackward>
void join(const BatchNormProblem& p, std::int64_t channel) {
  const std::int64_t count = p.segments.count;
  const float weight = weight_at(p.weight, channel, 1);
  if constexpr (kBackward) {
    double sum = 0, products = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      sum += static_cast<double>(p.partial_of(channel, i)[1]);
      products += static_cast<double>(p.partial_of(channel, i)[2]);
    }
    store_weight(p.dbias, channel, sum);
    store_weight(p.dweight, channel, kernels::store_backward(p, channel, sum, products, weight));
  } else {
    double total = 0, squares = 0;
    for (std::int64_t i = 0; i < count; ++i) total += kernels::SegmentMoments(p, channel, i).total();
    const double mean = total / p.size();
    for (std::int64_t i = 0; i < count; ++i)
      squares += kernels::SegmentMoments(p, channel, i).squares_about(mean);
    kernels::store_forward(p, channel, mean, squares, weight, weight_at(p.bias, channel, 0));
  }
}

template <bool kBackward>
void launch_steps(const CpuLaunch& launch, const BatchNormProblem& p) {
  sum_segments<kBackward>(launch, p);
  for_programs(launch, p.c, p.c * p.segments.count * 64,
               [&](const ThreadScratch&, std::int64_t begin, std::int64_t end) {
                 for (std::int64_t c = begin; c < end; ++c) join<kBackward>(p, c);
               });
  normalize<kBackward>(launch, p);
}
void launch_forward(const CpuLaunch& launch, const BatchNormProblem& p) { launch_steps<false>(launch, p); }
void launch_backward(const CpuLaunch& launch, const BatchNormProblem& p) { launch_steps<true>(launch, p); }
void launch_inference(const CpuLaunch& launch, const BatchNormProblem& p) {
  for (std::int64_t c = 0; c < p.c; ++c)
    kernels::store_inference(p, c, weight_at(p.weight, c, 1), weight_at(p.bias, c, 0));
  normalize<false>(launch, p);
}

}  // namespace

ROOFTILE_CPU_KERNELS(batch_norm) = {
    entry<launch_forward>("batch_norm", "tile"),
    entry<launch_inference>("batch_norm_inference", "tile"),
    entry<launch_backward>("batch_norm_backward", "tile"),
    {},
};

}  // namespace rooftile
