#pragma once
// What passes from validation (batch_norm.cpp; group_norm's) to the launches.
#include <algorithm>

#include "rooftile/core/row_problem.h"

namespace rooftile {

/// A channel's elements are added up in segments of at most so many: parts of one plane, or some planes.
/// Bits follow from it and from N and S alone.
inline constexpr std::int64_t kNormSegment = 2048;
/// A part of a plane begins at a whole number of lanes, of which a GPU has 128 and a CPU 16.
inline constexpr std::int64_t kNormLanes = 128;

/// Which elements make a segment: planes n_begin to n_end, of each elements s_begin to s_end.
struct NormSegment {
  std::int64_t n_begin, n_end, s_begin, s_end;
  constexpr std::int64_t count() const { return (n_end - n_begin) * (s_end - s_begin); }
};
struct NormSegments {
  std::int64_t n, s;
  std::int64_t parts = 1, part = 1;  ///< of a plane, and the elements of one
  std::int64_t planes = 1;           ///< of a segment
  std::int64_t count = 0;

  NormSegments() = default;
  /// `together`: a segment may be of several samples.
  constexpr NormSegments(std::int64_t samples, std::int64_t size, bool together = true)
      : n(samples), s(size) {
    if (n == 0 || s == 0) return;
    parts = (s + kNormSegment - 1) / kNormSegment;
    part = parts == 1 ? s : ((s + parts - 1) / parts + kNormLanes - 1) / kNormLanes * kNormLanes;
    parts = (s + part - 1) / part;
    planes = together ? std::max<std::int64_t>(1, kNormSegment / s) : 1;
    count = parts > 1 ? n * parts : (n + planes - 1) / planes;
  }
  constexpr NormSegment at(std::int64_t i) const {
    if (parts == 1) {
      const std::int64_t begin = i * planes, rest = n - begin;
      return {begin, begin + (rest < planes ? rest : planes), 0, s};
    }
    const std::int64_t plane = i / parts, begin = (i - plane * parts) * part, rest = s - begin;
    return {plane, plane + 1, begin, begin + (rest < part ? rest : part)};
  }
};

struct NormTensor {
  const void* data = nullptr;
  std::int64_t n, c, s;  ///< strides

  constexpr std::int64_t offset(std::int64_t at_n, std::int64_t at_c, std::int64_t at_s) const {
    return at_n * n + at_c * c + at_s * s;
  }
};
/// {C} of f32, or of weights' dtype; or {N, groups} of f32.
struct NormVector {
  void* data = nullptr;  ///< null: absent
  std::int64_t stride = 1;
  DType dtype = DType::f32;
  std::int64_t outer = 0;

  constexpr float* f32(std::int64_t i, std::int64_t n = 0) const {
    return static_cast<float*>(data) + n * outer + i * stride;
  }
};

/// What an element needs of its channel, four floats. Forward: y = ((x - [0]) - [1]) · [2] + [3], the mean in
/// two floats. Backward: dx = (dy · [2] - [3]) - (x - [0]) · [1].
inline constexpr int kNormNumbers = 4;

struct BatchNormProblem {
  enum { kY, kX, kDy };
  std::int64_t n, c, s;
  std::int64_t groups;  ///< of each sample; 0: channels over all samples
  NormSegments segments;
  NormTensor x, dy;
  Rows<3> rows;  ///< y (or dx), x and dy (forward: x) as the elements are computed: along S, or along C
  const void* data[3];
  bool along_channels;  ///< whether rows, and vectors, are
  NormVector weight, bias, dweight, dbias;
  NormVector mean, rstd;  ///< out, or of the backward in
  NormVector running_mean, running_var, new_mean, new_var;
  double eps, momentum;
  float* partial;  ///< workspace: of each channel each segment's three numbers
  float* numbers;  ///< workspace: kNormNumbers arrays, `numbers_stride` apart
  std::int64_t numbers_stride;
  DType dtype;

  constexpr double size() const { return static_cast<double>(n) * static_cast<double>(s); }
  constexpr float* partial_of(std::int64_t channel, std::int64_t segment) const {
    return partial + (channel * segments.count + segment) * 3;
  }
  /// What a channel of a sample has as its mean.
  constexpr float mean_of(std::int64_t sample, std::int64_t channel) const {
    return groups ? *mean.f32(channel / (c / groups), sample) : *mean.f32(channel);
  }
  /// The channel of a row along S, in the rows' order.
  constexpr std::int64_t channel_of(std::int64_t row) const {
    return row >> 32 == 0 && c >> 32 == 0 ? static_cast<std::uint32_t>(row) % static_cast<std::uint32_t>(c)
                                          : row % c;
  }
};

}  // namespace rooftile
