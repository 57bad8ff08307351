#pragma once
// Tensors of any rank and strides as rows: what a kernel's launch walks over.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "rooftile/core/view.h"

namespace rooftile {

/// `kOperands` tensors of one shape, as rows of `columns` elements. Neighbouring outer dimensions that one
/// stride can cover in every operand are merged, so most problems end with one.
template <int kOperands>
struct Rows {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  int rank = 0;  ///< outer dimensions
  std::int64_t extent[kMaxRank];
  std::int64_t stride[kOperands][kMaxRank];
  std::int64_t column_stride[kOperands];

  /// Elements from an operand's start to a row's.
  constexpr std::int64_t offset(int operand, std::int64_t row) const {
    if (rank <= 1) return rank == 0 ? 0 : row * stride[operand][0];
    std::int64_t at = 0;
    for (int d = rank - 1; d > 0; --d) {
      at += row % extent[d] * stride[operand][d];
      row /= extent[d];
    }
    return at + row * stride[operand][0];
  }
  /// Whether the elements of every row lie side by side.
  bool dense() const {
    if (columns <= 1) return true;
    for (std::int64_t s : column_stride)
      if (s != 1) return false;
    return true;
  }
};

namespace detail {
template <int kOperands>
void merge_outer(Rows<kOperands>& r) {
  int kept = 0;
  for (int d = 0; d < r.rank; ++d) {
    if (r.extent[d] == 1) continue;
    bool merges = kept > 0;
    for (int o = 0; merges && o < kOperands; ++o)
      merges = r.stride[o][kept - 1] == r.stride[o][d] * r.extent[d];
    const int to = merges ? kept - 1 : kept++;
    r.extent[to] = merges ? r.extent[to] * r.extent[d] : r.extent[d];
    for (int o = 0; o < kOperands; ++o) r.stride[o][to] = r.stride[o][d];
  }
  r.rank = kept;
  if (kept == 0)  // one row; GPUs multiply its number, 0, by this
    for (int o = 0; o < kOperands; ++o) r.stride[o][0] = 0;
}
}  // namespace detail

/// Rows along the last dimension. All views have one shape of rank 1 at least.
template <int n>
Rows<n> rows_of(const ConstView* const (&view)[n]) {
  Rows<n> r;
  const int last = view[0]->rank - 1;
  r.columns = view[0]->shape[last];
  r.rank = last;
  for (int d = 0; d < last; ++d) r.rows *= r.extent[d] = view[0]->shape[d];
  for (int o = 0; o < n; ++o) {
    std::copy_n(view[o]->stride, last, r.stride[o]);
    r.column_stride[o] = view[o]->stride[last];
  }
  if (r.rows == 0) r.rank = 0;  // offset() of the row that there is not divides by no extent of 0
  detail::merge_outer(r);
  return r;
}
template <class... V>
Rows<sizeof...(V)> rows_of(const V&... views) {
  const ConstView* const view[] = {&views...};
  return rows_of(view);
}

/// Rows as long as they come, for kernels that treat each element by itself: dimensions in the order of the
/// first operand's strides (give the output first), merged where possible. Rank 0 is one row of one element.
template <int n>
Rows<n> elements_of(const ConstView* const (&view)[n]) {
  Rows<n> r;
  r.rank = view[0]->rank;
  // The stride of a single element means nothing, and llabs of the least integer is undefined.
  const auto distance = [&](int d) { return view[0]->shape[d] <= 1 ? 0 : std::llabs(view[0]->stride[d]); };
  int order[kMaxRank];  // by insertion: std::stable_sort allocates
  for (int d = 0; d < r.rank; ++d) {
    int at = d;
    for (; at > 0 && distance(order[at - 1]) < distance(d); --at) order[at] = order[at - 1];
    order[at] = d;
  }
  std::int64_t size = 1;
  for (int d = 0; d < r.rank; ++d) {
    size *= r.extent[d] = view[0]->shape[order[d]];
    for (int o = 0; o < n; ++o) r.stride[o][d] = view[o]->stride[order[d]];
  }
  if (size == 0) {
    r.rows = r.columns = 0;
    r.rank = 0;
    return r;
  }
  detail::merge_outer(r);
  if (r.rank > 0) --r.rank;
  const bool any = size > 1;
  r.columns = any ? r.extent[r.rank] : 1;
  r.rows = size / r.columns;
  for (int o = 0; o < n; ++o) r.column_stride[o] = any ? r.stride[o][r.rank] : 1;
  return r;
}
/// Rows in row-major order, as long as one stride covers them in every view: for kernels whose result depends
/// on the order of elements.
template <int n>
Rows<n> row_major_of(const ConstView* const (&view)[n]) {
  Rows<n> r;
  r.rank = view[0]->rank;
  std::int64_t size = 1;
  for (int d = 0; d < r.rank; ++d) {
    size *= r.extent[d] = view[0]->shape[d];
    for (int o = 0; o < n; ++o) r.stride[o][d] = view[o]->stride[d];
  }
  std::fill_n(r.column_stride, n, 1);
  if (size != 0) detail::merge_outer(r);
  if (size <= 1 || r.rank == 0) {
    r.rank = 0;
    r.columns = size;
    return r;
  }
  --r.rank;
  r.columns = r.extent[r.rank];
  r.rows = size / r.columns;
  for (int o = 0; o < n; ++o) r.column_stride[o] = r.stride[o][r.rank];
  return r;
}
template <class... V>
Rows<sizeof...(V)> elements_of(const V&... views) {
  const ConstView* const view[] = {&views...};
  return elements_of(view);
}

}  // namespace rooftile
