#pragma once
// Functions that treat each element by itself and have a signature: their problem, and how it is made.
#include "rooftile/core/rows.h"
#include "rooftile/core/signature.h"

namespace rooftile {

/// What passes to the launches: outputs first, then inputs, each in the signature's order; what is read and
/// written is both.
template <int kOperands>
struct ElementsProblem {
  Rows<kOperands> rows;
  const void* data[kOperands];
  DType dtype;
  double options[Signature::kMaxOptions];

  bool flag(int option) const { return options[option] != 0; }
  /// With these operands alone.
  template <int... kKept>
  ElementsProblem<sizeof...(kKept)> only() const {
    ElementsProblem<sizeof...(kKept)> p{{}, {data[kKept]...}, dtype, {}};
    p.rows.rows = rows.rows;
    p.rows.columns = rows.columns;
    p.rows.rank = rows.rank;
    std::copy_n(rows.extent, kMaxRank, p.rows.extent);
    int to = 0;
    ((std::copy_n(rows.stride[kKept], kMaxRank, p.rows.stride[to]),
      p.rows.column_stride[to++] = rows.column_stride[kKept]),
     ...);
    return p;
  }
};

namespace detail {
/// Which of the signature's operands the problem's are.
struct ElementsOrder {
  int count = 0;
  int place[2 * Signature::kMaxOperands] = {};
};
constexpr ElementsOrder elements_order(const Signature& s) {
  ElementsOrder order;
  for (const bool outputs : {true, false})
    for (int o = 0; o < s.operand_count(); ++o)
      if (s.operands[o].role != (outputs ? Signature::Role::input : Signature::Role::output))
        order.place[order.count++] = o;
  return order;
}

template <const Signature& kSignature>
Status launch_elements(const Queue& queue, const Op& op, const Call& call) {
  static constexpr ElementsOrder kOrder = elements_order(kSignature);
  constexpr int kOperands = kOrder.count, kOptions = kSignature.option_count();
  const ConstView* views[kOperands];
  for (int o = 0; o < kOperands; ++o) views[o] = call.views[kOrder.place[o]];
  ElementsProblem<kOperands> problem{elements_of(views), {}, views[0]->dtype, {}};
  for (int o = 0; o < kOperands; ++o) problem.data[o] = views[o]->data;
  for (int k = 0; k < kOptions; ++k) problem.options[k] = call.options[k];
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
          &detail::launch_elements<kSignature>};
}

}  // namespace rooftile
