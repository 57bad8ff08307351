#include "rooftile/ops/gated/gated.h"

#include "rooftile/core/elements.h"

namespace rooftile {
namespace {

constexpr Signature::Types kGatedTypes{'T', {DType::f32, DType::f16, DType::bf16}};

constexpr Signature gated_signature(const char* function, Signature::Option option) {
  return {function,
          {kGatedTypes},
          {input("gate", 'T', "..."), input("up", 'T', "..."), output("y", 'T', "...", "gate up")},
          {option}};
}
constexpr Signature gated_backward_signature(const char* function, Signature::Option option) {
  return {function,
          {kGatedTypes},
          {input("gate", 'T', "..."), input("up", 'T', "..."), input("dy", 'T', "..."),
           output("dgate", 'T', "...", "gate up dy"), output("dup", 'T', "...", "gate up dy")},
          {option}};
}

constexpr Signature kGeglu = gated_signature("geglu", flag("tanh"));
constexpr Signature kGegluBackward = gated_backward_signature("geglu_backward", flag("tanh"));
constexpr Signature kSwiglu = gated_signature("swiglu", real("beta", 1));
constexpr Signature kSwigluBackward = gated_backward_signature("swiglu_backward", real("beta", 1));

template <class V>
Halves<V> halves_of(V x) {
  if (x.rank < 1 || x.rank > kMaxRank || x.shape[x.rank - 1] % 2 != 0 ||
      static_cast<int>(x.dtype) >= kDTypes || bits(x.dtype) < 8)
    return {};
  const int last = x.rank - 1;
  x.shape[last] /= 2;
  Halves<V> halves{x, x};
  const std::int64_t distance = x.shape[last] * x.stride[last] * (bits(x.dtype) / 8);
  if (x.data) halves.last.data = static_cast<const char*>(x.data) + distance;
  return halves;
}

}  // namespace

extern const Op geglu_op = elements_op<kGeglu>("geglu", "forward");
extern const Op geglu_backward_op = elements_op<kGegluBackward>("geglu", "backward");
extern const Op swiglu_op = elements_op<kSwiglu>("swiglu", "forward");
extern const Op swiglu_backward_op = elements_op<kSwigluBackward>("swiglu", "backward");
extern const Op* const gated_ops[] = {&geglu_op, &geglu_backward_op, &swiglu_op, &swiglu_backward_op,
                                      nullptr};

Halves<ConstView> split_halves(ConstView x) { return halves_of(x); }
Halves<View> split_halves(View x) { return halves_of(x); }

Status geglu(const Queue& queue, ConstView gate, ConstView up, View y, const GegluOptions& options) {
  return call(queue, geglu_op, {&gate, &up, &y}, {double(options.tanh)}, options.variant);
}
Status geglu_backward(const Queue& queue, ConstView gate, ConstView up, ConstView dy, View dgate, View dup,
                      const GegluOptions& options) {
  return call(queue, geglu_backward_op, {&gate, &up, &dy, &dgate, &dup}, {double(options.tanh)},
              options.variant);
}
Status swiglu(const Queue& queue, ConstView gate, ConstView up, View y, const SwigluOptions& options) {
  return call(queue, swiglu_op, {&gate, &up, &y}, {options.beta}, options.variant);
}
Status swiglu_backward(const Queue& queue, ConstView gate, ConstView up, ConstView dy, View dgate, View dup,
                       const SwigluOptions& options) {
  return call(queue, swiglu_backward_op, {&gate, &up, &dy, &dgate, &dup}, {options.beta}, options.variant);
}

}  // namespace rooftile
