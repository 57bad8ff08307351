#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "rooftile/core/element.h"
#include "rooftile/core/tensor_view.h"

namespace rooftile {

/// Any integer, as a size or a stride in elements.
struct Extent {
  std::int64_t value = 0;
  constexpr Extent() = default;
  template <std::integral I>
  constexpr Extent(I v) : value(static_cast<std::int64_t>(v)) {}
};

namespace detail {
template <class V>
constexpr V make_view(const void* data, DType dtype, int rank, const Extent* shape, const Extent* stride) {
  V view;
  view.data = data;
  view.dtype = dtype;
  view.rank = rank;
  std::int64_t dense = 1;
  for (int d = rank - 1; d >= 0; --d) {
    view.shape[d] = shape[d].value;
    view.stride[d] = stride ? stride[d].value : dense;
    // Wraps instead of overflowing: a product that does not fit is refused where the view is used.
    dense = static_cast<std::int64_t>(static_cast<std::uint64_t>(dense) *
                                      static_cast<std::uint64_t>(view.shape[d] > 0 ? view.shape[d] : 1));
  }
  return view;
}
/// Of no tensor: `rank` says why not.
template <class V>
constexpr V no_view(const void* data, DType dtype, int rank, std::int64_t first, std::int64_t second) {
  V view;
  view.data = data;
  view.dtype = dtype;
  view.rank = rank;
  view.shape[0] = first;
  view.shape[1] = second;
  return view;
}
template <class T>
using ViewOf = std::conditional_t<std::is_const_v<T>, ConstView, View>;

template <class T, std::size_t N>
constexpr void check_view() {
  static_assert(
      Element<std::remove_const_t<T>>,
      "rooftile::view: this element type has no DType; use double, float, rooftile::f16, rooftile::bf16, "
      "an 8-bit float, std::int64_t, std::int32_t, std::int8_t, std::uint8_t, bool or rooftile::u4x2, or "
      "specialise rooftile::DTypeOf");
  static_assert(N <= kMaxRank, "rooftile::view: a view has at most 8 dimensions");
}
}  // namespace detail

/// A dense row-major view: view(x, {rows, columns}). A pointer to const gives a ConstView.
template <class T, std::size_t N>
constexpr detail::ViewOf<T> view(T* data, const Extent (&shape)[N]) {
  detail::check_view<T, N>();
  return detail::make_view<detail::ViewOf<T>>(data, dtype_of<std::remove_const_t<T>>, N, shape, nullptr);
}

/// A view with strides, in elements: view(x, {rows, columns}, {row_stride, 1}).
template <class T, std::size_t N>
constexpr detail::ViewOf<T> view(T* data, const Extent (&shape)[N], const Extent (&stride)[N]) {
  detail::check_view<T, N>();
  return detail::make_view<detail::ViewOf<T>>(data, dtype_of<std::remove_const_t<T>>, N, shape, stride);
}

/// A view of one element, of rank 0.
template <class T>
constexpr detail::ViewOf<T> scalar_view(T* data) {
  detail::check_view<T, 0>();
  return detail::make_view<detail::ViewOf<T>>(data, dtype_of<std::remove_const_t<T>>, 0, nullptr, nullptr);
}

}  // namespace rooftile
