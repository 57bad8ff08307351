#pragma once
// Functions over lists of tensors: what passes from validation to their launches.
#include "rooftile/core/rows.h"
#include "rooftile/core/signature.h"

namespace rooftile {

/// Item i of each list: tensors of one shape. One that is absent has null data.
template <int kOperands>
struct ListItem {
  Rows<kOperands> rows;
  void* data[kOperands];
  DType dtype[kOperands];

  constexpr std::int64_t size() const { return rows.rows * rows.columns; }
  constexpr bool has(int operand) const { return data[operand] != nullptr; }
  bool contiguous() const { return rows.rows == 1 && rows.dense(); }
};

/// `kOperands` lists, a call's first operands, of which the first is never absent; and what the call says
/// beside them.
template <class N, int kOperands>
struct ListsProblem {
  using Numbers = N;
  Numbers numbers;
  const Call* call;

  std::int64_t count() const { return call->tensors; }
  std::int64_t size(std::int64_t place) const { return call->item(0, place)->size(); }
  ListItem<kOperands> item(std::int64_t place) const {
    const ConstView* views[kOperands] = {};
    bool there[kOperands];
    for (int o = 0; o < kOperands; ++o) {
      const ConstView* its = call->item(o, place);
      there[o] = its && its->present();
      views[o] = there[o] ? its : views[0];  // for its strides
    }
    ListItem<kOperands> item{elements_of(views), {}, {}};
    for (int o = 0; o < kOperands; ++o) {
      item.data[o] = there[o] ? const_cast<void*>(views[o]->data) : nullptr;
      item.dtype[o] = views[o]->dtype;
    }
    return item;
  }
};

/// An optional operand of one f32 on the device: null where it is absent, whatever its view's pointer is.
inline const float* number_of(const ConstView& v) {
  return v.present() ? static_cast<const float*>(v.data) : nullptr;
}

namespace detail {
inline Status takes_any_list(const void*) { return {}; }
}  // namespace detail

}  // namespace rooftile
