#pragma once
// From a call's views to the problem, for batch norm and group norm.
#include "rooftile/core/signature.h"
#include "rooftile/ops/batch_norm/batch_norm.problem.h"

namespace rooftile {

inline NormVector norm_vector(const Call& c, int operand) {
  const ConstView& v = c.view(operand);
  if (!v.present()) return {};
  const int last = v.rank - 1;
  return {const_cast<void*>(v.data), v.shape[last] > 1 ? v.stride[last] : 1, v.dtype,
          last > 0 && v.shape[0] > 1 ? v.stride[0] : 0};
}
/// {N, C} over the batch is summed as planes of N.
inline bool columns_alone(const ConstView& x, bool grouped) { return !grouped && x.shape[2] == 1; }
inline NormSegments norm_segments(const ConstView& x, bool grouped) {
  return columns_alone(x, grouped) ? NormSegments(1, x.shape[0])
                                   : NormSegments(x.shape[0], x.shape[2], !grouped);
}
inline std::int64_t padded_floats(std::int64_t n) { return (n + 15) / 16 * 16; }
inline std::int64_t numbers_stride(const ConstView& x, bool grouped) {
  return padded_floats((grouped ? x.shape[0] : 1) * x.shape[1]);
}
inline std::size_t norm_workspace(const ConstView& x, bool grouped, bool sums) {
  const std::int64_t partial = sums ? norm_segments(x, grouped).count * x.shape[1] * 3 : 0;
  return static_cast<std::size_t>(kNormNumbers * numbers_stride(x, grouped) + padded_floats(partial)) *
         sizeof(float);
}

/// Picks the dimension along which elements are computed. `groups`: of each sample; 0: over the batch.
inline BatchNormProblem norm_problem(const Call& c, const ConstView& y, const ConstView& x,
                                     const ConstView& dy, std::int64_t groups) {
  BatchNormProblem p{};
  p.groups = groups;
  const bool alone = columns_alone(x, groups > 0);
  p.n = alone ? 1 : x.shape[0], p.c = x.shape[1], p.s = alone ? x.shape[0] : x.shape[2];
  p.segments = norm_segments(x, groups > 0);
  const auto tensor = [&](const ConstView& v) {
    return NormTensor{v.data, alone ? 0 : v.stride[0], p.c > 1 ? v.stride[1] : 1,
                      p.s > 1 ? v.stride[alone ? 0 : 2] : 1};
  };
  const NormTensor of[] = {tensor(y), tensor(x), tensor(dy)};
  p.x = of[1], p.dy = of[2];
  // Rows along C where channels are contiguous and a plane's elements are not.
  const auto contiguous = [&](std::int64_t NormTensor::*stride) {
    int n = 0;
    for (const NormTensor& t : of) n += t.*stride == 1;
    return n;
  };
  p.along_channels = p.c > 1 && contiguous(&NormTensor::c) > contiguous(&NormTensor::s);
  ConstView views[3];
  for (int k = 0; k < 3; ++k) {
    const Extent shape[] = {p.n, p.along_channels ? p.s : p.c, p.along_channels ? p.c : p.s};
    const Extent stride[] = {of[k].n, p.along_channels ? of[k].s : of[k].c,
                             p.along_channels ? of[k].c : of[k].s};
    views[k] = detail::make_view<ConstView>(of[k].data, x.dtype, 3, shape, stride);
    p.data[k] = of[k].data;
  }
  p.rows = rows_of(views[0], views[1], views[2]);
  p.dtype = x.dtype;
  p.numbers = static_cast<float*>(c.workspace.pointer);
  p.numbers_stride = numbers_stride(x, groups > 0);
  p.partial = p.numbers + kNormNumbers * p.numbers_stride;
  return p;
}

/// {N, C, …} as {N, C, S}: dimensions past the second merged where one stride covers them.
struct Folded {
  ConstView view;
  explicit Folded(const ConstView& v) : view(v) {
    if (!v.present() || v.rank < 2 || v.rank == 3 || v.rank > kMaxRank) return;
    std::int64_t size = 1, stride = 1;
    for (int d = v.rank - 1; d >= 2; --d) {
      if (v.shape[d] != 1 && size != 1 && v.stride[d] != stride * size) return;  // refused by its rank
      if (v.shape[d] != 1 && size == 1) stride = v.stride[d];
      size *= v.shape[d];
    }
    view.rank = 3;
    view.shape[2] = size, view.stride[2] = stride;
  }
};

}  // namespace rooftile
