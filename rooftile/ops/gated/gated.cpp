#include "rooftile/ops/gated/gated.h"

#include "rooftile/core/elements.h"

namespace rooftile {
namespace {

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

constexpr Signature::Types kGatedTypes =
    Signature::Types{'T', {DType::f32, DType::f16, DType::bf16}}.with_on_cpus(DType::f64);

}  // namespace

// f and its backward: their signatures, ops and calls. `option`: the signature's, whose value the last
// argument is.
#define ROOFTILE_GATED(f, Options, option, value)                                                           \
  static constexpr Signature f##_signature{                                                                 \
      #f,                                                                                                   \
      {kGatedTypes},                                                                                        \
      {input("gate", 'T', "..."), input("up", 'T', "..."), output("y", 'T', "...", "gate up")},             \
      {option}};                                                                                            \
  static constexpr Signature f##_backward_signature{                                                        \
      #f "_backward",                                                                                       \
      {kGatedTypes},                                                                                        \
      {input("gate", 'T', "..."), input("up", 'T', "..."), input("dy", 'T', "..."),                         \
       output("dgate", 'T', "...", "gate up dy"), output("dup", 'T', "...", "gate up dy")},                 \
      {option}};                                                                                            \
  extern const Op f##_op = elements_op<f##_signature>(#f, "forward");                                       \
  extern const Op f##_backward_op = elements_op<f##_backward_signature>(#f, "backward");                    \
  Status f(const Queue& queue, ConstView gate, ConstView up, View y, const Options& options) {              \
    return call(queue, f##_op, {&gate, &up, &y}, {value}, options.variant);                                 \
  }                                                                                                         \
  Status f##_backward(const Queue& queue, ConstView gate, ConstView up, ConstView dy, View dgate, View dup, \
                      const Options& options) {                                                             \
    return call(queue, f##_backward_op, {&gate, &up, &dy, &dgate, &dup}, {value}, options.variant);         \
  }
ROOFTILE_GATED(geglu, GegluOptions, flag("tanh"), double(options.tanh))
ROOFTILE_GATED(swiglu, SwigluOptions, real("beta", 1), options.beta)
#undef ROOFTILE_GATED

extern const Op* const gated_ops[] = {&geglu_op, &geglu_backward_op, &swiglu_op, &swiglu_backward_op,
                                      nullptr};

Halves<ConstView> split_halves(ConstView x) { return halves_of(x); }
Halves<View> split_halves(View x) { return halves_of(x); }

}  // namespace rooftile
