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
  bool far_rows = false;  ///< whether rows are right whose squares leave f32
};

/// Parameters of its cases: the options by name, and the optional operands: 0 absent; 1; of a vector, a
/// scalar or their gradients 2: f32, whatever x's dtype.
Spec row_spec(const RowSpec& row);

/// Cases of Fill::far_rows: rows of warps, of parts of one, of blocks, of clusters, and such as nothing
/// holds, as they lie in memory and otherwise; with `parameters`.
std::vector<Case> far_row_cases(DType type, const std::map<std::string, double>& parameters);

/// All sizes but the last, multiplied.
std::int64_t rows_of_case(const Case& c);
/// A real option as the kernel has it: a float, of f64 rows a double.
double real_of(const Case& c, const char* option, double otherwise);
/// The least normal number of what the kernel computes in.
double least_normal(const Case& c);
/// What a row function's kernel computes in.
inline DType row_arithmetic(const Case& c) { return c.dtype == DType::f64 ? DType::f64 : DType::f32; }
/// To the memory format of `type` and back: what a tensor of that dtype would hold.
double rounded_to(DType type, double value);

}  // namespace rooftile::harness
