#pragma once
#include <cstdint>

#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"
#include "rooftile/core/workspace.h"

namespace rooftile {

/// As attention's (rooftile/ops/attention/attention.h).
struct AttentionScaledOptions {
  bool causal = false;             ///< no key past the query's own
  std::int64_t window_left = -1;   ///< at most so many keys before the query's own; -1: all
  std::int64_t window_right = -1;  ///< and after it; -1: all. Beside causal: 0
  float scale = 0;                 ///< finite, not negative; 0: 1/√D
  float softcap = 0;               ///< finite, not negative; 0: none
  const char* variant =
      nullptr;  ///< null: chosen by the library; else one of `rooftile list attention_scaled`
};

struct AttentionScaledInputs {
  ConstView q;  ///< {B, S, H, D}: f8e4m3 or f8e5m2
  ConstView k;  ///< {B, T, G, D}, q's dtype; H is a multiple of G
  ConstView v;  ///< {B, T, G, E}, q's dtype
  /// optional: {B, G} of f32, above 0: the value of code 1. Absent: 1. One for a tensor: strides of 0.
  ConstView q_scale = {}, k_scale = {}, v_scale = {};
  ConstView cu_seqlens_q = {}, cu_seqlens_k = {};  ///< optional: as attention's
};
struct AttentionScaledOutputs {
  View y;         ///< {B, S, H, E}: f32, f16 or bf16
  View lse = {};  ///< optional: {B, H, S} of f32
};

/// Attention to 8-bit codes with scales: `attention` of q · q_scale, k · k_scale and v · v_scale. Scales are
/// a key head's in each batch, as FlashAttention-3's q_descale, k_descale and v_descale: those of q are for
/// all heads that share the key head.
///
///     attention_scaled(queue, {q, k, v, q_scale, k_scale, v_scale}, {.y = y}, {.causal = true}, workspace);
///
/// y's dtype is the arithmetic's: bits are those of `attention` on the codes' numbers in it, which f16 and
/// bf16 hold exactly, with scale · (q_scale · k_scale), in f32, for scale, and v_scale over a row's sum of
/// weights for 1 over it. So a row's bits depend on its own sequence and head alone. That scale must be a
/// normal number. y is rounded once, and not quantised.
///
/// The variant wgmma_f8 (Hopper; by name alone; f8e4m3, D and E up to 128) multiplies codes by codes. Weights
/// become e4m3 of 2^8 · e^(s - m), m the largest score so far: off by 2^-4 of themselves, or 2^-18. In each
/// product 128 terms' sums are cut as gemm_scaled's wgmma_f8 has it: a score is off by up to 0.017 times
/// Σ|terms|, y by as much of Σ weight·|v|. Sums of weights and of tiles are f32's. Bits are a row's own here,
/// too.
///
/// Any strides; D and E from 1 to 256; B, S and T from 0. Masks, variable lengths (with one scale per head),
/// NaN and what must be finite: as attention. For decoding from a cache of codes: paged_attention.
///
/// It needs a workspace: q, k and v in y's dtype. Ask attention_scaled_workspace. Errors: as attention's; a
/// workspace too small, not aligned to 64 bytes or not apart from all arguments. No gradient. Cost:
/// attention's, and B·(S·H·D + T·G·(D + E)) codes once to that dtype. Source: Shah et al., arXiv:2407.08608.
Status attention_scaled(const Queue& queue, const AttentionScaledInputs& inputs,
                        const AttentionScaledOutputs& outputs, const AttentionScaledOptions& options = {},
                        Workspace workspace = {});
/// The bytes of workspace that attention_scaled needs with these arguments.
Status attention_scaled_workspace(const Queue& queue, const AttentionScaledInputs& inputs,
                                  const AttentionScaledOutputs& outputs, std::size_t& bytes);

}  // namespace rooftile
