#pragma once
#include <cstdint>

#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

/// Which keys a query sees, and what its scores are. The diagonal ends in the lower right corner: the last
/// query's own key is the last one, and query i's is i + T - S.
struct AttentionOptions {
  bool causal = false;             ///< no key past the query's own
  std::int64_t window_left = -1;   ///< at most so many keys before the query's own; -1: all
  std::int64_t window_right = -1;  ///< and after it; -1: all. Beside causal: 0
  float scale = 0;                 ///< finite, not negative; 0: 1/√D
  float softcap = 0;               ///< finite, not negative; 0: none
  double dropout = 0;              ///< share of weights that become 0, from 0 to 1; above 0 it needs a seed
  const char* variant = nullptr;   ///< null: chosen by the library; else one of `rooftile list attention`
};

struct AttentionInputs {
  ConstView q;          ///< {B, S, H, D}: f32, f16 or bf16
  ConstView k;          ///< {B, T, G, D}, q's dtype; H is a multiple of G
  ConstView v;          ///< {B, T, G, E}, q's dtype
  ConstView bias = {};  ///< optional: {B, H, S, T}, f32 or q's dtype; strides of 0 repeat it
  ConstView sink = {};  ///< optional: {H}, f32 or q's dtype: a score that every query of a head has besides
  ConstView cu_seqlens_q = {};       ///< optional: {N + 1} of i32: where N sequences' queries begin, and end
  ConstView cu_seqlens_k = {};       ///< with it, {N + 1} of i32: where their keys do
  ConstView seed = {}, offset = {};  ///< dropout's: one number each, i64 or sign-extended i32; no offset: 0
  ConstView alibi = {};              ///< optional: {H} of f32: m, each head's slope of a bias by distance
};
struct AttentionOutputs {
  View y;         ///< {B, S, H, E}, q's dtype
  View lse = {};  ///< optional: {B, H, S} of f32, for the backward
};

/// Scaled dot product attention. With key head g = h / (H/G), for every batch, head and query i:
///   x[j] = scale · Σ q[i]·k[j],  softcap · tanh(x / softcap) instead of x where there is a cap,
///   s[j] = x[j] + bias[i, j] - m·|i + T - S - j|,  lse = ln Σ e^s[j],  y[i] = Σ e^(s[j] - lse) · v[j],
/// j over the keys that i sees, m = alibi[h] or 0. Where it sees none, or all of its scores are -∞: y = 0 and
/// lse = -∞. A sink is one more score, of a key whose value is 0: lse = ln(e^sink + Σ e^s[j]), so that a
/// row's weights add up to less than 1, and a row without keys has lse = sink. One of -∞ is none.
///
///     attention(queue, {.q = q, .k = k, .v = v}, {.y = y}, {.causal = true});
///
/// Variable lengths: with cu_seqlens_q and cu_seqlens_k, B = 1 and sequences stand one after the other. Each
/// is as alone in a batch, by the same variant bit by bit: its diagonal ends in its own corner, and it may
/// lack queries or keys. Rows of no sequence, before the first or past the last, see no key. Both lists are
/// read where the kernel runs. On a CPU entries that decrease or lie outside of 0 … S, or T, are refused; on
/// a GPU those outside count as the nearest within, and where entries decrease, results mean nothing. Nothing
/// outside of an operand is touched.
///
/// Dropout: y[i] = Σ z[i, j]·e^(s[j] - lse)·v[j], z = 1/(1 - dropout) for a weight that is kept, else 0; lse
/// counts dropped weights, too. Kept is what the function `dropout` keeps of a tensor {B, H, S, T}, T rounded
/// up to a multiple of 4, by the same seed, offset and probability: on CPUs and GPUs alike. A call takes
/// B·H·S·⌈T/4⌉ offsets. With cu_seqlens, S, T and a query's index are the call's, a key's is its sequence's.
///
/// Any strides, so {B, H, S, D} in memory, too; D and E from 1 to 256; B, S and T from 0. Sums in f32, on a
/// GPU of each 512 keys and then of those, y rounded once; on tensor cores f16's and bf16's weights are, too.
/// No workspace. A NaN or +∞ among a row's scores makes its y NaN. Of a key that a query does not see, k and
/// v must be finite; of one whose weight is dropped, v must be.
///
/// Errors: q, k, v or y absent, a dtype or shape other than said above, null or misaligned data, H no
/// multiple of G, dropout without a seed, one cu_seqlens without the other, with B other than 1 or with a
/// bias, an option out of its range, an output that overlaps itself or another argument; a variant that is
/// unknown or refuses. Cost: 2·(D + E) flops and an exponential for each pair of a query and a key it sees.
/// Source: Dao et al., arXiv:2205.14135, and Milakov and Gimelshein, arXiv:1805.02867; of sinks Agarwal et
/// al., arXiv:2508.10925, of alibi Press et al., arXiv:2108.12409.
Status attention(const Queue& queue, const AttentionInputs& inputs, const AttentionOutputs& outputs,
                 const AttentionOptions& options = {});

struct AttentionBackwardInputs {
  ConstView q, k, v;    ///< the forward's
  ConstView bias = {};  ///< as the forward's; absent if it had none
  ConstView sink = {};  ///< as the forward's; lse has it, so that only dsink asks for it
  ConstView cu_seqlens_q = {}, cu_seqlens_k = {};  ///< the forward's; absent if it had none
  ConstView seed = {}, offset = {}, alibi = {};    ///< the forward's; absent if it had none
  ConstView y;                                     ///< the forward's, {B, S, H, E}
  ConstView dy;                                    ///< as y
  ConstView lse;                                   ///< the forward's, {B, H, S} of f32
};
struct AttentionBackwardOutputs {
  View dq, dk, dv;  ///< as q, k and v
  View dsink = {};  ///< optional: {H}, as sink; 0 where that is absent
};

/// The gradient. With p = e^(s - lse) and c = the cap's derivative, 1 - tanh², or 1:
///   dv[j] = Σ p·dy[i],  ds = p · (Σ dy[i]·v[j] - Σ dy[i]·y[i]) · c,
///   dq[i] = scale · Σ ds·k[j],  dk[j] = scale · Σ ds·q[i],
/// dk and dv over the queries that see j, of all heads that share it. With dropout dv has z·p instead of p,
/// and ds has z · Σ dy[i]·v[j] instead of Σ dy[i]·v[j]. dsink = -Σ e^(sink - lse) · Σ dy[i]·y[i] over a
/// head's queries, in f64. A row without keys adds nothing. Scores are recomputed: no workspace. Every sum
/// has one order, so every bit is the same at any number of threads. bias and alibi have no gradient.
///
/// Errors: as attention's; y, dy or lse absent. Cost: 6·D + 8·E flops more than the exponentials, for each
/// pair of a query and a key it sees.
Status attention_backward(const Queue& queue, const AttentionBackwardInputs& inputs,
                          const AttentionBackwardOutputs& outputs, const AttentionOptions& options = {});

}  // namespace rooftile
