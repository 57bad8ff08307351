#pragma once
// The options that gemm and gemm_packed share, and what is computed of which dtypes.
#include <cmath>

#include "rooftile/core/signature.h"
#include "rooftile/ops/gemm/gemm.problem.h"

namespace rooftile {

inline constexpr Signature::Option kAlpha = any_real("alpha", 1), kBeta = any_real("beta", 0),
                                   kActivation =
                                       choice("activation", "none relu gelu gelu_tanh silu sigmoid tanh"),
                                   kGate = flag("gate");

/// Which y comes of which a, the bias's dtype, and what is not computed.
inline Status check_kinds(const char* function, const GemmProblem& p, bool has_c) {
  const DType t = p.type, o = p.out;
  const bool widened = o == DType::f32 && (t == DType::f16 || t == DType::bf16 || t == DType::tf32);
  if (t == DType::i8 ? o != DType::i32 : o != t && !widened)
    return Status::error("%s: y is %s, must be %s where a is %s", function, name(o),
                         t == DType::i8     ? "i32"
                         : bits(t) == 16    ? (t == DType::f16 ? "f16 or f32" : "bf16 or f32")
                         : t == DType::tf32 ? "tf32 or f32"
                                            : name(t),
                         name(t));
  if (p.bias && p.bias_type != o && (p.bias_type != DType::f32 || o == DType::f64 || o == DType::i32))
    return Status::error("%s: bias is %s, must be %s where y is %s", function, name(p.bias_type),
                         o == DType::f64 || o == DType::i32 || o == DType::f32 ? name(o) : "y's dtype or f32",
                         name(o));
  if (p.beta != 0 && !has_c)
    return Status::error("%s: beta is %g, but c is absent; give a c, or a beta of 0", function, p.beta);
  if (p.gate && !has_c)
    return Status::error("%s: gate multiplies by c, but c is absent; give a c, or a gate of false", function);
  if (p.gate && p.beta != 0)
    return Status::error("%s: c is a gate, and beta is %g, must be 0: c is multiplied or added", function,
                         p.beta);
  if (t == DType::i8 && (p.alpha != 1 || p.beta != 0 || p.activation != 0 || p.gate))
    return Status::error(
        "%s: i8 is multiplied exactly: alpha must be 1, beta 0, activation none (0), gate false (0); they "
        "are "
        "%g, %g, %d and %d",
        function, p.alpha, p.beta, p.activation, int(p.gate));
  if (t == DType::f64 && p.activation > 1)
    return Status::error("%s: activation is %d, must be none (0) or relu (1) where a is f64", function,
                         p.activation);
  return {};
}

/// A call's options, in the order above.
inline Status set_options(const char* function, GemmProblem& p, const Call& call, bool has_c) {
  p.alpha = call.options[0];
  p.beta = call.options[1];
  p.activation = static_cast<int>(call.options[2]);
  p.gate = call.flag(3);
  if (Status s = check_kinds(function, p, has_c); !s) return s;
  // A beta that rounds to 0 in f32 is 0. (By operators, a NaN would trap where the caller wants that.)
  if (p.type != DType::f64 && __builtin_islessequal(std::fabs(p.beta), 0x1p-150)) p.beta = 0;
  return {};
}

}  // namespace rooftile
