#pragma once
// What a signature tells the harness: a spec's operands, dtypes, bytes and call. The op's cases.h adds the
// oracle, the tolerance and the cases.
#include "rooftile/core/signature.h"
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

namespace detail {

inline Operand::Kind kind_of(Signature::Role role) {
  return role == Signature::Role::input    ? Operand::Kind::input
         : role == Signature::Role::output ? Operand::Kind::output
                                           : Operand::Kind::inout;
}

/// Of functions whose operands have one shape, "...", and one dtype letter.
template <const Signature& kSignature>
std::vector<Operand> operands(const Case& c) {
  static const std::vector<std::string> may_be = [] {
    std::vector<std::string> first;  // of the inputs that an output may be, in place is tried with the first
    for (int o = 0; o < kSignature.operand_count(); ++o) {
      const std::string list = kSignature.operands[o].may_be;
      first.push_back(list.substr(0, list.find(' ')));
    }
    return first;
  }();
  std::vector<Operand> list;
  int outputs = 0;
  for (int o = 0; o < kSignature.operand_count(); ++o) {
    const Signature::Operand& s = kSignature.operands[o];
    Operand operand{s.name, kind_of(s.role), c.dtype, c.shape};
    operand.optional = s.optional;
    // Of several outputs only the first: they may not be one another.
    if (s.role == Signature::Role::output && outputs++ == 0 && !may_be[static_cast<std::size_t>(o)].empty())
      operand.may_be = may_be[static_cast<std::size_t>(o)].c_str();
    list.push_back(operand);
  }
  return list;
}

template <const Signature& kSignature>
double option(const Case& c, int k) {
  return c.parameter(kSignature.options[k].name, kSignature.options[k].otherwise);
}

template <const Signature& kSignature>
Status call(const Queue& queue, const Case& c, const Arguments& arguments, const char* variant,
            Workspace workspace) {
  ConstView views[Signature::kMaxOperands];
  const ConstView* pointers[Signature::kMaxOperands];
  double options[Signature::kMaxOptions];
  for (int o = 0; o < kSignature.operand_count(); ++o) {
    views[o] = arguments.in(kSignature.operands[o].name);
    pointers[o] = &views[o];
  }
  for (int k = 0; k < kSignature.option_count(); ++k) options[k] = option<kSignature>(c, k);
  return rooftile::call(queue, *find_op(kSignature.function), Call{pointers, options, variant, workspace});
}

template <const Signature& kSignature>
double bytes(const Case& c) {
  double elements = 1;
  for (std::int64_t s : c.shape) elements *= static_cast<double>(s);
  return kSignature.operand_count() * elements * bits(c.dtype) / 8;
}

}  // namespace detail

/// A spec without oracle, flops, tolerance, cases and bench.
template <const Signature& kSignature>
Spec spec_of() {
  Spec spec{};
  spec.function = kSignature.function;
  spec.axes = "any shape";
  for (int t = 0; t < kDTypes; ++t)
    if (kSignature.types[0].mask >> t & 1) spec.dtypes.push_back(static_cast<DType>(t));
  spec.operands = &detail::operands<kSignature>;
  spec.call = &detail::call<kSignature>;
  spec.bytes = &detail::bytes<kSignature>;
  return spec;
}

}  // namespace rooftile::harness
