#include "rooftile/ops/attention_scaled/attention_scaled.h"

#include <algorithm>

#include "rooftile/core/check.h"
#include "rooftile/core/signature.h"
#include "rooftile/core/workspace_parts.h"
#include "rooftile/ops/attention/attention.parts.h"
#include "rooftile/ops/attention_scaled/attention_scaled.problem.h"
#include "rooftile/ops/quantize/quantize.parts.h"

namespace rooftile {
namespace {

constexpr Signature::Types kT{'T', {DType::f32, DType::f16, DType::bf16}};  // y's
constexpr Signature::Types kC{'C', {DType::f8e4m3, DType::f8e5m2}};         // the codes'
constexpr Signature::Types kF{'F', {DType::f32}};
constexpr Signature::Types kI{'I', {DType::i32}};

constexpr Signature kSignature{
    "attention_scaled",
    {kT, kC, kF, kI},
    {input("q", 'C', "B S H D"), input("k", 'C', "B T G D"), input("v", 'C', "B T G E"),
     optional(input("q_scale", 'F', "B G")), optional(input("k_scale", 'F', "B G")),
     optional(input("v_scale", 'F', "B G")), optional(below('L', input("cu_seqlens_q", 'I', "N"))),
     optional(below('M', input("cu_seqlens_k", 'I', "N"))), output("y", 'T', "B S H E"),
     optional(output("lse", 'F', "B H S"))},
    {flag("causal"), whole("window_left", -1, -1), whole("window_right", -1, -1), real("scale", 0, 0),
     real("softcap", 0, 0)},
    "H % G = 0; D >= 1; D <= 256; E >= 1; E <= 256; L = S + 1; M = T + 1"};
enum Operand { kQ, kK, kV, kQScale, kKScale, kVScale, kCuQ, kCuK, kY, kLse };

View output_of(const Call& c, int operand) {
  View view;
  static_cast<ConstView&>(view) = c.view(operand);
  return view;
}

/// Codes' numbers in y's dtype: dense, rows of whole 16-byte vectors.
struct Numbers {
  View q, k, v;
  std::size_t bytes;

