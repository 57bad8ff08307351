#pragma once
// Views whose dimensions are in another order.
#include "rooftile/core/view.h"

namespace rooftile {

/// Ranks of what permuted() can not put in order, as kTooFewElements is one of view()'s: an order of shape[0]
/// dimensions for a tensor of shape[1]; one that names dimension shape[0] of shape[1], where there is none;
/// or names it twice.
inline constexpr int kUnlikeOrder = kUnlikeStrides + 1, kNoDimension = kUnlikeStrides + 2,
                     kTwiceDimension = kUnlikeStrides + 3;

/// The same tensor with its dimensions in another order, and nothing moved: dimension d of the result is
/// dimension order[d] of `tensor`; negative ones count from the end. An order that does not name each once is
/// refused by the function that takes the view.
template <class V>
constexpr V permuted(const V& tensor, const int* order, std::size_t count) {
  const int rank = tensor.rank;
  if (rank < 0 || rank > kMaxRank) return tensor;
  if (count != static_cast<std::size_t>(rank))
    return detail::no_view<V>(tensor.data, tensor.dtype, kUnlikeOrder, static_cast<std::int64_t>(count),
                              rank);
  V view = tensor;
  unsigned named = 0;
  for (int d = 0; d < rank; ++d) {
    const int from = order[d] < 0 ? order[d] + rank : order[d];
    if (from < 0 || from >= rank)
      return detail::no_view<V>(tensor.data, tensor.dtype, kNoDimension, order[d], rank);
    if (named >> from & 1)
      return detail::no_view<V>(tensor.data, tensor.dtype, kTwiceDimension, order[d], rank);
    named |= 1u << from;
    view.shape[d] = tensor.shape[from];
    view.stride[d] = tensor.stride[from];
  }
  return view;
}
/// permuted(x, {0, 3, 1, 2}): NHWC seen as NCHW.
template <class V, std::size_t N>
constexpr V permuted(const V& tensor, const int (&order)[N]) {
  return permuted(tensor, order, N);
}

}  // namespace rooftile
