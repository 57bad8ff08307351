#include "rooftile/harness/tensor.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace rooftile::harness {
namespace {

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
      throw std::runtime_error("the harness has no tensors of packed 4-bit elements");
  }
}

/// All 65536 values of f16, which take 20 ns each to compute.
const std::vector<double>& f16_values() {
  static const std::vector<double> values = [] {
    std::vector<double> v(65536);
    for (std::uint32_t code = 0; code < 65536; ++code) v[code] = detail::SmallFloat<5, 10>::decode(code);
    return v;
  }();
  return values;
}

template <class T>
double to_number(T x) {
  if constexpr (std::is_same_v<T, f16>)
    return f16_values()[x.bits];
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
  } else if constexpr (std::is_same_v<T, bf16>) {
    // As SmallFloat<8, 7> does, in a tenth of the time: to odd in 24 bits, then to nearest in 8.
    if (x != x) return from_double<bf16>(x);
    float f = static_cast<float>(x);
    std::uint32_t code = std::bit_cast<std::uint32_t>(f);
    const double back = static_cast<double>(f);
    if (back != x && !std::isinf(f)) {
      if (std::fabs(back) > std::fabs(x)) --code;
      code |= 1;
    } else if (back != x) {
      return from_double<bf16>(x);
    }
    if (std::isinf(std::bit_cast<float>(code))) return {static_cast<std::uint16_t>(code >> 16)};
    return {static_cast<std::uint16_t>((code + 0x7FFF + ((code >> 16) & 1)) >> 16)};
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

template <bool kIn, class Dense>
void move_all(const ConstView& view, Dense dense) {
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
  if (!operand.keeps_layout) layout = Layout::contiguous;
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

Placement place_at_random(const Operand& operand, std::mt19937_64& random) {
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  Placement p{std::vector<std::int64_t>(operand.shape.size()), below(32)};
  std::vector<std::size_t> order(operand.shape.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;
  if (!operand.keeps_layout) {
    std::int64_t step = 1;
    for (std::size_t d : order) p.strides[d] = step, step *= std::max<std::int64_t>(operand.shape[d], 1);
    return p;
  }
  if (below(4) == 0) std::shuffle(order.begin(), order.end(), random);
  std::int64_t step = below(4) == 0 ? 1 + below(4) : 1;
  for (std::size_t d : order) {
    if (operand.kind == Operand::Kind::input && below(16) == 0) {
      p.strides[d] = 0;
      continue;
    }
    p.strides[d] = below(8) == 0 ? -step : step;
    step = step * std::max<std::int64_t>(operand.shape[d], 1) + (below(2) ? below(20) : 0);
  }
  return p;
}

Tensor::Tensor(DType type, const Shape& shape, const Placement& placement, Edge edge) {
  const std::size_t width = width_of(type);
  view_.dtype = type;
  view_.rank = static_cast<int>(shape.size());
  std::int64_t low = 0, high = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    view_.shape[d] = shape[d];
    view_.stride[d] = placement.strides[d];
    if (shape[d] > 0) (placement.strides[d] < 0 ? low : high) += placement.strides[d] * (shape[d] - 1);
  }
  const std::size_t span = count_of(shape) ? static_cast<std::size_t>(high - low + 1) * width : 0;
  // As wide as the elements' span, to a point: a wrong stride then still lands in it.
  const std::size_t side = std::max<std::size_t>(64 * std::max<std::size_t>(width, 1),
                                                 std::min<std::size_t>((span + 63) / 64 * 64, 1 << 18));
  const std::size_t offset = static_cast<std::size_t>(placement.offset) * width;
  if (edge == Edge::none) {
    bytes_ = side + offset + span + side;
    memory_ = static_cast<std::byte*>(::operator new (bytes_, std::align_val_t{64}));
    first_ = memory_ + side + offset;
  } else {
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    bytes_ = (span + side + page - 1) / page * page;
    mapped_ = bytes_ + 2 * page;
    mapping_ = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping_ == MAP_FAILED) throw std::bad_alloc();
    memory_ = static_cast<std::byte*>(mapping_) + page;
    if (mprotect(memory_, bytes_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    first_ = edge == Edge::front ? memory_ : memory_ + bytes_ - span;
  }
  last_ = first_ + span;
  view_.data = first_ - low * static_cast<std::int64_t>(width);
  std::memset(memory_, static_cast<int>(poison(type)), bytes_);
  before_.assign(memory_, memory_ + bytes_);
  guard(true);
}

Tensor::~Tensor() {
  guard(false);
  if (mapping_)
    munmap(mapping_, mapped_);
  else
    ::operator delete (memory_, std::align_val_t{64});
}

void Tensor::guard([[maybe_unused]] bool on) const {
#if defined(__SANITIZE_ADDRESS__)
  if (mapping_) return;
  // In whole 8-byte groups, as AddressSanitizer keeps its books; the bytes beside the elements may stay
  // readable.
  const auto up = [](std::byte* p) {
    return reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(p) + 7) / 8 * 8);
  };
  const auto down = [](std::byte* p) {
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(p) / 8 * 8);
  };
  std::byte *front = down(first_), *back = up(last_), *end = memory_ + bytes_;
  if (on) {
    ASAN_POISON_MEMORY_REGION(memory_, static_cast<std::size_t>(front - memory_));
    ASAN_POISON_MEMORY_REGION(back, static_cast<std::size_t>(end - back));
  } else {
    ASAN_UNPOISON_MEMORY_REGION(memory_, bytes_);
  }
#endif
}

void Tensor::fill(const Bytes& dense) {
  guard(false);
  scatter(view_, dense.data());
  before_.assign(memory_, memory_ + bytes_);
  guard(true);
}

Bytes Tensor::read() const {
  Bytes dense(static_cast<std::size_t>(view_.size()) * width_of(view_.dtype));
  gather(view_, dense.data());
  return dense;
}

std::string Tensor::restore(bool elements_too) {
  guard(false);
  if (!elements_too) {  // the elements were read; put back what was in their places
    for_lines(view_, [&](std::byte* line, std::int64_t count, std::int64_t stride) {
      const std::size_t width = width_of(view_.dtype),
                        run = stride == 1 ? static_cast<std::size_t>(count) : 1;
      for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(run)) {
        std::byte* element = line + i * stride * static_cast<std::int64_t>(width);
        std::memcpy(element, before_.data() + (element - memory_), width * run);
      }
    });
  }
  std::string what;
  if (bytes_ && std::memcmp(memory_, before_.data(), bytes_) != 0) {
    const auto at = std::mismatch(before_.begin(), before_.end(), memory_).second;
    if (at < first_)
      what = "at byte " + std::to_string(first_ - at) + " before its first element";
    else if (at >= last_)
      what = "at byte " + std::to_string(at - last_ + 1) + " past its last element";
    else
      what = "at byte " + std::to_string(at - first_) + (elements_too ? "" : ", between its elements");
    std::memcpy(memory_, before_.data(), bytes_);
  }
  guard(true);
  return what;
}

}  // namespace rooftile::harness
