#include "rooftile/harness/tensor.h"

#include <algorithm>
#include <cstring>
#include <limits>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace rooftile::harness {
namespace {

/// A packed element, by itself.
struct Nibble {
  std::uint8_t bits;
};

template <class F>
void with_format(DType type, F&& f) {
  switch (type) {
    case DType::f64:
      return f(double{});
    case DType::f32:
      return f(float{});
    case DType::tf32:
      return f(tf32{});
    case DType::f16:
      return f(f16{});
    case DType::bf16:
      return f(bf16{});
    case DType::f8e4m3:
      return f(f8e4m3{});
    case DType::f8e5m2:
      return f(f8e5m2{});
    case DType::i64:
      return f(std::int64_t{});
    case DType::i32:
      return f(std::int32_t{});
    case DType::i8:
      return f(std::int8_t{});
    case DType::u8:
      return f(std::uint8_t{});
    case DType::boolean:
      return f(bool{});
    case DType::u4:
      return f(Nibble{});
  }
}

template <class T>
double to_number(T x) {
  if constexpr (std::is_same_v<T, Nibble>)
    return x.bits;
  else if constexpr (std::is_arithmetic_v<T>)
    return static_cast<double>(x);
  else
    return static_cast<double>(to_float(x));
}

template <class T>
T from_number(double x) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(x);
  } else if constexpr (std::is_same_v<T, bool>) {
    return x != 0;
  } else if constexpr (std::is_integral_v<T>) {
    if (x != x) return 0;
    if (x <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    if (x >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(std::nearbyint(x));
  } else if constexpr (std::is_same_v<T, Nibble>) {
    return {static_cast<std::uint8_t>(std::clamp(std::nearbyint(x), 0., 15.))};
  } else {
    return from_double<T>(x);
  }
}

/// Calls f(address of the first of `count` elements, their stride in elements) for each innermost line of a
/// view.
template <class F>
void for_lines(const ConstView& view, F&& f) {
  const std::int64_t width = static_cast<std::int64_t>(width_of(view.dtype));
  std::byte* data = static_cast<std::byte*>(const_cast<void*>(view.data));
  if (view.size() == 0) return;
  if (view.rank == 0) return f(data, 1, 1);
  std::int64_t index[kMaxRank] = {};
  const int last = view.rank - 1;
  for (;;) {
    std::int64_t at = 0;
    for (int d = 0; d < last; ++d) at += index[d] * view.stride[d];
    f(data + at * width, view.shape[last], view.stride[last]);
    int d = last - 1;
    for (; d >= 0 && ++index[d] == view.shape[d]; --d) index[d] = 0;
    if (d < 0) return;
  }
}

template <std::size_t kWidth, bool kIn, class Dense>
void move_line(std::byte* line, std::int64_t count, std::int64_t stride, Dense dense) {
  if (stride == 1) {
    if constexpr (kIn)
      std::memcpy(line, dense, kWidth * static_cast<std::size_t>(count));
    else
      std::memcpy(dense, line, kWidth * static_cast<std::size_t>(count));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    std::byte* element = line + i * stride * static_cast<std::int64_t>(kWidth);
    if constexpr (kIn)
      std::memcpy(element, dense + i * static_cast<std::int64_t>(kWidth), kWidth);
    else
      std::memcpy(dense + i * static_cast<std::int64_t>(kWidth), element, kWidth);
  }
}

/// A packed element's place: the first of a byte's two is its upper half.
constexpr int shift_of(std::int64_t element) { return element % 2 ? 0 : 4; }

template <bool kIn, class Dense>
void move_packed(const ConstView& view, Dense dense) {
  auto* bytes = static_cast<std::uint8_t*>(const_cast<void*>(view.data));
  for (std::int64_t i = 0; i < view.size(); ++i) {
    std::uint8_t& pair = bytes[i / 2];
    if constexpr (kIn)
      pair = static_cast<std::uint8_t>((pair & ~(15 << shift_of(i))) |
                                       (static_cast<std::uint8_t>(dense[i]) & 15) << shift_of(i));
    else
      dense[i] = static_cast<std::byte>(pair >> shift_of(i) & 15);
  }
}

template <bool kIn, class Dense>
void move_all(const ConstView& view, Dense dense) {
  if (is_packed(view.dtype)) return move_packed<kIn>(view, dense);
  const std::size_t width = width_of(view.dtype);
  for_lines(view, [&](std::byte* line, std::int64_t count, std::int64_t stride) {
    if (width == 1)
      move_line<1, kIn>(line, count, stride, dense);
    else if (width == 2)
      move_line<2, kIn>(line, count, stride, dense);
    else if (width == 4)
      move_line<4, kIn>(line, count, stride, dense);
    else
      move_line<8, kIn>(line, count, stride, dense);
    dense += static_cast<std::size_t>(count) * width;
  });
}

/// Between an input's elements: other bits than between an output's, or a copy of too much would not show.
/// NaN, too.
void paint_input(DType type, std::byte* memory, std::size_t bytes) {
  const auto with = [&](auto code) {
    constexpr std::size_t kPiece = 4096;  // written once, then copied
    const std::size_t piece = std::min(bytes, kPiece);
    for (std::size_t at = 0; at + sizeof code <= piece; at += sizeof code)
      std::memcpy(memory + at, &code, sizeof code);
    for (std::size_t at = piece; at < bytes; at += kPiece)
      std::memcpy(memory + at, memory, std::min(kPiece, bytes - at));
  };
  switch (type) {
    case DType::f64:
      return with(std::uint64_t{0x7FF8DEADDEADDEAD});
    case DType::f32:
    case DType::tf32:
      return with(std::uint32_t{0x7FC0DEAD});
    case DType::f16:
      return with(std::uint16_t{0x7EAD});
    case DType::bf16:
      return with(std::uint16_t{0x7FAD});
    case DType::f8e4m3:
      return with(std::uint8_t{0x7F});
    case DType::f8e5m2:
      return with(std::uint8_t{0x7E});
    default:
      return with(std::uint8_t{0x3C});
  }
}

}  // namespace

