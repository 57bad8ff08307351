#pragma once
#include <cstdint>

#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"
#include "rooftile/core/workspace.h"

namespace rooftile {

struct KvCacheAppendOptions {
  const char* variant = nullptr;  ///< null: the library's choice; else one that `rooftile list` names
};

struct KvCacheAppendInputs {
  ConstView k;      ///< {…, G, D}: the new tokens' keys; f32, f16 or bf16
  ConstView v;      ///< {…, G, E}: and values, of k's dtype
  ConstView slots;  ///< {…}: i64 or i32, where each token goes: page · N + place in it
  ConstView k_scale = {}, v_scale = {};  ///< optional: {G} of f32, above 0, absent 1: the value of code 1
};
struct KvCacheAppendOutputs {
  View k_cache;  ///< {P, N, G, D}: P pages of N tokens each, of k's dtype, f8e4m3 or f8e5m2
  View v_cache;  ///< {P, N, G, E}, k_cache's dtype
};

/// Puts the keys and values of new tokens into a paged cache, in place: k_cache[slot / N, slot % N] = k[…],
/// and v_cache likewise. All else in the caches stays.
///
///     kv_cache_append(queue, {.k = k, .v = v, .slots = slots}, {.k_cache = k_cache, .v_cache = v_cache});
///
/// Any strides and sizes. A token whose slot is outside of 0 … P·N - 1 is skipped: -1 says so of padding. Of
/// several tokens with one slot the last one stays, on every device. Bits are copied, a NaN's too.
///
/// A cache of codes, or a scale: of key head g the cache gets k · (1 / k_scale[g]) in f32, rounded to its
/// dtype, and v likewise. Codes are those of quantize_f8e4m3 or quantize_f8e5m2 with these scales given: they
/// saturate, a NaN becomes 0x7F. Strides of 0 make one scale all heads'; what is not above 0 is no scale.
///
/// Errors: an absent view, a dtype or shape other than said above, null or misaligned data, a cache that
/// overlaps itself or another argument; a variant that is unknown or refuses. Cost: memory-bound, k and v
/// read and written once.
Status kv_cache_append(const Queue& queue, const KvCacheAppendInputs& inputs,
                       const KvCacheAppendOutputs& caches, const KvCacheAppendOptions& options = {});

struct PagedAttentionOptions {
  std::int64_t window_left = -1;  ///< at most so many keys before the query's own; -1: all
  float scale = 0;                ///< finite, not negative; 0: 1/√D
  float softcap = 0;              ///< finite, not negative; 0: none
  const char* variant = nullptr;  ///< null: the library's choice; else one that `rooftile list` names
};

struct PagedAttentionInputs {
  ConstView q;           ///< {B, S, H, D}: the last S tokens' queries of each sequence; f32, f16 or bf16
  ConstView k_cache;     ///< {P, N, G, D}: P pages of N tokens; q's dtype, f8e4m3 or f8e5m2
  ConstView v_cache;     ///< {P, N, G, E}, k_cache's dtype; H is a multiple of G
  ConstView page_table;  ///< {B, M} of i32: a sequence's pages, in order; token j is in the (j / N)-th
  ConstView lengths;     ///< {B} of i32: its tokens in the cache, these queries' own included
  ConstView sink = {};   ///< optional: {H}, as attention's
  ConstView k_scale = {}, v_scale = {};  ///< optional: {G} of f32, kv_cache_append's, above 0; absent: 1
};
struct PagedAttentionOutputs {
  View y;         ///< {B, S, H, E}, q's dtype
  View lse = {};  ///< optional: {B, H, S} of f32
};

/// Causal attention of a sequence's last S tokens to all of it, whose keys and values are in the pages of a
/// cache: decoding, speculative decoding, or a prefill in chunks. Of a length t, query i is token t - S + i,
/// and sees the tokens up to itself; else as attention (rooftile/ops/attention/attention.h), and no bias.
///
///     paged_attention(queue, {q, k_cache, v_cache, page_table, lengths}, {.y = y});
///
/// A query's y and lse are bitwise those of `attention` with causal = true on the same device, whatever its
/// S, page size and batch: a token has the same bits decoded as in a prefill. A contiguous cache {B, T, G, D}
/// is one page for each sequence: N = T, and page_table {B, 1} holds 0, 1, ….
///
/// With scales a key is k_cache · k_scale[g], a value v_cache · v_scale[g], of codes or not: the product of
/// scale and k_scale[g] in f32 takes scale's place, v_scale[g] over a row's sum of weights the place of 1
/// over it. Codes have the bits of a cache of q's dtype with their numbers, which f16 and bf16 hold exactly.
///
/// Any strides; D and E from 1 to 256; all other sizes from 0. A query that sees no token, as each of a
/// length 0: y = 0, lse = -∞. Pages that a sequence does not reach are not read: their table entries and what
/// stands past its length may be anything. Sequences may share pages.
///
/// On a GPU it needs a workspace where B·G·⌈S·H/G/16⌉ is below 264 and M·N above 512: ask
/// paged_attention_workspace. There each 512 keys of a sequence are a block's own, and a second kernel adds
/// up what they leave: B·S·H·⌈M·N/512⌉ rows of E + 4 floats, E rounded up to a multiple of 4. Else one block
/// passes through all keys, in the same bits.
///
/// Tables and lengths are read where the kernel runs, and never lead out of the cache: a length below 0 or
/// above M·N makes all y and lse of its sequence NaN, a page outside of 0 … P - 1 those of the queries that
/// see it.
///
/// Errors: as attention's; a workspace too small, not aligned to 64 bytes or not apart from all arguments. No
/// gradient. Cost: of each sequence and key head keys and values are read once, for all heads that share it.
Status paged_attention(const Queue& queue, const PagedAttentionInputs& inputs,
                       const PagedAttentionOutputs& outputs, const PagedAttentionOptions& options = {},
                       Workspace workspace = {});
/// The bytes of workspace that paged_attention needs with these arguments.
Status paged_attention_workspace(const Queue& queue, const PagedAttentionInputs& inputs,
                                 const PagedAttentionOutputs& outputs, std::size_t& bytes);

}  // namespace rooftile
