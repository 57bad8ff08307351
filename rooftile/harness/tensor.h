#pragma once
// Elements of any dtype as doubles, and tensors in guarded memory.
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "rooftile/harness/spec.h"

namespace rooftile::harness {

using Bytes = std::vector<std::byte>;

std::int64_t count_of(const Shape& shape);
inline std::size_t width_of(DType type) { return static_cast<std::size_t>(bits(type) / 8); }

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
/// By layout. Ranks that a layout means nothing for are contiguous.
Placement place(const Operand& operand, Layout layout, std::int64_t offset);
/// Any: dimensions in any order, reversed, apart, or (inputs) of stride 0; up to 31 elements off a boundary.
Placement place_at_random(const Operand& operand, std::mt19937_64& random);

/// Dense elements into a view's places and back.
void scatter(const View& view, const std::byte* dense);
void gather(const ConstView& view, std::byte* dense);

/// Which end of a tensor touches a page that may not be accessed.
enum class Edge { none, front, back };

/// A tensor whose memory is NaN (integers: 0xA5) wherever it is not an element, 64 elements to both sides and
/// more; under AddressSanitizer these may not even be read.
class Tensor {
 public:
  Tensor(DType type, const Shape& shape, const Placement& placement, Edge edge = Edge::none);
  ~Tensor();
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  const View& view() const { return view_; }
  /// Puts elements in, which the tensor from now on holds "before" each call; without, they are poisoned like
  /// the rest.
  void fill(const Bytes& dense);
  /// The elements after a call.
  Bytes read() const;
  /// Where memory differs from what it was before: "at byte 3 before its first element"; empty where it does
  /// not. `elements_too`: nor may the elements have changed. Afterwards everything is as before.
  std::string restore(bool elements_too);
  /// All of its memory, guards included: for a copy of it on a device.
  std::byte* memory() const { return memory_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void guard(bool on) const;

  View view_;
  std::size_t bytes_ = 0;  // of the guarded memory
  std::byte* memory_ = nullptr;
  std::byte *first_ = nullptr, *last_ = nullptr;  // what the elements span
  void* mapping_ = nullptr;                       // with an edge
  std::size_t mapped_ = 0;
  Bytes before_;
};

/// What poisoned memory of a dtype holds: NaN in each float format.
constexpr std::byte poison(DType type) { return is_floating(type) ? std::byte{0xFF} : std::byte{0xA5}; }

}  // namespace rooftile::harness
