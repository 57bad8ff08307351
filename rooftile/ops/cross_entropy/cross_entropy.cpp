#include "rooftile/ops/cross_entropy/cross_entropy.h"

#include "rooftile/ops/cross_entropy/cross_entropy.parts.h"

namespace rooftile {
namespace {

constexpr Signature::Types kT{'T', {DType::f32, DType::f16, DType::bf16}};
constexpr Signature::Types kI{'I', {DType::i64, DType::i32}};
constexpr Signature::Types kF{'F', {DType::f32}};

constexpr Signature kForward{"cross_entropy",
                             {kT, kI, kF},
                             {input("logits", 'T', "... C"), below('C', input("target", 'I', "...")),
                              optional(input("weight", 'F', "C")), output("loss", 'F', "1"),
                              optional(output("losses", 'F', "...")), optional(output("lse", 'F', "..."))},
                             {choice("reduction", "mean sum"), whole("ignore_index", -100),
                              real("label_smoothing", 0, 0, 1), real("z_loss", 0, 0)}};
constexpr Signature kBackward{
    "cross_entropy_backward",
    {kT, kI, kF},
    {input("logits", 'T', "... C"), below('C', input("target", 'I', "...")),
     optional(input("weight", 'F', "C")), input("lse", 'F', "..."), optional(input("dlosses", 'F', "...")),
     optional(input("dloss", 'F', "1")), output("dlogits", 'T', "... C", "logits")},
    {choice("reduction", "mean sum"), whole("ignore_index", -100), real("label_smoothing", 0, 0, 1),
     real("z_loss", 0, 0)}};

Status any_rows(const void*) { return {}; }
constexpr Variant kVariants[] = {
    {"tile", "one pass over the row; its sum so far is rescaled where a larger logit comes", Role::standard,
     any_rows},
};
constexpr Variant kBackwardVariants[] = {
    {"tile", "one read, one write; may be in place", Role::standard, any_rows},
};

/// The terms of either direction, whose first three operands and whose options are the same.
CrossEntropyTerms terms_of(const Call& c) {
  const ConstView &logits = c.view(0), &target = c.view(1), &weight = c.view(2);
  CrossEntropyTerms terms = {.target = target.data,
                             .target_dtype = target.dtype,
                             .weight = {},
                             .classes = logits.shape[logits.rank - 1],
                             .ignore_index = c.whole(1),
                             .label_smoothing = c.real(2),
                             .z_loss = c.real(3),
                             .mean = c.options[0] == 0,
                             .scale = 1};
  for (std::int64_t n = 1; n < terms.classes; n *= 2) terms.scale /= 2;
  if (weight.present() && weight.shape[0] > 0) terms.weight = {weight.data, weight.stride[0]};
  return terms;
}

std::int64_t rows_in(const ConstView& logits) {
  std::int64_t rows = 1;
  for (int d = 0; d + 1 < logits.rank; ++d) rows *= logits.shape[d];
  return rows;
}
/// Losses that nobody wants one by one are kept until they are added up.
std::size_t workspace_bytes(const Queue&, const Call& c) {
  return c.view(4).present() ? 0 : static_cast<std::size_t>(rows_in(c.view(0))) * sizeof(float);
}
/// A view of one value for each row as one of the logits' rank, so that its offsets are found with theirs;
/// `like`: whose strides an absent one gets, which keep nothing from being merged.
ConstView by_row(const ConstView& view, const ConstView& logits, const ConstView& like) {
  return detail::over_columns(view.present() ? view : like, logits);
}

CrossEntropyProblem forward_problem_of(const Call& c) {
  const ConstView &logits = c.view(0), &target = c.view(1), &losses = c.view(4), &lse = c.view(5);
  CrossEntropyProblem p{};
  p.terms = terms_of(c);
  ConstView kept = losses;
  p.losses = static_cast<float*>(losses.present() ? c.output(4) : c.workspace.pointer);
  if (!losses.present()) {
    kept = target;
    std::int64_t stride = 1;
    for (int d = kept.rank - 1; d >= 0; --d) {
      kept.stride[d] = stride;
      stride *= kept.shape[d];
    }
  }
  p.rows = rows_of(logits, by_row(target, logits, target), by_row(kept, logits, target),
                   by_row(lse, logits, target));
  p.logits = logits.data;
  p.lse = lse.present() ? static_cast<float*>(c.output(5)) : nullptr;
  p.loss = static_cast<float*>(c.output(3));
  p.dtype = logits.dtype;
  return p;
}
Status launch(const Queue& queue, const Op& op, const Call& c) {
  const CrossEntropyProblem p = forward_problem_of(c);
  return dispatch(queue, op, &p, c.variant);
}

CrossEntropyBackwardProblem backward_problem_of(const Call& c) {
  const ConstView &logits = c.view(0), &target = c.view(1), &lse = c.view(3), &dlosses = c.view(4);
  CrossEntropyBackwardProblem p{};
  p.terms = terms_of(c);
  p.rows = rows_of(c.view(6), logits, by_row(target, logits, target), by_row(lse, logits, target),
                   by_row(dlosses, logits, target));
  p.dlogits = c.output(6);
  p.logits = logits.data;
  p.lse = static_cast<const float*>(lse.data);
  p.dlosses = static_cast<const float*>(dlosses.present() ? dlosses.data : nullptr);
  p.dloss = static_cast<const float*>(c.view(5).present() ? c.view(5).data : nullptr);
  p.dtype = logits.dtype;
  return p;
}
Status launch_backward(const Queue& queue, const Op& op, const Call& c) {
  const CrossEntropyBackwardProblem p = backward_problem_of(c);
  return dispatch(queue, op, &p, c.variant);
}

struct OptionValues {
  double all[4];
  explicit OptionValues(const CrossEntropyOptions& o)
      : all{double(o.reduction == Reduction::sum), static_cast<double>(o.ignore_index), o.label_smoothing,
            o.z_loss} {}
};
struct ForwardViews {
  const ConstView* all[6];
  ForwardViews(const CrossEntropyInputs& in, const CrossEntropyOutputs& out)
      : all{&in.logits, &in.target, &in.weight, &out.loss, &out.losses, &out.lse} {}
};
struct BackwardViews {
  const ConstView* all[7];
  BackwardViews(const CrossEntropyBackwardInputs& in, const View& dlogits)
      : all{&in.logits, &in.target, &in.weight, &in.lse, &in.dlosses, &in.dloss, &dlogits} {}
};

}  // namespace

extern const Op cross_entropy_op{"cross_entropy", "forward", "cross_entropy", kVariants,
                                 kForward,        launch,    workspace_bytes};
extern const Op cross_entropy_backward_op{"cross_entropy",   "backward", "cross_entropy_backward",
                                          kBackwardVariants, kBackward,  launch_backward};
extern const Op* const cross_entropy_ops[] = {&cross_entropy_op, &cross_entropy_backward_op, nullptr};

Status cross_entropy(const Queue& queue, const CrossEntropyInputs& in, const CrossEntropyOutputs& out,
                     const CrossEntropyOptions& options, Workspace workspace) {
  return call(queue, cross_entropy_op,
              Call{ForwardViews(in, out).all, OptionValues(options).all, options.variant, workspace});
}
Status cross_entropy_workspace(const Queue& queue, const CrossEntropyInputs& in,
                               const CrossEntropyOutputs& out, std::size_t& bytes) {
  return workspace_of(queue, cross_entropy_op,
                      Call{ForwardViews(in, out).all, OptionValues(CrossEntropyOptions{}).all}, bytes);
}
Status cross_entropy_backward(const Queue& queue, const CrossEntropyBackwardInputs& in, View dlogits,
                              const CrossEntropyOptions& options) {
  return call(queue, cross_entropy_backward_op,
              Call{BackwardViews(in, dlogits).all, OptionValues(options).all, options.variant});
}

namespace detail {

Status cross_entropy_part(const Queue& queue, CrossEntropyParts parts, const CrossEntropyInputs& in,
                          const CrossEntropyOutputs& out, const CrossEntropyOptions& options) {
  CrossEntropyProblem p = forward_problem_of({ForwardViews(in, out).all, OptionValues(options).all});
  p.parts = parts;
  return dispatch(queue, cross_entropy_op, &p, nullptr);
}
Status cross_entropy_backward_part(const Queue& queue, CrossEntropyParts parts, CrossEntropyShared* shared,
                                   const CrossEntropyBackwardInputs& in, View dlogits,
                                   const CrossEntropyOptions& options) {
  CrossEntropyBackwardProblem p =
      backward_problem_of({BackwardViews(in, dlogits).all, OptionValues(options).all});
  p.parts = parts;
  p.shared = shared;
  return dispatch(queue, cross_entropy_backward_op, &p, nullptr);
}

}  // namespace detail

}  // namespace rooftile
