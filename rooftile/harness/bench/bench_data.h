#pragma once
// The operands of one case in memory, as the bench needs them.
#include <cstdint>
#include <string>
#include <vector>

#include "rooftile/harness/bench/memory_block.h"
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

/// An operand and its place.
struct Placed {
  Operand operand;
  View view;
  std::size_t bytes = 0;
  std::vector<char> pattern;  ///< what fills it again and again; empty for an output
  bool written() const { return operand.kind != Operand::Kind::input; }
};

/// Inputs filled with random values (zeros go to memory twice as fast on some machines), outputs poisoned,
/// all of it touched, on huge pages where the system grants them. Contiguous layouts only. The constructor
/// throws std::runtime_error with a sentence where that cannot be had.
class BenchData {
 public:
  BenchData(const Spec& spec, const Case& c);

  const Arguments& arguments() const { return arguments_; }
  const std::vector<Placed>& operands() const { return operands_; }
  std::size_t bytes() const { return bytes_; }  ///< of all operands
  bool changes_inputs() const;  ///< an operand is read and written: a second call sees other values

  void refill();                    ///< what is read gets its first values again
  void poison(unsigned char with);  ///< each byte of what is only written; 0xff makes every float a NaN
  std::uint64_t hash() const;       ///< of all that is written
  std::string not_finite() const;   ///< a sentence that names an output with a NaN or infinity; else empty
  void flush() const;               ///< out of every cache

  /// Output `index`'s values at up to `kSampled` places, evenly spread.
  std::vector<double> sample(std::size_t index) const;
  static constexpr std::int64_t kSampled = 997;

 private:
  std::vector<Placed> operands_;
  Arguments arguments_;
  MemoryBlock block_;
  std::size_t bytes_ = 0;
  bool finite_inputs_ = true;
  const Case case_;
  void (*const prepare_)(const Case&, const Arguments&);  ///< the spec's; null: nothing
};

/// Fills [to, to + bytes) with the pattern, repeated.
void repeat(char* to, std::size_t bytes, const std::vector<char>& pattern);

/// Element `i` of an array of `dtype`, as a double.
double element(const void* data, DType dtype, std::int64_t i);

/// "64x1024".
std::string dimensions(const Shape& shape);

}  // namespace rooftile::harness
