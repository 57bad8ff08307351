#pragma once
// What a function takes, in words: for `rooftile list` and docs/reference.md.
#include <string>
#include <vector>

#include "rooftile/core/signature.h"

namespace rooftile::harness {

struct OperandText {
  std::string name, role, dtypes, shape, notes;
};
/// {"weight", "input", "f32 or x's", "C", "optional"}, in the call's order.
std::vector<OperandText> operand_texts(const Signature& signature);

struct OptionText {
  std::string name, values, default_value;
};
/// {"eps", "finite, not negative", "1e-05"}.
std::vector<OptionText> option_texts(const Signature& signature);

}  // namespace rooftile::harness
