#pragma once
#include <span>

#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

struct RopeOptions {
  bool interleaved = false;       ///< pairs are neighbours; else halves of the rotated dimensions
  std::int64_t rotary = 0;        ///< dimensions that turn, even; the rest is copied. 0: all, or 2·R
  std::int64_t offset = 0;        ///< added to every position: 0 to 2^31
  double base = 10000;            ///< frequencies without inv_freq: base^(-2i/rotary); 0.001 or more
  double attention_factor = 1;    ///< times every cosine and sine, from 0 to 1024: YaRN's
  const char* variant = nullptr;  ///< null: chosen by the library; else one of `rooftile list rope`
};

struct RopeInputs {
  ConstView q;               ///< {B, S, H, D}: f32, f16 or bf16
  ConstView k = {};          ///< {B, S, G, D} of q's dtype; absent as its output is: G is 0
  ConstView positions = {};  ///< optional: {B, S} of i64 or i32; absent: 0, 1, … along S
  ConstView inv_freq = {};   ///< optional: {R} of f32, the frequency of each pair; 2·R of D dimensions turn
};
struct RopeOutputs {
  View q;       ///< as q; may be q
  View k = {};  ///< as k; may be k
};

/// Rotary position embedding of queries and keys. Pair i of a head, (a, b), at position p turns by an angle:
///   θ = p · f_i,   f_i = base^(-2i/rotary) as f32, or inv_freq[i]
///   (a, b) -> attention_factor · (a·cos θ - b·sin θ, b·cos θ + a·sin θ)
/// Pair i is elements i and i + rotary/2 (GPT-NeoX, Llama in transformers' layout), or 2i and 2i + 1 where
/// `interleaved` (GPT-J, Llama as Meta has it).
///
///     rope(queue, {.q = q, .k = k}, {.q = q, .k = k}, {.base = 500000});
///
/// Any strides: heads kept as {B, H, S, D} are a view with two of them exchanged. Positions that all
/// sequences share have a stride of 0 over B. k may have other heads than q, or none: q[:, :, :0] in Python.
///
/// Angles are exact, whatever the dtype: p · f_i is a product in double, exact for |p| to 2^29, less n · π/2
/// in three parts; cosine and sine are right to half an ulp of f32 for |p · f_i| to 2^31. Beyond, the angle
/// is off by |p · f_i| · 2^-52; from 2^50 on nothing is promised. (An angle in f32 is off by 0.03 at position
/// 10^6; bf16 has no position 257.) Arithmetic in f32, results rounded once. D odd: the last one is copied.
///
/// Errors: q or its output absent, one of k and its output without the other, a dtype or shape other than
/// said above, null or misaligned data, options outside of their ranges, a rotary that is odd, more than D,
/// or neither 0 nor 2·R, outputs that overlap themselves or other operands but as said above; a variant that
/// is unknown or refuses. No workspace. Cost: memory-bound, each element read and written once; on a CPU
/// without inv_freq some µs a call for the frequencies. Source: Su et al., arXiv:2104.09864.
Status rope(const Queue& queue, const RopeInputs& inputs, const RopeOutputs& outputs,
            const RopeOptions& options = {});

struct RopeBackwardInputs {
  ConstView dyq;             ///< the gradient of rope's q
  ConstView dyk = {};        ///< that of its k
  ConstView positions = {};  ///< the forward's
  ConstView inv_freq = {};   ///< the forward's
};
struct RopeBackwardOutputs {
  View dq;       ///< may be dyq
  View dk = {};  ///< may be dyk
};

/// The gradient: the same rotation by -θ, times the same factor. Frequencies and positions have none. Errors
/// and cost: as rope's.
Status rope_backward(const Queue& queue, const RopeBackwardInputs& inputs, const RopeBackwardOutputs& outputs,
                     const RopeOptions& options = {});

/// How a model's context was made longer than it was trained for.
struct RopeScaling {
  enum class Kind : std::uint8_t {
    none,
    linear,  ///< every frequency / factor: Chen et al., arXiv:2306.15595
    ntk,  ///< a larger base: base · (factor·L/O - (factor - 1))^(d/(d-2)), L = length, O = original_length;
          ///< without `length`: base · factor^(d/(d-2))
    yarn,   ///< fast pairs stay, slow ones are linear, a ramp between: Peng et al., arXiv:2309.00071
    llama3  ///< the same by wavelengths: Llama 3.1's
  };
  Kind kind = Kind::none;
  double factor = 1;           ///< 1 or more
  double original_length = 0;  ///< positions that the model was trained for; ntk, yarn and llama3 need it
  double length = 0;           ///< ntk: of the sequence now; dynamic NTK changes with it
  double beta_fast = 32, beta_slow = 1;  ///< yarn: turns in the original length, where the ramp is
  bool truncate = true;                  ///< yarn: the ramp's ends are whole pairs
  double low_freq_factor = 1, high_freq_factor = 4;  ///< llama3
};

/// Inverse frequencies for rope's `inv_freq`, computed in double as transformers' modeling_rope_utils.py
/// does: inv_freq[i] of base^(-2i/d), d = 2 · inv_freq.size(), scaled. attention_factor: 1, of YaRN
/// 0.1·ln(factor) + 1.
///
/// Errors: a number out of range, named.
Status rope_frequencies(std::span<float> inv_freq, double base, const RopeScaling& scaling,
                        double& attention_factor);

}  // namespace rooftile
