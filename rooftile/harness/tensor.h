#pragma once
// Elements of any dtype as doubles, and tensors in guarded memory.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rooftile/harness/guarded_memory.h"
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

using Bytes = std::vector<std::byte>;

std::int64_t count_of(const Shape& shape);
/// Two elements to a byte in memory.
constexpr bool is_packed(DType type) { return bits(type) < 8; }
/// Bytes of an element in `Bytes`, where packed ones have one each; elsewhere as in memory.
inline std::size_t width_of(DType type) {
  return is_packed(type) ? 1 : static_cast<std::size_t>(bits(type) / 8);
}

/// `count` dense elements to doubles, exactly, and back in one rounding (integers: nearest, clamped).
void decode(DType type, const std::byte* from, std::int64_t count, double* to);
void encode(DType type, const double* from, std::int64_t count, std::byte* to);
std::vector<double> decode(DType type, const Bytes& from);
Bytes encode(DType type, const std::vector<double>& from);

/// Where an operand's elements lie: strides in elements, and the first one's distance from a 64-byte
/// boundary.
struct Placement {
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;
};
/// By layout. Ranks that a layout means nothing for are contiguous, and so are packed elements.
Placement place(const Operand& operand, Layout layout, std::int64_t offset);
/// Elements from the first to behind the last that an operand placed so touches.
std::int64_t span_of(const Shape& shape, const Placement& placement);

/// Dense elements into a view's places and back.
void scatter(const View& view, const std::byte* dense);
void gather(const ConstView& view, std::byte* dense);

/// Which end of a tensor touches a page that may not be accessed.
enum class Edge { none, front, back };

/// A tensor whose memory is NaN (integers: 0xA5; once filled: 0x3C) wherever it is not an element, 64
/// elements to both sides and more; under AddressSanitizer these may not even be read.
class Tensor {
 public:
  /// `elements`: what it holds, dense; null: poison. `reach`: elements to both sides that a wrong stride
  /// (another operand's, say) may lead to.
  Tensor(DType type, const Shape& shape, const Placement& placement, Edge edge = Edge::none,
         std::int64_t reach = 0, const Bytes* elements = nullptr);
  ~Tensor();
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  const View& view() const { return view_; }
  /// Puts elements in, which the tensor from now on holds "before" each call.
  void fill(const Bytes& dense);
  /// The elements after a call.
  Bytes read() const;
  /// Where memory differs from what it was before: "at byte 3 before its first element"; empty where it does
  /// not. `elements_too`: nor may the elements have changed. Afterwards everything is as before.
  std::string restore(bool elements_too);
  /// All of its memory, guards included: for a copy of it on a device.
  std::byte* memory() const { return memory_.data(); }
  std::size_t bytes() const { return memory_.size(); }

 private:
  void guard(bool on) const;

  View view_;
  [[maybe_unused]] Edge edge_;  // AddressSanitizer's
  GuardedMemory memory_;
  std::byte *first_ = nullptr, *last_ = nullptr;  // what the elements span
};

/// What poisoned memory of a dtype holds: NaN in each float format.
constexpr std::byte poison(DType type) { return is_floating(type) ? std::byte{0xFF} : std::byte{0xA5}; }

}  // namespace rooftile::harness