std::int64_t count_of(const Shape& shape) {
  std::int64_t n = 1;
  for (std::int64_t s : shape) n *= s;
  return n;
}

void decode(DType type, const std::byte* from, std::int64_t count, double* to) {
  with_format(type, [&](auto format) {
    using T = decltype(format);
    for (std::int64_t i = 0; i < count; ++i) {
      T x;
      std::memcpy(&x, from + i * static_cast<std::int64_t>(sizeof x), sizeof x);
      to[i] = to_number(x);
    }
  });
}
void encode(DType type, const double* from, std::int64_t count, std::byte* to) {
  with_format(type, [&](auto format) {
    using T = decltype(format);
    for (std::int64_t i = 0; i < count; ++i) {
      const T x = from_number<T>(from[i]);
      std::memcpy(to + i * static_cast<std::int64_t>(sizeof x), &x, sizeof x);
    }
  });
}
std::vector<double> decode(DType type, const Bytes& from) {
  std::vector<double> to(from.size() / width_of(type));
  decode(type, from.data(), static_cast<std::int64_t>(to.size()), to.data());
  return to;
}
Bytes encode(DType type, const std::vector<double>& from) {
  Bytes to(from.size() * width_of(type));
  encode(type, from.data(), static_cast<std::int64_t>(from.size()), to.data());
  return to;
}

void scatter(const View& view, const std::byte* dense) { move_all<true>(view, dense); }
void gather(const ConstView& view, std::byte* dense) { move_all<false>(view, dense); }

Placement place(const Operand& operand, Layout layout, std::int64_t offset) {
  const Shape& shape = operand.shape;
  const int rank = static_cast<int>(shape.size());
  if (!operand.keeps_layout || (is_packed(operand.dtype) && layout != Layout::offset))
    layout = Layout::contiguous;
  if (layout == Layout::broadcast && operand.kind != Operand::Kind::input) layout = Layout::padded_rows;

  Placement p{std::vector<std::int64_t>(shape.size()), layout == Layout::offset ? offset : 0};
  std::int64_t step = layout == Layout::strided_columns ? 2 : 1;
  std::vector<int> order(shape.size());  // from the innermost dimension outwards
  for (int d = 0; d < rank; ++d) order[static_cast<std::size_t>(d)] = rank - 1 - d;
  if (layout == Layout::transposed && rank >= 2) std::swap(order[0], order[1]);
  for (int d : order) {
    const auto dim = static_cast<std::size_t>(d);
    p.strides[dim] = layout == Layout::reversed ? -step : step;
    step *= std::max<std::int64_t>(shape[dim], 1);
    if (layout == Layout::padded_rows && d == rank - 1) step += 3;
  }
  if (layout == Layout::broadcast && rank >= 1) p.strides[0] = 0;
  return p;
}

std::int64_t span_of(const Shape& shape, const Placement& placement) {
  std::int64_t span = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return 0;
    span += std::abs(placement.strides[d]) * (shape[d] - 1);
  }
  return span;
}

