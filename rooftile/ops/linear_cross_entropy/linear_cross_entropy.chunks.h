#pragma once
// The rows of a call, chunk by chunk, as views: what gemm and cross_entropy are called on.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "rooftile/core/dtype.h"
#include "rooftile/core/view.h"

namespace rooftile::linear_cross_entropy_parts {

inline std::int64_t round_up(std::int64_t n, std::int64_t by) { return (n + by - 1) / by * by; }

/// Rows whose logits are there at once: a function of V alone, never of the rows. On an H100 512 rows are
/// what makes a product of bf16 compute-bound, not bound by reading the weight.
inline std::int64_t usual_chunk(std::int64_t classes) {
  constexpr std::int64_t kLogits = std::int64_t{1} << 24, kMultiple = 128, kMin = 512;
  return std::max(kMin, kLogits / std::max<std::int64_t>(classes, 1) / kMultiple * kMultiple);
}

/// The chunks follow from the outer sizes and their rows' number, never from strides: from the innermost, as
/// many dimensions as a chunk holds whole, then a part of the next one.
class Chunks {
 public:
  /// `outer`: a view of the outer sizes alone.
  Chunks(const ConstView& outer, std::int64_t most) : outer_(outer) {
    if (outer_.rank == 0) outer_.shape[outer_.rank++] = 1;
    std::int64_t within = 1;
    for (cut_ = outer_.rank - 1; cut_ > 0 && within * outer_.shape[cut_] <= most; --cut_)
      within *= outer_.shape[cut_];
    piece_ = std::max<std::int64_t>(1, most / std::max<std::int64_t>(within, 1));
    for (int d = 0; d < outer_.rank; ++d) any_ = any_ && outer_.shape[d] > 0;
  }
  /// Whether there is one, from the first on.
  bool any() const { return any_; }
  void next() {
    first_[cut_] += piece_;
    for (int d = cut_; d >= 0; --d) {
      if (first_[d] < outer_.shape[d]) return;
      first_[d] = 0;
      if (d > 0) ++first_[d - 1];
    }
    any_ = false;
  }
  std::int64_t rows() const {
    std::int64_t n = count();
    for (int d = cut_ + 1; d < outer_.rank; ++d) n *= outer_.shape[d];
    return n;
  }
  /// The chunk's part of a view that has `inner` sizes behind the outer ones; absent: absent.
  template <class V>
  V of(const V& view, int inner) const {
    if (!view.present()) return view;
    V part = view;
    part.rank = 0;
    std::int64_t at = 0;
    const int outer = view.rank - inner;
    for (int d = 0; d < cut_; ++d) at += first_[d] * view.stride[d];
    if (outer > 0) at += first_[cut_] * view.stride[cut_];
    for (int d = cut_; d < outer_.rank; ++d) {
      part.shape[part.rank] = d == cut_ ? count() : outer_.shape[d];
      part.stride[part.rank++] = outer > 0 ? view.stride[d] : 0;
    }
    for (int d = outer; d < view.rank; ++d) {
      part.shape[part.rank] = view.shape[d];
      part.stride[part.rank++] = view.stride[d];
    }
    part.data = static_cast<const std::byte*>(view.data) + at * (bits(view.dtype) / 8);
    return part;
  }
  /// Rows of so many columns in memory of the caller's, `pitch` apart.
  View in(void* memory, DType dtype, std::int64_t columns, std::int64_t pitch) const {
    View view{};
    view.data = memory;
    view.dtype = dtype;
    view.rank = outer_.rank - cut_ + 1;
    view.shape[view.rank - 1] = columns;
    view.stride[view.rank - 1] = 1;
    for (int d = view.rank - 2; d >= 0; --d, pitch *= view.shape[d + 1]) {
      view.shape[d] = d == 0 ? count() : outer_.shape[cut_ + d];
      view.stride[d] = pitch;
    }
    return view;
  }

 private:
  std::int64_t count() const { return std::min(piece_, outer_.shape[cut_] - first_[cut_]); }
  ConstView outer_;
  int cut_ = 0;
  std::int64_t piece_ = 1, first_[kMaxRank] = {};
  bool any_ = true;
};

/// As {rows, columns} where one stride covers all outer dimensions; else false.
template <class V>
bool flatten(V& view) {
  const int last = view.rank - 1;
  std::int64_t rows = 1, stride = 0;
  bool any = false;
  for (int d = last - 1; d >= 0; --d) {
    if (view.shape[d] == 1) continue;
    if (any && view.stride[d] != stride * rows) return false;
    if (!any) stride = view.stride[d];
    any = true;
    rows *= view.shape[d];
  }
  view.shape[0] = rows;
  view.stride[0] = stride;
  view.shape[1] = view.shape[last];
  view.stride[1] = view.stride[last];
  view.rank = 2;
  return true;
}

/// A matrix for each of the matrices of `like`: the same one throughout.
template <class V>
ConstView for_each_of(const V& like, const ConstView& matrix) {
  ConstView view = matrix;
  view.rank = like.rank;
  for (int d = 0; d + 2 < like.rank; ++d) {
    view.shape[d] = like.shape[d];
    view.stride[d] = 0;
  }
  for (int d = 0; d < 2; ++d) {
    view.shape[like.rank - 2 + d] = matrix.shape[d];
    view.stride[like.rank - 2 + d] = matrix.stride[d];
  }
  return view;
}
inline ConstView turned(ConstView matrix) {
  std::swap(matrix.shape[0], matrix.shape[1]);
  std::swap(matrix.stride[0], matrix.stride[1]);
  return matrix;
}

}  // namespace rooftile::linear_cross_entropy_parts