  Numbers(const Call& c, void* memory) {
    WorkspaceParts parts(memory);
    const DType type = c.view(kY).dtype;
    const auto take = [&](const ConstView& codes) {
      View view;
      static_cast<ConstView&>(view) = codes;
      const std::int64_t pitch = (codes.shape[3] + 7) / 8 * 8;
      view.data = parts.take(codes.shape[0] * codes.shape[1] * codes.shape[2], pitch,
                             static_cast<std::size_t>(bits(type) / 8));
      view.dtype = type;
      view.stride[3] = 1;
      view.stride[2] = pitch;
      for (int d = 1; d >= 0; --d) view.stride[d] = view.stride[d + 1] * view.shape[d + 1];
      return view;
    };
    q = take(c.view(kQ)), k = take(c.view(kK)), v = take(c.view(kV));
    bytes = parts.bytes();
  }
};
/// The codes' attention.
AttentionScaledProblem problem_of(const Queue& queue, const Call& c) {
  const AttentionProblem attention = detail::attention_problem(
      {.q = c.view(kQ), .k = c.view(kK), .v = c.view(kV)},
      {c.view(kQScale), c.view(kKScale), c.view(kVScale)}, {output_of(c, kY), output_of(c, kLse)},
      {c.flag(0), c.whole(1), c.whole(2), c.real(3), c.real(4)});
  return {c,
          queue.device(),
          attention,
          c.view(kY).dtype,
          c.view(kCuQ).present(),
          static_cast<std::uint8_t*>(c.workspace.pointer)};
}
std::size_t workspace_bytes(const Queue& queue, const Call& c) {
  return std::max(Numbers(c, nullptr).bytes, static_cast<std::size_t>(problem_of(queue, c).turned_bytes()));
}

// [numbers]
/// Codes to numbers, then attention's own kernel of them on this device.
Status by_numbers(const Queue& queue, const AttentionScaledProblem& p) {
  const Call& c = p.call;
  const Numbers numbers(c, c.workspace.pointer);
  ROOFTILE_TRY(detail::numbers_of_codes(queue, c.view(kQ), numbers.q));
  ROOFTILE_TRY(detail::numbers_of_codes(queue, c.view(kK), numbers.k));
  ROOFTILE_TRY(detail::numbers_of_codes(queue, c.view(kV), numbers.v));
  return detail::attention_part(queue, kSignature.function,
                                {.q = numbers.q,
                                 .k = numbers.k,
                                 .v = numbers.v,
                                 .cu_seqlens_q = c.view(kCuQ),
                                 .cu_seqlens_k = c.view(kCuK)},
                                {c.view(kQScale), c.view(kKScale), c.view(kVScale)},
                                {output_of(c, kY), output_of(c, kLse)},
                                {c.flag(0), c.whole(1), c.whole(2), c.real(3), c.real(4)});
}
// [/numbers]

Status on_cpu(const AttentionScaledProblem& p) {
  if (p.device == Device::cpu) return {};
  return Status::error("attention_scaled: tile is the CPU's; GPUs have tensor_cores, and simt for y of f32");
}
Status on_tensor_cores(const AttentionScaledProblem& p) {
  if (p.device == Device::cpu)
    return Status::error("attention_scaled: tensor_cores is a GPU's variant; the CPU has tile");
  if (p.out != DType::f32) return {};
  return Status::error("attention_scaled: tensor cores take f16 and bf16 here, y is f32; simt takes it");
}
Status on_simt(const AttentionScaledProblem& p) {
  if (p.device == Device::cpu)
    return Status::error("attention_scaled: simt is a GPU's variant; the CPU has tile");
  if (p.out == DType::f32) return {};
  return Status::error("attention_scaled: simt takes y of f32, this is %s, which tensor_cores takes",
                       name(p.out));
}
/// What Hopper's copy engine brings: rows of whole 16-byte vectors.
bool boxed(const AttentionOperand& o) {
  constexpr std::int64_t kMaxStride = std::int64_t{1} << 40;
  bool whole = o.stride[3] == 1 && reinterpret_cast<std::uintptr_t>(o.data) % 16 == 0;
  for (int d = 0; d < 3; ++d)
    whole = whole && o.stride[d] % 16 == 0 && o.stride[d] > 0 && o.stride[d] < kMaxStride;
  return whole;
}
Status on_f8_cores(const AttentionScaledProblem& p) {
  const AttentionProblem& a = p.attention;
  constexpr std::int64_t kMax = std::int64_t{1} << 30;
  if (a.dtype != DType::f8e4m3)
    return Status::error("attention_scaled: wgmma_f8 takes f8e4m3, q is %s; tensor_cores takes it",
                         name(a.dtype));
  if (a.softcap != 0 || p.packed)
    return Status::error(
        "attention_scaled: wgmma_f8 takes no softcap and no cu_seqlens_q; tensor_cores takes both");
  if (a.d > p.kMaxHead || a.e > p.kMaxHead || a.s > kMax || a.t > kMax || a.t < 1)
    return Status::error(
        "attention_scaled: wgmma_f8 takes heads of up to %d, up to %lld queries and 1 to as many keys; these "
        "are %lld and %lld, %lld and %lld; tensor_cores takes all",
        p.kMaxHead, static_cast<long long>(kMax), static_cast<long long>(a.d), static_cast<long long>(a.e),
        static_cast<long long>(a.s), static_cast<long long>(a.t));
  if (boxed(a.q) && boxed(a.k)) return {};
  return Status::error(
      "attention_scaled: wgmma_f8 takes q and k contiguous along D, their addresses and other strides "
      "multiples of 16; strides between heads are %lld and %lld; tensor_cores takes all",
      static_cast<long long>(a.q.stride[2]), static_cast<long long>(a.k.stride[2]));
}
constexpr Variant kVariants[] = {
    {"tile", "codes as numbers of y's dtype in the workspace, then attention's tiles", Role::standard,
     accepts<on_cpu>, composes<by_numbers>},
    {"tensor_cores", "the same, then attention's wgmma or mma, in the same bits", Role::standard,
     accepts<on_tensor_cores>, composes<by_numbers>},
    {"wgmma_f8",
     "Hopper's tensor cores for f8, in both products; weights become codes, sums of 128 keep 14 bits",
     Role::named, accepts<on_f8_cores>},
    {"simt", "the same in f32, then attention's simt", Role::standard, accepts<on_simt>,
     composes<by_numbers>},
};

Status launch(const Queue& queue, const Op& op, const Call& c) {
  const AttentionScaledProblem p = problem_of(queue, c);
  return dispatch(queue, op, &p, c.variant);
}

struct Views {
  const ConstView* all[10];
  Views(const AttentionScaledInputs& in, const AttentionScaledOutputs& out)
      : all{&in.q,  &in.k,   &in.v, &in.q_scale, &in.k_scale, &in.v_scale, &in.cu_seqlens_q, &in.cu_seqlens_k,
            &out.y, &out.lse} {}
};
struct OptionValues {
  double all[5];
  explicit OptionValues(const AttentionScaledOptions& o)
      : all{double(o.causal), double(o.window_left), double(o.window_right), o.scale, o.softcap} {}
};

}  // namespace

extern const Op attention_scaled_op{"attention_scaled", "forward", "attention_scaled", kVariants,
                                    kSignature,         launch,    workspace_bytes};
extern const Op* const attention_scaled_ops[] = {&attention_scaled_op, nullptr};

Status attention_scaled(const Queue& queue, const AttentionScaledInputs& in,
                        const AttentionScaledOutputs& out, const AttentionScaledOptions& options,
                        Workspace workspace) {
  return call(queue, attention_scaled_op,
              Call{Views(in, out).all, OptionValues(options).all, options.variant, workspace});
}
Status attention_scaled_workspace(const Queue& queue, const AttentionScaledInputs& in,
                                  const AttentionScaledOutputs& out, std::size_t& bytes) {
  return workspace_of(queue, attention_scaled_op,
                      Call{Views(in, out).all, OptionValues(AttentionScaledOptions{}).all}, bytes);
}

}  // namespace rooftile
