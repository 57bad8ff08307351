#pragma once
// Functions that treat each element by itself and have a signature: their problem, and how it is made.
#include "rooftile/core/rows.h"
#include "rooftile/core/signature.h"

namespace rooftile {

/// What passes to the launches: outputs first, then inputs, each in the signature's order.
template <int kOperands>
struct ElementsProblem {
  Rows<kOperands> rows;
  const void* data[kOperands];
  DType dtype;
  double options[Signature::kMaxOptions];

  bool flag(int option) const { return options[option] != 0; }
};

namespace detail {
template <int kOperands>
Status launch_elements(const Queue& queue, const Op& op, const Call& call) {
  const Signature& s = op.signature;
  const ConstView* views[kOperands];
  int count = 0;
  for (const bool outputs : {true, false})
    for (int o = 0; o < kOperands; ++o)
      if ((s.operands[o].role != Signature::Role::input) == outputs) views[count++] = call.views[o];
  ElementsProblem<kOperands> problem{elements_of(views), {}, views[0]->dtype, {}};
  for (int o = 0; o < kOperands; ++o) problem.data[o] = views[o]->data;
  for (int k = 0; k < s.option_count(); ++k) problem.options[k] = call.options[k];
  return dispatch(queue, op, &problem, call.variant);
}

inline Status takes_all(const void*) { return {}; }
inline constexpr Variant kElementsVariants[] = {
    {"tile", "all threads; one lane function", Role::standard, takes_all},
};
}  // namespace detail

/// The op of a signature whose operands have one shape, "...", and one dtype.
template <const Signature& kSignature>
constexpr Op elements_op(const char* name, const char* direction) {
  static_assert(
      [] {
        for (int o = 0; o < kSignature.operand_count(); ++o) {
          const Signature::Operand& operand = kSignature.operands[o];
          if (!operand.shape.outer || operand.shape.count != 0 || operand.optional ||
              operand.type != kSignature.operands[0].type)
            return false;
        }
        return true;
      }(),
      "rooftile::elements_op: all operands have the shape \"...\" and one dtype letter, none is optional");
  return {name,
          direction,
          kSignature.function,
          detail::kElementsVariants,
          kSignature,
          &detail::launch_elements<kSignature.operand_count()>};
}

}  // namespace rooftile
