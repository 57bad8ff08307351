#pragma once
// What passes from validation (adamw_8bit.cpp) to the launches (adamw_8bit.cpu.cpp, adamw_8bit.cu).
#include "rooftile/core/lists.h"
#include "rooftile/ops/adamw/adamw.problem.h"
#include "rooftile/ops/adamw_8bit/adamw_8bit.maps.h"

namespace rooftile {

/// The lists, in the signature's order; those of one shape first.
enum Adamw8bitList {
  k8bitParameter,
  k8bitGradient,
  k8bitM,
  k8bitV,
  k8bitMaster,
  k8bitShaped,
  k8bitMAbsmax = k8bitShaped,
  k8bitVAbsmax,
  k8bitLists
};

/// One parameter's tensors. Rows are in row-major order, as blocks are.
struct Adamw8bitItem {
  Rows<k8bitShaped> rows;
  void* data[k8bitLists];  ///< null: absent
  DType dtype[k8bitLists];
  std::int64_t absmax_stride[2];

  constexpr std::int64_t size() const { return rows.rows * rows.columns; }
  constexpr std::int64_t blocks() const { return (size() + kDynamicBlock - 1) / kDynamicBlock; }
  bool contiguous() const {
    for (int o = 0; o < k8bitShaped; ++o) {
      std::int64_t expected = rows.columns;
      for (int d = rows.rank - 1; d >= 0; --d) {
        if (rows.stride[o][d] != expected) return false;
        expected *= rows.extent[d];
      }
      if (rows.columns > 1 && rows.column_stride[o] != 1) return false;
    }
    return blocks() <= 1 || (absmax_stride[0] == 1 && absmax_stride[1] == 1);
  }
};

struct Adamw8bitProblem {
  AdamwNumbers numbers;
  const Call* call;

  std::int64_t count() const { return call->tensors; }
  std::int64_t size(std::int64_t place) const { return call->item(0, place)->size(); }
  Adamw8bitItem item(std::int64_t place) const {
    const ConstView *views[k8bitLists] = {}, *shaped[k8bitShaped];
    bool there[k8bitLists];
    for (int o = 0; o < k8bitLists; ++o) {
      const ConstView* its = call->item(o, place);
      there[o] = its && its->present();
      views[o] = there[o] ? its : views[0];  // for its strides
      if (o < k8bitShaped) shaped[o] = views[o];
    }
    Adamw8bitItem item{row_major_of(shaped), {}, {}, {}};
    for (int o = 0; o < k8bitLists; ++o) {
      item.data[o] = there[o] ? const_cast<void*>(views[o]->data) : nullptr;
      item.dtype[o] = views[o]->dtype;
    }
    for (int o = 0; o < 2; ++o) item.absmax_stride[o] = views[k8bitMAbsmax + o]->stride[0];
    return item;
  }
};

}  // namespace rooftile
