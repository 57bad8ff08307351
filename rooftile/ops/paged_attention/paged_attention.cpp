#include "rooftile/ops/paged_attention/paged_attention.h"

#include <cmath>

#include "rooftile/core/signature.h"
#include "rooftile/ops/paged_attention/paged_attention.problem.h"

namespace rooftile {
namespace {

constexpr Signature::Types kT{'T', {DType::f32, DType::f16, DType::bf16}};
constexpr Signature::Types kSlot{'I', {DType::i64, DType::i32}};
constexpr Signature::Types kI{'I', {DType::i32}};                         // page tables and lengths
constexpr Signature::Types kS{'K', {DType::f32}, 'T'};                    // the sink's
constexpr Signature::Types kF{'F', {DType::f32}};                         // statistics and scales
constexpr Signature::Types kC{'C', {DType::f8e4m3, DType::f8e5m2}, 'T'};  // the caches'

constexpr Signature kAppend{
    "kv_cache_append",
    {kT, kSlot, kC, kF},
    {input("k", 'T', "... G D"), input("v", 'T', "... G E"), below('Z', input("slots", 'I', "...")),
     optional(input("k_scale", 'F', "G")), optional(input("v_scale", 'F', "G")),
     in_out("k_cache", 'C', "P N G D"), in_out("v_cache", 'C', "P N G E")},
    {},
    "Z = P*N"};
constexpr Signature kAttention{"paged_attention",
                               {kT, kI, kS, kF, kC},
                               {input("q", 'T', "B S H D"), input("k_cache", 'C', "P N G D"),
                                input("v_cache", 'C', "P N G E"), below('P', input("page_table", 'I', "B M")),
                                below('L', input("lengths", 'I', "B")), optional(input("sink", 'K', "H")),
                                optional(input("k_scale", 'F', "G")), optional(input("v_scale", 'F', "G")),
                                output("y", 'T', "B S H E"), optional(output("lse", 'F', "B H S"))},
                               {whole("window_left", -1, -1), real("scale", 0, 0), real("softcap", 0, 0)},
                               "H % G = 0; D >= 1; D <= 256; E >= 1; E <= 256; L = M*N + 1"};

Status any(const void*) { return {}; }
constexpr Variant kAppendVariants[] = {
    {"tile", "each slot is one worker's, which takes its tokens in their order", Role::standard, any}};
/// As attention's: a token's bits are those of attention's variant of the same name.
Status mma_problem(const PagedAttentionProblem& p) {
  if (p.dtype == DType::f16 || p.dtype == DType::bf16) return {};
  return Status::error("paged_attention: tensor cores take f16 and bf16 here, q is %s", name(p.dtype));
}
Status simt_problem(const PagedAttentionProblem& p) {
  if (p.dtype == DType::f32) return {};
  return Status::error("paged_attention: simt takes f32, q is %s, which tensor cores take: mma",
                       name(p.dtype));
}
constexpr Variant kAttentionVariants[] = {
    {"tile", "attention's tiles, keys and values through the page table; heads that share them side by side",
     Role::standard, any},
    {"mma", "the same on tensor cores: f16 and bf16", Role::standard, accepts<mma_problem>},
    {"simt", "the same without them: f32", Role::standard, accepts<simt_problem>}};

/// Where each token begins, as rows of one element.
ConstView tokens_of(const ConstView& view, int outer) {
  ConstView v = view;
  v.rank = outer + 1;
  v.shape[outer] = 1;
  v.stride[outer] = 1;
  return v;
}
HeadScales scales(const ConstView& view) {
  if (!view.present()) return {};
  return {static_cast<const float*>(view.data), view.stride[0]};
}
KvCacheSide side_of(const Call& c, int from, int scale, int to) {
  const ConstView &token = c.view(from), &cache = c.view(to);
  KvCacheSide side{token.data, c.output(to), {}, {}, cache.shape[3], scales(c.view(scale))};
  for (int d = 0; d < 4; ++d) side.stride[d] = cache.stride[d];
  for (int d = 0; d < 2; ++d) side.from_stride[d] = token.stride[token.rank - 2 + d];
  return side;
}
Status launch_append(const Queue& queue, const Op& op, const Call& c) {
  const ConstView &slots = c.view(2), &cache = c.view(5);
  KvCacheAppendProblem p{};
  p.rows = rows_of(tokens_of(slots, slots.rank), tokens_of(c.view(0), slots.rank),
                   tokens_of(c.view(1), slots.rank));
  p.slots = slots.data;
  p.slots_dtype = slots.dtype;
  p.pages = cache.shape[0], p.page_size = cache.shape[1], p.heads = cache.shape[2];
  p.k = side_of(c, 0, 3, 5), p.v = side_of(c, 1, 4, 6);
  p.dtype = c.view(0).dtype, p.cache_dtype = cache.dtype;
  if (p.codes()) p.format = code_format(cache.dtype);
  return dispatch(queue, op, &p, c.variant);
}

AttentionOperand operand(const ConstView& view) {
  AttentionOperand o{view.data};
  for (int i = 0; i < 4; ++i) o.stride[i] = view.stride[i];
  return o;
}
/// A head's in every batch.
AttentionFactors factors(const ConstView& view) {
  const HeadScales its = scales(view);
  return {its.data, {0, its.stride}};
}
PagedAttentionProblem problem_of(const Call& c) {
  const ConstView &q = c.view(0), &k = c.view(1), &v = c.view(2), &table = c.view(3), &lengths = c.view(4),
                  &sink = c.view(5), &lse = c.view(9);
  PagedAttentionProblem p{};
  p.b = q.shape[0], p.s = q.shape[1], p.h = q.shape[2], p.d = q.shape[3];
  p.g = k.shape[2], p.e = v.shape[3];
  p.left = c.whole(0);
  p.right = 0;
  p.scale = c.options[1] == 0 ? static_cast<float>(1 / std::sqrt(static_cast<double>(p.d))) : c.real(1);
  p.softcap = c.real(2);
  p.dtype = q.dtype, p.bias_dtype = DType::f32;
  p.q = operand(q), p.k = operand(k), p.v = operand(v), p.y = operand(c.view(8));
  p.cache_dtype = k.dtype;
  p.k_scale = factors(c.view(6)), p.v_scale = factors(c.view(7));
  if (lse.present()) {
    p.lse = static_cast<float*>(c.output(9));
    for (int i = 0; i < 3; ++i) p.lse_stride[i] = lse.stride[i];
  }
  if (sink.present()) p.sink = sink.data, p.sink_stride = sink.stride[0], p.sink_dtype = sink.dtype;
  p.table = static_cast<const std::int32_t*>(table.data);
  p.table_stride[0] = table.stride[0], p.table_stride[1] = table.stride[1];
  p.lengths = static_cast<const std::int32_t*>(lengths.data);
  p.lengths_stride = lengths.stride[0];
  p.pages = k.shape[0], p.page_size = k.shape[1], p.pages_each = table.shape[1];
  p.heads_each = p.group();
  return p;
}
std::size_t workspace_bytes(const Queue& queue, const Call& c) {
  if (queue.device() == Device::cpu) return 0;
  return static_cast<std::size_t>(problem_of(c).parts_floats()) * sizeof(float);
}
Status launch_attention(const Queue& queue, const Op& op, const Call& c) {
  PagedAttentionProblem p = problem_of(c);
  if (workspace_bytes(queue, c) > 0) p.parts = static_cast<float*>(c.workspace.pointer);
  return dispatch(queue, op, &p, c.variant);
}

struct Views {
  const ConstView* all[10];
  Views(const PagedAttentionInputs& in, const PagedAttentionOutputs& out)
      : all{&in.q,    &in.k_cache, &in.v_cache, &in.page_table, &in.lengths,
            &in.sink, &in.k_scale, &in.v_scale, &out.y,         &out.lse} {}
};
struct OptionValues {
  double all[3];
  explicit OptionValues(const PagedAttentionOptions& o)
      : all{static_cast<double>(o.window_left), o.scale, o.softcap} {}
};

}  // namespace

extern const Op kv_cache_append_op{"kv_cache_append", "forward", "kv_cache_append",
                                   kAppendVariants,   kAppend,   launch_append};
extern const Op paged_attention_op{"paged_attention", "forward",        "paged_attention", kAttentionVariants,
                                   kAttention,        launch_attention, workspace_bytes};
extern const Op* const paged_attention_ops[] = {&kv_cache_append_op, &paged_attention_op, nullptr};

Status kv_cache_append(const Queue& queue, const KvCacheAppendInputs& in, const KvCacheAppendOutputs& caches,
                       const KvCacheAppendOptions& options) {
  return call(queue, kv_cache_append_op,
              {&in.k, &in.v, &in.slots, &in.k_scale, &in.v_scale, &caches.k_cache, &caches.v_cache}, {},
              options.variant);
}
Status paged_attention(const Queue& queue, const PagedAttentionInputs& in, const PagedAttentionOutputs& out,
                       const PagedAttentionOptions& options, Workspace workspace) {
  return call(queue, paged_attention_op,
              Call{Views(in, out).all, OptionValues(options).all, options.variant, workspace});
}
Status paged_attention_workspace(const Queue& queue, const PagedAttentionInputs& in,
                                 const PagedAttentionOutputs& out, std::size_t& bytes) {
  return workspace_of(queue, paged_attention_op,
                      Call{Views(in, out).all, OptionValues(PagedAttentionOptions{}).all}, bytes);
}

}  // namespace rooftile
