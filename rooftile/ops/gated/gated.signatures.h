#pragma once
#include "rooftile/core/signature.h"

namespace rooftile {

inline constexpr Signature::Types kGatedTypes{'T', {DType::f32, DType::f16, DType::bf16}};

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

inline constexpr Signature kGeglu = gated_signature("geglu", flag("tanh"));
inline constexpr Signature kGegluBackward = gated_backward_signature("geglu_backward", flag("tanh"));
inline constexpr Signature kSwiglu = gated_signature("swiglu", real("beta", 1));
inline constexpr Signature kSwigluBackward = gated_backward_signature("swiglu_backward", real("beta", 1));

}  // namespace rooftile