namespace {

/// From the lowest element's index to the first one's, and to the highest one's.
struct Ends {
  std::int64_t low = 0, high = 0;
  Ends(const Shape& shape, const Placement& placement) {
    for (std::size_t d = 0; d < shape.size(); ++d)
      if (shape[d] > 0) (placement.strides[d] < 0 ? low : high) += placement.strides[d] * (shape[d] - 1);
  }
};

/// What a tensor takes in memory, in bytes.
struct Extent {
  std::size_t span, side, offset;
  Extent(DType type, const Shape& shape, const Placement& placement, Edge edge, std::int64_t reach) {
    const Ends ends(shape, placement);
    const std::int64_t elements = count_of(shape) ? ends.high - ends.low + 1 : 0;
    span = static_cast<std::size_t>(bytes_of(type, elements));
    // As wide as the elements' span or as others', to a point: a wrong stride then still lands in it.
    const std::size_t wide = static_cast<std::size_t>(bytes_of(type, std::max(elements, reach)));
    side = std::max<std::size_t>(64 * width_of(type), std::min<std::size_t>((wide + 63) / 64 * 64, 1 << 20));
    offset = edge == Edge::none ? static_cast<std::size_t>(bytes_of(type, placement.offset)) : 0;
  }
  std::size_t bytes() const { return side + offset + span + side; }
};

}  // namespace

Tensor::Tensor(DType type, const Shape& shape, const Placement& placement, Edge edge, std::int64_t reach,
               const Bytes* elements)
    : edge_(edge), memory_(Extent(type, shape, placement, edge, reach).bytes()) {
  view_.dtype = type;
  view_.rank = static_cast<int>(shape.size());
  for (std::size_t d = 0; d < shape.size(); ++d)
    view_.shape[d] = shape[d], view_.stride[d] = placement.strides[d];
  const Extent extent(type, shape, placement, edge, reach);
  first_ = edge == Edge::none    ? memory() + extent.side + extent.offset
           : edge == Edge::front ? memory()
                                 : memory() + bytes() - extent.span;
  last_ = first_ + extent.span;
  view_.data = first_ - Ends(shape, placement).low * static_cast<std::int64_t>(width_of(type));
  if (elements) {
    fill(*elements);
    return;
  }
  guard(false);
  std::memset(memory(), static_cast<int>(poison(type)), bytes());
  std::memset(memory_.before(), static_cast<int>(poison(type)), bytes());
  guard(true);
}

Tensor::~Tensor() { guard(false); }

void Tensor::guard([[maybe_unused]] bool on) const {
#if defined(__SANITIZE_ADDRESS__)
  if (edge_ != Edge::none) return;
  // In whole 8-byte groups, as AddressSanitizer keeps its books; the bytes beside the elements may stay
  // readable.
  const auto up = [](std::byte* p) {
    return reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(p) + 7) / 8 * 8);
  };
  const auto down = [](std::byte* p) {
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(p) / 8 * 8);
  };
  std::byte *front = down(first_), *back = up(last_), *end = memory() + bytes();
  if (on) {
    ASAN_POISON_MEMORY_REGION(memory(), static_cast<std::size_t>(front - memory()));
    ASAN_POISON_MEMORY_REGION(back, static_cast<std::size_t>(end - back));
  } else {
    ASAN_UNPOISON_MEMORY_REGION(memory(), bytes());
  }
#endif
}

void Tensor::fill(const Bytes& dense) {
  guard(false);
  paint_input(view_.dtype, memory(), bytes());
  scatter(view_, dense.data());
  std::memcpy(memory_.before(), memory(), bytes());
  guard(true);
}

Bytes Tensor::read() const {
  Bytes dense(static_cast<std::size_t>(view_.size()) * width_of(view_.dtype));
  gather(view_, dense.data());
  return dense;
}

std::string Tensor::restore(bool elements_too) {
  guard(false);
  if (!elements_too && is_packed(view_.dtype)) {
    Bytes was(static_cast<std::size_t>(view_.size()));
    ConstView before = view_;
    before.data = memory_.before() + (first_ - memory());
    gather(before, was.data());
    scatter(view_, was.data());
  } else if (!elements_too) {  // the elements were read; put back what was in their places
    for_lines(view_, [&](std::byte* line, std::int64_t count, std::int64_t stride) {
      const std::size_t width = width_of(view_.dtype),
                        run = stride == 1 ? static_cast<std::size_t>(count) : 1;
      for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(run)) {
        std::byte* element = line + i * stride * static_cast<std::int64_t>(width);
        std::memcpy(element, memory_.before() + (element - memory()), width * run);
      }
    });
  }
  std::string what;
  if (std::memcmp(memory(), memory_.before(), bytes()) != 0) {
    const auto at = std::mismatch(memory(), memory() + bytes(), memory_.before()).first;
    if (at < first_)
      what = "at byte " + std::to_string(first_ - at) + " before its first element";
    else if (at >= last_)
      what = "at byte " + std::to_string(at - last_ + 1) + " past its last element";
    else
      what = "at byte " + std::to_string(at - first_) + (elements_too ? "" : ", between its elements");
    std::memcpy(memory(), memory_.before(), bytes());
  }
  guard(true);
  return what;
}

}  // namespace rooftile::harness
