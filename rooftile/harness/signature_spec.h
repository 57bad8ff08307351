#pragma once
// The spec of an element-by-element function that has a signature: operands, dtypes, bytes, call and standard
// cases follow from it. The op's cases.h adds the oracle, and the option's values to try.
#include "rooftile/core/signature.h"
#include "rooftile/harness/bounded.h"
#include "rooftile/harness/lane_oracle.h"
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

/// `values`: of the function's option, if it has one; the first is that of a case that does not say. None:
/// a flag's are 0 and 1. The flops are the oracle's. `exact`: no arithmetic, every bit must match. Else the
/// tolerance is a multiple of the oracle's own error bound. A backward is checked as its op's forward's.
Spec elements_spec(const char* function, const OracleFunctions& oracle, std::vector<double> values = {},
                   bool exact = false);

/// The same where the oracle is the equation f of one element: lane_oracle.h.
template <int kInputs, auto f>
Spec lanes_spec(const char* function, std::vector<double> values = {}) {
  Spec spec = elements_spec(function, bounded_oracles<LaneOracle<kInputs, f>, true>(), std::move(values));
  spec.largest_exponent = 1000;  // a bound of an error, in units of a rounding, must be a number too
  return spec;
}
/// The same of what has no arithmetic.
template <int kInputs, auto f>
Spec exact_lanes_spec(const char* function) {
  return elements_spec(function, oracles<LaneOracle<kInputs, f>>(), {}, true);
}

/// The dtypes of a signature's first letter.
std::vector<DType> dtypes_of(const Signature& signature);
/// Its options, a real one's range as far as floats reach.
std::vector<Option> options_of(const Signature& signature);
/// How many tensors each list of a case has: its parameter "tensors", otherwise one.
inline constexpr const char* kTensors = "tensors";
inline std::int64_t tensors_of(const Signature& s, const Case& c) {
  return s.has_lists() ? static_cast<std::int64_t>(c.parameter(kTensors, 1)) : 1;
}
/// A list's items by name: "gradient", "gradient[1]", "gradient[2]", …
inline std::string item_name(const char* operand, std::int64_t item) {
  return item == 0 ? operand : std::string(operand) + "[" + std::to_string(item) + "]";
}
/// Calls run(call) with a case's views and options in the signature's order; `its` say what a case has that
/// names no value.
template <class Run>
Status with_call(const Signature& s, const std::vector<Option>& its, const Case& c,
                 const Arguments& arguments, Run run) {
  const std::int64_t tensors = tensors_of(s, c);
  std::vector<ConstView> views[Signature::kMaxOperands];
  const ConstView* pointers[Signature::kMaxOperands];
  double options[Signature::kMaxOptions];
  for (int o = 0; o < s.operand_count(); ++o) {
    for (std::int64_t item = 0; item < (s.operands[o].list ? tensors : 1); ++item)
      views[o].push_back(arguments.in(item_name(s.operands[o].name, item)));
    pointers[o] = views[o].data();
  }
  for (int k = 0; k < s.option_count(); ++k) {
    const Option& option = its[static_cast<std::size_t>(k)];
    options[k] = c.parameter(option.name, option.otherwise);
  }
  return run(Call{pointers, options, nullptr, {}, tensors});
}

/// Calls a function on views in its signature's order, every option at its default.
Status call_with_defaults(const Queue& queue, const Op& op, const std::vector<ConstView>& views);

}  // namespace rooftile::harness
