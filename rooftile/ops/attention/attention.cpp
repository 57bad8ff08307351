#include "rooftile/ops/attention/attention.h"

#include <cmath>

#include "rooftile/core/check.h"
#include "rooftile/core/signature.h"
#include "rooftile/ops/attention/attention.parts.h"
#include "rooftile/ops/attention/attention.problem.h"

namespace rooftile {
namespace {

constexpr const char* kWhere = "H % G = 0; D >= 1; D <= 256; E >= 1; E <= 256; L = S + 1; M = T + 1";

constexpr Signature::Types kT{'T', {DType::f32, DType::f16, DType::bf16}};  // the data's
constexpr Signature::Types kA{'A', {DType::f32}, 'T'};                      // the bias's
constexpr Signature::Types kP{'P', {DType::f32}, 'T'};                      // the sink's
constexpr Signature::Types kF{'F', {DType::f32}};                           // statistics'
constexpr Signature::Types kI{'I', {DType::i32}};                           // of where sequences begin
constexpr Signature::Types kS{'S', {DType::i64, DType::i32}};               // of what dropout draws from

constexpr Signature kForward{
    "attention",
    {kT, kA, kP, kF, kI, kS},
    {input("q", 'T', "B S H D"), input("k", 'T', "B T G D"), input("v", 'T', "B T G E"),
     optional(input("bias", 'A', "B H S T")), optional(input("sink", 'P', "H")),
     optional(below('L', input("cu_seqlens_q", 'I', "N"))),
     optional(below('M', input("cu_seqlens_k", 'I', "N"))), optional(input("seed", 'S', "1")),
     optional(input("offset", 'S', "1")), optional(input("alibi", 'F', "H")), output("y", 'T', "B S H E"),
     optional(output("lse", 'F', "B H S"))},
    {flag("causal"), whole("window_left", -1, -1), whole("window_right", -1, -1), real("scale", 0, 0),
     real("softcap", 0, 0), real("dropout", 0, 0, 1)},
    kWhere};
constexpr Signature kBackward{
    "attention_backward",
    {kT, kA, kP, kF, kI, kS},
    {input("q", 'T', "B S H D"), input("k", 'T', "B T G D"), input("v", 'T', "B T G E"),
     optional(input("bias", 'A', "B H S T")), optional(input("sink", 'P', "H")),
     optional(below('L', input("cu_seqlens_q", 'I', "N"))),
     optional(below('M', input("cu_seqlens_k", 'I', "N"))), optional(input("seed", 'S', "1")),
     optional(input("offset", 'S', "1")), optional(input("alibi", 'F', "H")), input("y", 'T', "B S H E"),
     input("dy", 'T', "B S H E"), input("lse", 'F', "B H S"), output("dq", 'T', "B S H D"),
     output("dk", 'T', "B T G D"), output("dv", 'T', "B T G E"), optional(output("dsink", 'P', "H"))},
    {flag("causal"), whole("window_left", -1, -1), whole("window_right", -1, -1), real("scale", 0, 0),
     real("softcap", 0, 0), real("dropout", 0, 0, 1)},
    kWhere};

Status any_problem(const AttentionProblem&) { return {}; }

/// What no rung has.
Status rung_problem(const AttentionProblem& p) {
  if (!p.plain() || p.sink || p.cu_q)
    return Status::error(
        "attention: the ladder's rungs have no bias, alibi, sink, softcap, cu_seqlens_q and dropout");
  return {};
}
/// That on tensor cores.
Status mma_rung_problem(const AttentionProblem& p) {
  if (p.dtype != DType::bf16) return Status::error("attention: this rung takes bf16, q is %s", name(p.dtype));
  if (Status s = rung_problem(p); !s) return s;
  if (p.d != 64 || p.e != 64)
    return Status::error("attention: this rung takes heads of 64, these are %lld and %lld",
                         static_cast<long long>(p.d), static_cast<long long>(p.e));
  for (const AttentionOperand& o : {p.q, p.k, p.v}) {
    bool words = reinterpret_cast<std::uintptr_t>(o.data) % 16 == 0 && o.stride[3] == 1;
    for (int i = 0; i < 3; ++i) words = words && o.stride[i] % 8 == 0;
    if (!words)
      return Status::error(
          "attention: this rung moves words of 16 bytes: rows of q, k and v must be contiguous and begin at "
          "such; give aligned and contiguous tensors");
  }
  return {};
}
/// The other rungs: f32, every query sees every key that its window lets it, nothing else.
Status plain_problem(const AttentionProblem& p) {
  if (p.dtype != DType::f32)
    return Status::error("attention: the ladder's rungs take f32, q is %s", name(p.dtype));
  if (Status s = rung_problem(p); !s) return s;
  if (p.d > 128 || p.e > 128)
    return Status::error("attention: the ladder's rungs take heads of up to 128, these are %lld and %lld",
                         static_cast<long long>(p.d), static_cast<long long>(p.e));
  return {};
}
/// Those that keep a row of scores in shared memory.
Status short_problem(const AttentionProblem& p) {
  constexpr std::int64_t kMax = 8192;
  if (Status s = plain_problem(p); !s) return s;
  if (p.t <= kMax) return {};
  return Status::error(
      "attention: this rung keeps a row of scores in shared memory, %lld keys at most; k has %lld",
      static_cast<long long>(kMax), static_cast<long long>(p.t));
}

/// Hopper's tensor cores. How operands lie does not count: of two variants with different bits, a row must
/// not meet one here and the other there.
Status wgmma_limits(const char* function, const AttentionProblem& p) {
  if (p.dtype != DType::f16 && p.dtype != DType::bf16)
    return Status::error("%s: wgmma takes f16 and bf16, q is %s", function, name(p.dtype));
  if (!p.plain())
    return Status::error("%s: wgmma takes no bias, alibi, softcap and dropout; mma takes all", function);
  constexpr std::int64_t kMax = std::int64_t{1} << 30;
  if (p.s <= kMax && p.t <= kMax) return {};
  return Status::error("%s: wgmma takes up to %lld queries and keys; these are %lld and %lld", function,
                       static_cast<long long>(kMax), static_cast<long long>(p.s),
                       static_cast<long long>(p.t));
}
Status wgmma_problem(const AttentionProblem& p) { return wgmma_limits("attention", p); }
Status wgmma_backward_problem(const AttentionProblem& p) {
  const char* const function = "attention_backward";
  if (Status s = wgmma_limits(function, p); !s) return s;
  if (p.cu_q) return Status::error("%s: wgmma takes no packed sequences; mma does", function);
  if (p.d == p.e && (p.d == 64 || p.d == 128)) return {};
  return Status::error(
      "%s: wgmma takes heads of 64 or of 128, q's and v's alike; these are %lld and %lld; "
      "mma takes all",
      function, static_cast<long long>(p.d), static_cast<long long>(p.e));
}
/// Tensor cores.
Status mma_problem(const AttentionProblem& p) {
  if (p.dtype == DType::f16 || p.dtype == DType::bf16) return {};
  return Status::error("attention: tensor cores take f16 and bf16 here, q is %s", name(p.dtype));
}
/// Those of the backward.
Status mma_backward_problem(const AttentionProblem& p) {
  if (p.dtype != DType::f16 && p.dtype != DType::bf16)
    return Status::error("attention_backward: tensor cores take f16 and bf16 here, q is %s", name(p.dtype));
  if (p.d >= 2) return {};
  return Status::error(
      "attention_backward: mma keeps a number of 4 bytes in each row of dq, and takes heads of 2 channels "
      "and more; these have %lld; tile takes all",
      static_cast<long long>(p.d));
}
/// The GPU's kernel without them. (The CPU's takes all.)
Status simt_problem(const AttentionProblem& p) {
  if (p.dtype == DType::f32) return {};
  return Status::error("attention: simt takes f32, q is %s, which tensor cores take: mma", name(p.dtype));
}

constexpr Variant kVariants[] = {
    {"tile", "tiles of scores in scratch, softmax on the way; all dtypes, strides and options",
     Role::standard, accepts<any_problem>},
    {"wgmma",
     "Hopper's tensor cores, keys and values brought by its copy engine while they work; f16 and bf16, "
     "any strides; the bits of mma",
     Role::standard, accepts<wgmma_problem>},
    {"mma", "tensor cores by mma.sync, scores and weights in registers; f16 and bf16, any strides",
     Role::standard, accepts<mma_problem>},
    {"simt", "a tile of scores in each thread's registers; f32, any strides", Role::standard,
     accepts<simt_problem>},
    {"05_mma", "tensor cores, weights in a warp's registers; bf16, heads of 64", Role::gpu_rung,
     accepts<mma_rung_problem>},
    {"04_registers", "scores in registers: a thread has 4x4 of them", Role::gpu_rung, accepts<plain_problem>},
    {"03_online", "tiles of keys in shared memory, softmax on the way", Role::gpu_rung,
     accepts<plain_problem>},
    {"02_fused", "one kernel, a row of scores in shared memory", Role::gpu_rung, accepts<short_problem>},
    {"01_standard", "a thread for each query: scores three times, as the equation reads", Role::gpu_rung,
     accepts<plain_problem>},
};
constexpr Variant kBackwardVariants[] = {
    {"wgmma",
     "Hopper's tensor cores, tiles brought by its copy engine while they work; f16 and bf16, heads of 64 and "
     "128, any strides",
     Role::standard, accepts<wgmma_backward_problem>},
    {"mma", "tensor cores by mma.sync, weights and their gradients in registers; f16 and bf16, any strides",
     Role::standard, accepts<mma_backward_problem>},
    {"tile", "scores computed again, tile by tile; dk and dv by keys, dq by queries", Role::standard,
     accepts<any_problem>},
};

AttentionOperand operand(const ConstView& view) {
  if (!view.present()) return {};  // whatever else it holds
  AttentionOperand o{view.data};
  for (int i = 0; i < 4; ++i) o.stride[i] = view.stride[i];
  return o;
}

/// Sizes, options and the operands that both directions begin with, kShared of them.
constexpr int kShared = 10;
AttentionProblem problem_of(const Call& c) {
  AttentionProblem p{};
  const ConstView &q = c.view(0), &k = c.view(1), &v = c.view(2), &bias = c.view(3), &sink = c.view(4);
  p.b = q.shape[0], p.s = q.shape[1], p.h = q.shape[2], p.d = q.shape[3];
  p.t = k.shape[1], p.g = k.shape[2], p.e = v.shape[3];
  p.left = c.whole(1);
  p.right = c.flag(0) ? 0 : c.whole(2);
  p.scale = c.options[3] == 0 ? static_cast<float>(1 / std::sqrt(static_cast<double>(p.d))) : c.real(3);
  p.softcap = c.real(4);
  p.dtype = q.dtype;
  p.bias_dtype = bias.present() ? bias.dtype : DType::f32;
  p.q = operand(q), p.k = operand(k), p.v = operand(v), p.bias = operand(bias);
  if (const ConstView& alibi = c.view(9); alibi.present())
    p.alibi = static_cast<const float*>(alibi.data), p.alibi_stride = alibi.stride[0];
  if (sink.present()) p.sink = sink.data, p.sink_stride = sink.stride[0], p.sink_dtype = sink.dtype;
  return p;
}
/// Where the host may read: sequences that overlap would be two threads' rows.
Status check_order(const char* function, const char* name, const ConstView& cu, std::int64_t rows) {
  std::int64_t before = 0;
  for (std::int64_t i = 0; i < cu.shape[0]; ++i) {
    const std::int64_t its = static_cast<const std::int32_t*>(cu.data)[i * cu.stride[0]];
    if (its < before || its > rows)
      return Status::error("%s: %s[%lld] is %lld, must be a number from %lld to %lld", function, name,
                           static_cast<long long>(i), static_cast<long long>(its),
                           static_cast<long long>(before), static_cast<long long>(rows));
    before = its;
  }
  return {};
}
/// Variable lengths: both cu_seqlens or none, of one batch without a bias.
Status take_sequences(const Queue& queue, const char* function, const Call& c, AttentionProblem& p) {
  const ConstView &q = c.view(5), &k = c.view(6);
  if (!q.present() && !k.present()) return {};
  if (!q.present() || !k.present())
    return Status::error("%s: %s is given without %s; give both, or none", function,
                         q.present() ? "cu_seqlens_q" : "cu_seqlens_k",
                         q.present() ? "cu_seqlens_k" : "cu_seqlens_q");
  if (q.shape[0] == 0)
    return Status::error("%s: cu_seqlens_q has no element; N sequences have N + 1", function);
  if (p.b != 1)
    return Status::error(
        "%s: cu_seqlens_q is given and q has %lld batches; put the sequences one after the "
        "other into one",
        function, static_cast<long long>(p.b));
  if (p.bias.data)
    return Status::error("%s: bias and cu_seqlens_q are both given; a bias has rows of one length", function);
  p.cu_q = static_cast<const std::int32_t*>(q.data), p.cu_q_stride = q.stride[0];
  p.cu_k = static_cast<const std::int32_t*>(k.data), p.cu_k_stride = k.stride[0];
  p.sequences = q.shape[0] - 1;
  if (queue.device() != Device::cpu) return {};
  if (Status s = check_order(function, "cu_seqlens_q", q, p.s); !s) return s;
  return check_order(function, "cu_seqlens_k", k, p.t);
}
/// With a probability of 0 nothing is drawn, whatever the seed.
Status take_dropout(const Op& op, const Call& c, AttentionProblem& p) {
  const ConstView &seed = c.view(7), &offset = c.view(8);
  const double rate = c.options[5];
  if (rate == 0) return {};
  if (!seed.present())
    return Status::error("%s: dropout is %g and there is no seed; give one, of i64 or i32", op.function,
                         rate);
  p.dropout = {{seed.data, offset.present() ? offset.data : nullptr, seed.dtype == DType::i64},
               PhiloxKeep::of(rate),
               p.s,
               0,
               (p.t + 3) / 4};
  return {};
}
void take_lse(const ConstView& lse, AttentionProblem& p) {
  if (!lse.present()) return;
  p.lse = static_cast<float*>(const_cast<void*>(lse.data));
  for (int i = 0; i < 3; ++i) p.lse_stride[i] = lse.stride[i];
}

AttentionProblem forward_of(const Call& c) {
  AttentionProblem p = problem_of(c);
  p.y = operand(c.view(kShared));
  take_lse(c.view(kShared + 1), p);
  return p;
}
Status launch_forward(const Queue& queue, const Op& op, const Call& c) {
  AttentionProblem p = forward_of(c);
  if (Status s = take_sequences(queue, op.function, c, p); !s) return s;
  if (Status s = take_dropout(op, c, p); !s) return s;
  return dispatch(queue, op, &p, c.variant);
}
Status launch_backward(const Queue& queue, const Op& op, const Call& c) {
  AttentionProblem p = problem_of(c);
  if (Status s = take_sequences(queue, op.function, c, p); !s) return s;
  if (Status s = take_dropout(op, c, p); !s) return s;
  p.y = operand(c.view(kShared)), p.dy = operand(c.view(kShared + 1));
  take_lse(c.view(kShared + 2), p);
  p.dq = operand(c.view(kShared + 3)), p.dk = operand(c.view(kShared + 4));
  p.dv = operand(c.view(kShared + 5));
  constexpr int kSink = kShared + 6;
  if (const ConstView& dsink = c.view(kSink); dsink.present())
    p.dsink = c.output(kSink), p.dsink_stride = dsink.stride[0], p.sink_dtype = dsink.dtype;
  return dispatch(queue, op, &p, c.variant);
}

struct ForwardViews {
  const ConstView* all[12];
  ForwardViews(const AttentionInputs& in, const AttentionOutputs& out)
      : all{&in.q,    &in.k,      &in.v,     &in.bias, &in.sink, &in.cu_seqlens_q, &in.cu_seqlens_k,
            &in.seed, &in.offset, &in.alibi, &out.y,   &out.lse} {}
};
/// The options in the signatures' order.
struct OptionValues {
  double all[6];
  explicit OptionValues(const AttentionOptions& o)
      : all{double(o.causal), double(o.window_left), double(o.window_right), o.scale, o.softcap, o.dropout} {}
};

}  // namespace

extern const Op attention_op{"attention", "forward", "attention", kVariants, kForward, launch_forward};
extern const Op attention_backward_op{"attention",       "backward", "attention_backward",
                                      kBackwardVariants, kBackward,  launch_backward};
extern const Op* const attention_ops[] = {&attention_op, &attention_backward_op, nullptr};

Status attention(const Queue& queue, const AttentionInputs& in, const AttentionOutputs& out,
                 const AttentionOptions& options) {
  return call(queue, attention_op,
              Call{ForwardViews(in, out).all, OptionValues(options).all, options.variant});
}
AttentionProblem detail::attention_problem(const AttentionInputs& in, const AttentionScales& scales,
                                           const AttentionOutputs& out, const AttentionOptions& options) {
  const ForwardViews views(in, out);
  const OptionValues values(options);
  AttentionProblem p = forward_of(Call{views.all, values.all});
  const auto factors = [](const ConstView& view) -> AttentionFactors {
    if (!view.present()) return {};
    return {static_cast<const float*>(view.data), {view.stride[0], view.stride[1]}};
  };
  p.q_scale = factors(scales.q), p.k_scale = factors(scales.k), p.v_scale = factors(scales.v);
  return p;
}
Status detail::attention_part(const Queue& queue, const char* function, const AttentionInputs& in,
                              const AttentionScales& scales, const AttentionOutputs& out,
                              const AttentionOptions& options) {
  AttentionProblem p = attention_problem(in, scales, out, options);
  const ForwardViews views(in, out);
  ROOFTILE_TRY(take_sequences(queue, function, Call{views.all, nullptr}, p));
  return dispatch(queue, attention_op, &p, options.variant);
}
Status attention_backward(const Queue& queue, const AttentionBackwardInputs& in,
                          const AttentionBackwardOutputs& out, const AttentionOptions& options) {
  const ConstView* const views[] = {
      &in.q,     &in.k, &in.v,  &in.bias, &in.sink, &in.cu_seqlens_q, &in.cu_seqlens_k, &in.seed,  &in.offset,
      &in.alibi, &in.y, &in.dy, &in.lse,  &out.dq,  &out.dk,          &out.dv,          &out.dsink};
  return call(queue, attention_backward_op, Call{views, OptionValues(options).all, options.variant});
}

}  // namespace rooftile
