#pragma once
// A call that is asked about and not made: what the function and each of its variants answer.
#include <string>
#include <vector>

#include "cli/one_case.h"
#include "rooftile/core/op.h"
#include "rooftile/harness/spec.h"

namespace rooftile::cli {

struct Answer {
  const Op* op;
  const Variant* variant;
  bool available, chosen;
  std::string refusal;  ///< empty: the variant takes the call
};

/// What every variant answers to the case; empty where there is nothing to compute. Nothing is computed and
/// no memory taken. `layout`: contiguous (or empty), padded_rows, strided_columns or transposed. Throws a
/// Failure with the function's own sentence where it refuses the call.
std::vector<Answer> answers_to(const Queue& queue, const harness::Spec& spec, const harness::Case& c,
                               const std::string& layout = {});

/// Throws that Failure, or the sentence of the variant where it is named and refuses the call.
void check_taken(const OneCase& one, const std::string& variant);

}  // namespace rooftile::cli
