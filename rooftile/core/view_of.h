#pragma once
// Views of what knows its size: std::span, std::vector, std::array. And views whose rank is known at run
// time.
#include <utility>

#include "rooftile/core/view.h"

namespace rooftile {

namespace detail {
template <class C>
using ElementOf = std::remove_pointer_t<decltype(std::declval<C&>().data())>;
template <class C>
concept Contiguous = requires(C& c) {
  requires std::is_object_v<ElementOf<C>>;
  { c.size() } -> std::convertible_to<std::size_t>;
};
/// A container whose elements outlive the call of view(): one with a name, or a span.
template <class C>
concept Lasting = Contiguous<std::remove_reference_t<C>> &&
    (std::is_lvalue_reference_v<C> || std::same_as<ElementOf<C>, ElementOf<const C>>);
template <class C>
concept Extents = Contiguous<const C> && std::integral<std::remove_const_t<ElementOf<const C>>>;

template <class T>
constexpr std::int64_t elements_in(std::size_t size) {  // of a packed type several in each T
  return static_cast<std::int64_t>(size * (sizeof(T) * 8 / static_cast<std::size_t>(bits(dtype_of<T>))));
}
template <class T, class S>
constexpr ViewOf<T> view_at_run_time(T* data, const S& shape, const Extent* stride) {
  constexpr DType dtype = dtype_of<std::remove_const_t<T>>;
  const std::size_t rank = shape.size();
  if (rank > kMaxRank)
    return no_view<ViewOf<T>>(data, dtype, rank < kTooFewElements ? int(rank) : kTooFewElements - 1, 0, 0);
  Extent sizes[kMaxRank];
  for (std::size_t d = 0; d < rank; ++d) sizes[d] = shape.data()[d];
  return make_view<ViewOf<T>>(data, dtype, int(rank), sizes, stride);
}
}  // namespace detail

/// All of a container's elements, in one dimension: view(std::span(x, n)).
template <detail::Lasting C>
constexpr auto view(C&& elements) {
  using T = detail::ElementOf<std::remove_reference_t<C>>;
  detail::check_view<T, 1>();
  return view(elements.data(), {detail::elements_in<std::remove_const_t<T>>(elements.size())});
}

/// Its first elements, by a dense shape: view(std::span(x, n), {rows, columns}). A shape of more elements
/// than there are is refused by the function that takes the view.
template <detail::Lasting C, std::size_t N>
constexpr auto view(C&& elements, const Extent (&shape)[N]) {
  using T = detail::ElementOf<std::remove_reference_t<C>>;
  detail::check_view<T, N>();
  const std::int64_t size = detail::elements_in<std::remove_const_t<T>>(elements.size());
  std::int64_t wanted = 1;
  bool fits = true, empty = false;
  for (const Extent& extent : shape) {
    empty = empty || extent.value <= 0;
    fits = fits && !__builtin_mul_overflow(wanted, extent.value, &wanted);
  }
  if (empty || (fits && wanted <= size)) return view(elements.data(), shape);
  return detail::no_view<detail::ViewOf<T>>(elements.data(), dtype_of<std::remove_const_t<T>>,
                                            kTooFewElements, fits ? wanted : INT64_MAX, size);
}

/// Of a rank known at run time: sizes and strides in std::span, std::vector or std::array, of any integers.
/// A rank above 8, and strides of another number than sizes, are refused by the function that takes the view.
template <class T, detail::Extents S>
constexpr detail::ViewOf<T> view(T* data, const S& shape) {
  detail::check_view<T, 0>();
  return detail::view_at_run_time(data, shape, nullptr);
}
template <class T, detail::Extents S, detail::Extents Strides>
constexpr detail::ViewOf<T> view(T* data, const S& shape, const Strides& stride) {
  detail::check_view<T, 0>();
  if (stride.size() != shape.size())
    return detail::no_view<detail::ViewOf<T>>(data, dtype_of<std::remove_const_t<T>>, kUnlikeStrides,
                                              std::int64_t(shape.size()), std::int64_t(stride.size()));
  Extent strides[kMaxRank];
  for (std::size_t d = 0; d < stride.size() && d < kMaxRank; ++d) strides[d] = stride.data()[d];
  return detail::view_at_run_time(data, shape, strides);
}

}  // namespace rooftile
