#pragma once
// A call of what exercises compute and no function of the library does
// (rooftile/harness/course/exercise_functions.h).
#include <cstdint>

#include "rooftile/core/tensor_view.h"

namespace rooftile::exercise {

/// Its operands in the order of its spec, each dense.
struct FunctionProblem {
  static constexpr int kMaxOperands = 4;
  View operands[kMaxOperands];

  template <class T>
  T* data(int operand) const {
    return static_cast<T*>(operands[operand].mutable_data());
  }
  std::int64_t size(int operand) const { return operands[operand].size(); }
};

}  // namespace rooftile::exercise
