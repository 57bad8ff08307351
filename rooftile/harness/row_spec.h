#pragma once
// The spec of a function that computes row by row and has a signature (rooftile/core/row_problem.h):
// operands, dtypes, bytes, flops, call, workspace and cases follow from it. The op's cases.h adds the oracle,
// and what its arithmetic needs.
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

/// What a row function's spec does not follow from.
struct RowSpec {
  const char* function;
  OracleFunctions oracle;
  double c = 4;
  const char* reason;  ///< of the tolerance
  const char* gradient_of = nullptr;
  /// Values of options to try on plain rows, beside those that the harness tries with hostile inputs.
  std::map<std::string, std::vector<double>> values = {};
  /// Operands that a case lacks unless it says otherwise; the other optional ones are there.
  std::vector<std::string> absent = {};
};

/// Parameters of its cases: the options by name, and the optional operands: 0 absent; 1; of a vector, a
/// scalar or their gradients 2: f32, whatever x's dtype.
Spec row_spec(const RowSpec& row);

/// All sizes but the last, multiplied.
std::int64_t rows_of_case(const Case& c);
/// To the memory format of `type` and back: what a tensor of that dtype would hold.
double rounded_to(DType type, double value);

}  // namespace rooftile::harness
