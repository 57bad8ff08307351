#include "rooftile/ops/batch_norm/batch_norm.cpu.h"
#include "rooftile/ops/group_norm/group_norm.tile.h"

namespace rooftile {
namespace {
using namespace tile;

/// A CPU's one worker.
constexpr auto kAlone = [](double mine) { return mine; };

template <class Body>
void for_sets(const CpuLaunch& launch, const BatchNormProblem& p, std::int64_t sets, Body body) {
  for_programs(launch, sets, p.c * (p.segments.count + p.n) * 64,
               [&](const ThreadScratch&, std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) body(i);
               });
}

void launch_forward(const CpuLaunch& launch, const BatchNormProblem& p) {
  norm::sum_segments<false>(launch, p);
  for_sets(launch, p, p.n * p.groups, [&](std::int64_t set) {
    kernels::join_group(
        p, set, 0, 1, kAlone, [&](std::int64_t c) { return norm::weight_at(p.weight, c, 1); },
        [&](std::int64_t c) { return norm::weight_at(p.bias, c, 0); });
  });
  norm::normalize<false>(launch, p);
}
void launch_backward(const CpuLaunch& launch, const BatchNormProblem& p) {
  norm::sum_segments<true>(launch, p);
  for_sets(launch, p, p.n * p.groups, [&](std::int64_t set) {
    kernels::join_group_backward(p, set, 0, 1, kAlone,
                                 [&](std::int64_t c) { return norm::weight_at(p.weight, c, 1); });
  });
  if (p.dweight.data || p.dbias.data)
    for_sets(launch, p, p.c, [&](std::int64_t c) {
      const auto sums = kernels::channel_sums(p, c, 0, 1, kAlone);
      norm::store_weight(p.dbias, c, sums.bias);
      norm::store_weight(p.dweight, c, sums.weight);
    });
  norm::normalize<true>(launch, p);
}

}  // namespace

ROOFTILE_CPU_KERNELS(group_norm) = {
    entry<launch_forward>("group_norm", "tile"),
    entry<launch_backward>("group_norm_backward", "tile"),
    {},
};

}  // namespace rooftile
