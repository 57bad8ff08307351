#pragma once
// Three steps: sums of segments, which differ by machine (batch_norm.cpu.cpp, batch_norm.cu); a channel's
// numbers from its segments' sums, in f64; and each element from its channel's numbers.
#include <cmath>

#include "rooftile/ops/batch_norm/batch_norm.problem.h"
#include "rooftile/tile/tile.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

/// What sums are taken about: a segment's first element, unless that is an infinity or NaN.
ROOFTILE_TILE float shift_of(float first) { return first - first == 0 ? first : 0; }

// [join]
/// A segment's sums about its shift: their contribution to the channel's mean, and to its squares about it.
struct SegmentMoments {
  double count, shift, sum, squares;

  ROOFTILE_TILE SegmentMoments(const BatchNormProblem& p, std::int64_t channel, std::int64_t segment) {
    const float* its = p.partial_of(channel, segment);
    count = static_cast<double>(p.segments.at(segment).count());
    shift = static_cast<double>(its[0]), sum = static_cast<double>(its[1]);
    squares = static_cast<double>(its[2]);
  }
  ROOFTILE_TILE double total() const { return count * shift + sum; }
  ROOFTILE_TILE double squares_about(double mean) const {
    const double part = sum / count, own = squares - sum * part, off = shift + part - mean;
    return (own < 0 ? 0 : own) + count * off * off;
  }
};
// [/join]

/// Stores what the elements of numbers' place `at` need.
ROOFTILE_TILE void store_numbers(const BatchNormProblem& p, std::int64_t at, double mean, double scale,
                                 float bias) {
  float* number = p.numbers + at;
  number[0] = static_cast<float>(mean);
  number[p.numbers_stride] = static_cast<float>(mean - static_cast<double>(number[0]));
  number[2 * p.numbers_stride] = static_cast<float>(scale);
  number[3 * p.numbers_stride] = bias;
}

/// Stores what a channel's elements need, and its statistics. `weight`, `bias`: its own.
ROOFTILE_TILE void store_forward(const BatchNormProblem& p, std::int64_t channel, double mean, double squares,
                                 float weight, float bias) {
  const double m = p.size(), var = squares / m, rstd = 1 / ::sqrt(var + p.eps);
  store_numbers(p, channel, mean, rstd * static_cast<double>(weight), bias);
  if (p.mean.data) *p.mean.f32(channel) = static_cast<float>(mean);
  if (p.rstd.data) *p.rstd.f32(channel) = static_cast<float>(rstd);
  const auto update = [&](const NormVector& to, const NormVector& from, double now) {
    if (!to.data) return;
    const double before = static_cast<double>(*from.f32(channel));
    *to.f32(channel) = static_cast<float>(m > 0 ? (1 - p.momentum) * before + p.momentum * now : before);
  };
  update(p.new_mean, p.running_mean, mean);
  update(p.new_var, p.running_var, squares / (m - 1));
}

ROOFTILE_TILE void store_inference(const BatchNormProblem& p, std::int64_t channel, float weight,
                                   float bias) {
  const double rstd = 1 / ::sqrt(static_cast<double>(*p.running_var.f32(channel)) + p.eps);
  store_numbers(p, channel, static_cast<double>(*p.running_mean.f32(channel)),
                rstd * static_cast<double>(weight), bias);
}

/// From Σ dy and Σ dy·(x - mean). Gives dweight; dbias is the first sum.
ROOFTILE_TILE double store_backward(const BatchNormProblem& p, std::int64_t channel, double sum,
                                    double products, float weight) {
  const double m = p.size(), rstd = static_cast<double>(*p.rstd.f32(channel));
  const double scale = rstd * static_cast<double>(weight);
  float* number = p.numbers + channel;
  number[0] = *p.mean.f32(channel);
  number[p.numbers_stride] = static_cast<float>(scale * rstd * rstd * products / m);
  number[2 * p.numbers_stride] = static_cast<float>(scale);
  number[3 * p.numbers_stride] = static_cast<float>(scale * sum / m);
  return products * rstd;
}

/// Numbers of one channel for a row along S, or each column's own.
struct NormNumbers {
  Row<const float> row[kNormNumbers];
  bool along_channels;

  ROOFTILE_TILE NormNumbers(const BatchNormProblem& p, std::int64_t row_index, std::int64_t first,
                            std::int64_t size)
      : along_channels(p.along_channels) {
    const std::int64_t at = along_channels ? (p.groups ? row_index / p.s * p.c : 0) + first
                            : p.groups     ? row_index
                                           : p.channel_of(row_index);
    for (int k = 0; k < kNormNumbers; ++k)
      row[k] = {p.numbers + k * p.numbers_stride + at, along_channels ? size : 1};
  }
};

/// A row, or a part of one: y from x, or dx from x and dy.
template <bool kBackward, class Team, class T>
ROOFTILE_TILE void normalize(Team team, const Row<const T>& x, const Row<const T>& dy, const Row<T>& y,
                             const NormNumbers& numbers) {
  const auto held = team.hold(x, 0);
  const auto gradient = [&]() ROOFTILE_INLINE {
    if constexpr (kBackward)
      return team.hold(dy, 0);
    else
      return held;
  }();
  const auto of_chunk = [&](const auto& a, const auto& b, const auto& c, const auto& d, auto chunk)
                            ROOFTILE_INLINE {
                              if constexpr (kBackward)
                                team.store(y, chunk, (gradient[chunk] * c - d) - (held[chunk] - a) * b);
                              else
                                team.store(y, chunk, fma((held[chunk] - a) - b, c, d));
                            };
  if (numbers.along_channels) {
    team.each(y.size, [&](auto chunk) ROOFTILE_INLINE {
      of_chunk(team.load(numbers.row[0], chunk), team.load(numbers.row[1], chunk),
               team.load(numbers.row[2], chunk), team.load(numbers.row[3], chunk), chunk);
    });
  } else {
    const float a = *numbers.row[0].data, b = *numbers.row[1].data, c = *numbers.row[2].data,
                d = *numbers.row[3].data;
    team.each(y.size, [&](auto chunk) ROOFTILE_INLINE { of_chunk(a, b, c, d, chunk); });
  }
}

}  // namespace rooftile::kernels
