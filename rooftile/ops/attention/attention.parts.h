#pragma once
// Attention to numbers that scales multiply (attention_scaled). Nothing is validated: that was done by the
// function's own signature.
#include "rooftile/ops/attention/attention.h"
#include "rooftile/ops/attention/attention.problem.h"

namespace rooftile::detail {

/// {B, G} of f32 each, of q's, k's and v's heads; absent: 1.
struct AttentionScales {
  ConstView q, k, v;
};

/// The problem of such a call, of any dtype; without dropout and packed sequences.
AttentionProblem attention_problem(const AttentionInputs& inputs, const AttentionScales& scales,
                                   const AttentionOutputs& outputs, const AttentionOptions& options);

/// attention, where scale · (q_scale · k_scale) takes scale's place, and each y is multiplied by v_scale.
/// Without dropout. `function`: whose name refusals of cu_seqlens bear.
Status attention_part(const Queue& queue, const char* function, const AttentionInputs& inputs,
                      const AttentionScales& scales, const AttentionOutputs& outputs,
                      const AttentionOptions& options);

}  // namespace rooftile::detail
