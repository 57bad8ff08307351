#pragma once
// What passes from validation (adamw.cpp) to the launches (adamw.cpu.cpp, adamw.cu).
#include "rooftile/core/rows.h"
#include "rooftile/core/signature.h"

namespace rooftile {

struct AdamwNumbers {
  double lr, beta1, beta2, eps, weight_decay;
  bool l2, maximize;
  std::int64_t step;  ///< where `steps` is null
  std::int64_t* steps;
  const float *gradient_scale, *found_inf;  ///< null: absent
};

/// One parameter's tensors, the operands in this order. One that is absent has null data.
struct AdamwTensor {
  enum Operand { kParameter, kGradient, kM, kV, kMaxV, kMaster, kOperands };
  Rows<kOperands> rows;
  void* data[kOperands];
  DType dtype[kOperands];

  constexpr std::int64_t size() const { return rows.rows * rows.columns; }
  constexpr bool has(int operand) const { return data[operand] != nullptr; }
  bool contiguous() const { return rows.rows == 1 && rows.dense(); }
  /// Read and written.
  std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (int o = 0; o < kOperands; ++o)
      if (has(o)) sum += (o == kGradient ? 1 : 2) * size() * (bits(dtype[o]) / 8);
    return sum;
  }
};

struct AdamwProblem {
  AdamwNumbers numbers;
  const Call* call;  ///< its lists are the first six operands

  std::int64_t count() const { return call->tensors; }
  AdamwTensor tensor(std::int64_t item) const {
    using T = AdamwTensor;
    const ConstView* views[T::kOperands];
    bool there[T::kOperands];
    for (int o = 0; o < T::kOperands; ++o) {
      const ConstView* its = call->item(o, item);
      there[o] = its && its->present();
      views[o] = there[o] ? its : views[T::kParameter];  // for its strides
    }
    AdamwTensor t{elements_of(views), {}, {}};
    for (int o = 0; o < T::kOperands; ++o) {
      t.data[o] = there[o] ? const_cast<void*>(views[o]->data) : nullptr;
      t.dtype[o] = views[o]->dtype;
    }
    return t;
  }
};

}  // namespace rooftile
