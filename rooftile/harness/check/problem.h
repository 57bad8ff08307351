#pragma once
// A case made concrete: operands with their values, and the oracle's answer.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rooftile/harness/tensor.h"

namespace rooftile::harness {

/// What an output should hold: value + rest (rest: what a double leaves of a quadruple; empty where the
/// oracle computed in double), the tolerance's magnitude, and the value rounded to the output's dtype.
struct Answer {
  std::vector<double> value, rest, magnitude;
  Bytes rounded;
  std::vector<double> factors = {};  ///< Array::factors; as rest, empty where there are none
};

class Problem {
 public:
  /// Fills the inputs. Throws std::runtime_error with a sentence where the spec contradicts itself.
  Problem(const Spec& spec, const Case& c, std::uint64_t seed);
  /// With inputs given by operand, as doubles that their dtypes hold exactly.
  Problem(const Spec& spec, const Case& c, std::vector<std::vector<double>> values);

  const Spec& spec() const { return *spec_; }
  const Case& what() const { return case_; }
  const std::vector<Operand>& operands() const { return operands_; }
  bool is_output(std::size_t o) const { return operands_[o].kind != Operand::Kind::input; }
  bool is_input(std::size_t o) const { return operands_[o].kind != Operand::Kind::output; }
  const std::vector<double>& values(std::size_t o) const { return values_[o]; }
  const Bytes& bytes(std::size_t o) const { return bytes_[o]; }
  std::size_t index_of(const std::string& operand) const;  ///< operands().size() where there is none

  /// By the oracle, on first use: in double, where an output is f64 in quadruple precision.
  const Answer& answer(std::size_t o) const;

  /// The same inputs as an oracle in scalar S takes them.
  template <class S>
  Arrays<S> arrays() const {
    Arrays<S> a;
    for (std::size_t o = 0; o < operands_.size(); ++o) {
      std::vector<S> v(static_cast<std::size_t>(count_of(operands_[o].shape)), S(0.0));
      if (is_input(o))
        for (std::size_t i = 0; i < v.size(); ++i) set(v[i], values_[o][i]);
      a[operands_[o].name] = Array<S>(std::move(v));
    }
    return a;
  }

  /// Indices [begin, begin + count) of the case's dimension `dim` alone: operands that have it are cut in the
  /// same dimension. Nothing where the op's operands do not follow the case's shape so plainly.
  std::optional<Problem> slice(std::size_t dim, std::int64_t begin, std::int64_t count) const;

 private:
  template <class S>
  static void set(S& scalar, double value) {
    if constexpr (requires { scalar.value; })
      scalar.value = value;  // as it is: only what is computed gets rounded
    else
      scalar = value;
  }
  void encode_inputs();

  const Spec* spec_;
  Case case_;
  std::vector<Operand> operands_;
  std::vector<std::vector<double>> values_;  // of inputs
  std::vector<Bytes> bytes_;
  mutable std::vector<Answer> answers_;
};

/// "{5, 100} f16 scale=0.125, strided_columns, wide, in place".
std::string describe(const Case& c);
std::string describe(const Shape& shape);

/// The parts of `dense`, an array of `shape`, that begin at `begin` and are `part` long in each dimension.
std::vector<double> cut(const std::vector<double>& dense, const Shape& shape, const Shape& begin,
                        const Shape& part);

}  // namespace rooftile::harness
