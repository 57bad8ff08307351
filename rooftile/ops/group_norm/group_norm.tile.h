#pragma once
// A sample's group: its segments' sums joined in f64, as batch_norm.tile.h joins a channel's. One or `team`
// many workers take every team-th of them; add(mine) is their sum.
#include "rooftile/ops/batch_norm/batch_norm.tile.h"

namespace rooftile::kernels {

/// Segment i of those of sample n's group.
struct GroupSegment {
  std::int64_t channel, segment;
  ROOFTILE_TILE GroupSegment(const BatchNormProblem& p, std::int64_t n, std::int64_t group, std::int64_t i)
      : channel(group * (p.c / p.groups) + i / p.segments.parts),
        segment(n * p.segments.parts + i % p.segments.parts) {}
};

/// `weight_of(c)`, `bias_of(c)`: a channel's.
template <class Add, class Weight, class Bias>
ROOFTILE_TILE void join_group(const BatchNormProblem& p, std::int64_t set, int worker, int team,
                              const Add& add, const Weight& weight_of, const Bias& bias_of) {
  const std::int64_t n = set / p.groups, group = set % p.groups, channels = p.c / p.groups;
  const std::int64_t count = p.segments.count > 0 ? channels * p.segments.parts : 0;
  const double m = static_cast<double>(channels) * static_cast<double>(p.s);
  const auto moments = [&](std::int64_t i) {
    const GroupSegment its(p, n, group, i);
    return SegmentMoments(p, its.channel, its.segment);
  };
  double total = 0, squares = 0;
  for (std::int64_t i = worker; i < count; i += team) total += moments(i).total();
  const double mean = add(total) / m;
  for (std::int64_t i = worker; i < count; i += team) squares += moments(i).squares_about(mean);
  const double rstd = 1 / ::sqrt(add(squares) / m + p.eps);
  for (std::int64_t k = worker; k < channels; k += team) {
    const std::int64_t c = group * channels + k;
    store_numbers(p, n * p.c + c, mean, rstd * static_cast<double>(weight_of(c)), bias_of(c));
  }
  if (worker != 0) return;
  if (p.mean.data) *p.mean.f32(group, n) = static_cast<float>(mean);
  if (p.rstd.data) *p.rstd.f32(group, n) = static_cast<float>(rstd);
}

template <class Add, class Weight>
ROOFTILE_TILE void join_group_backward(const BatchNormProblem& p, std::int64_t set, int worker, int team,
                                       const Add& add, const Weight& weight_of) {
  const std::int64_t n = set / p.groups, group = set % p.groups, channels = p.c / p.groups;
  const std::int64_t count = p.segments.count > 0 ? channels * p.segments.parts : 0;
  const double m = static_cast<double>(channels) * static_cast<double>(p.s);
  double sum = 0, products = 0;
  for (std::int64_t i = worker; i < count; i += team) {
    const GroupSegment its(p, n, group, i);
    const float* of = p.partial_of(its.channel, its.segment);
    const double weight = static_cast<double>(weight_of(its.channel));
    sum += weight * static_cast<double>(of[1]), products += weight * static_cast<double>(of[2]);
  }
  sum = add(sum), products = add(products);
  const double rstd = static_cast<double>(*p.rstd.f32(group, n));
  for (std::int64_t k = worker; k < channels; k += team) {
    const std::int64_t c = group * channels + k;
    float* number = p.numbers + n * p.c + c;
    number[0] = *p.mean.f32(group, n);
    number[p.numbers_stride] = static_cast<float>(rstd * rstd * rstd * products / m);
    number[2 * p.numbers_stride] = static_cast<float>(rstd * static_cast<double>(weight_of(c)));
    number[3 * p.numbers_stride] = static_cast<float>(rstd * sum / m);
  }
}

/// A channel's dbias and dweight, over all samples.
struct ChannelSums {
  double bias = 0, weight = 0;
};
template <class Add>
ROOFTILE_TILE ChannelSums channel_sums(const BatchNormProblem& p, std::int64_t channel, int worker, int team,
                                       const Add& add) {
  const std::int64_t group = channel / (p.c / p.groups);
  ChannelSums sums;
  for (std::int64_t i = worker; i < p.segments.count; i += team) {
    const float* of = p.partial_of(channel, i);
    sums.bias += static_cast<double>(of[1]);
    sums.weight += static_cast<double>(*p.rstd.f32(group, i / p.segments.parts)) * static_cast<double>(of[2]);
  }
  sums.bias = add(sums.bias), sums.weight = add(sums.weight);
  return sums;
}

}  // namespace rooftile::kernels
