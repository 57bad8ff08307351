#include "rooftile/ops/linear_cross_entropy/linear_cross_entropy.h"

#include "rooftile/core/check.h"
#include "rooftile/core/signature.h"
#include "rooftile/core/workspace_parts.h"
#include "rooftile/ops/blas1/blas1.parts.h"
#include "rooftile/ops/cross_entropy/cross_entropy.parts.h"
#include "rooftile/ops/gemm/gemm.h"
#include "rooftile/ops/linear_cross_entropy/linear_cross_entropy.chunks.h"
#include "rooftile/ops/row_reduce/row_reduce.h"

namespace rooftile {
namespace {
using namespace linear_cross_entropy_parts;

constexpr Signature::Types kT{'T', {DType::f32, DType::f16, DType::bf16}};
constexpr Signature::Types kI{'I', {DType::i64, DType::i32}};
constexpr Signature::Types kF{'F', {DType::f32}};
constexpr Signature::Types kG{'G', {DType::f32}, 'T'};

constexpr Signature kForward{
    "linear_cross_entropy",
    {kT, kI, kF},
    {input("hidden", 'T', "... D"), input("weight", 'T', "V D"), below('V', input("target", 'I', "...")),
     optional(input("bias", 'F', "V")), optional(input("class_weight", 'F', "V")), output("loss", 'F', "1"),
     optional(output("losses", 'F', "...")), optional(output("lse", 'F', "..."))},
    {choice("reduction", "mean sum"), whole("ignore_index", -100), real("label_smoothing", 0, 0, 1),
     real("z_loss", 0, 0), whole("chunk", 0, 0)}};
constexpr Signature kBackward{
    "linear_cross_entropy_backward",
    {kT, kI, kF, kG},
    {input("hidden", 'T', "... D"), input("weight", 'T', "V D"), below('V', input("target", 'I', "...")),
     optional(input("bias", 'F', "V")), optional(input("class_weight", 'F', "V")), input("lse", 'F', "..."),
     optional(input("dlosses", 'F', "...")), optional(input("dloss", 'F', "1")),
     output("dhidden", 'T', "... D"), optional(output("dweight", 'G', "V D")),
     optional(output("dbias", 'F', "V"))},
    {choice("reduction", "mean sum"), whole("ignore_index", -100), real("label_smoothing", 0, 0, 1),
     real("z_loss", 0, 0), whole("chunk", 0, 0)}};
enum Operand { kHidden, kWeight, kTarget, kBias, kClassWeight };
enum Forward { kLoss = 5, kLosses, kLse };
enum Backward { kLseIn = 5, kDlosses, kDloss, kDhidden, kDweight, kDbias };
enum Option { kReduction, kIgnoreIndex, kLabelSmoothing, kZLoss, kChunk };

CrossEntropyOptions options_of(const Call& c) {
  return {c.options[kReduction] == 0 ? Reduction::mean : Reduction::sum, c.whole(kIgnoreIndex),
          c.real(kLabelSmoothing), c.real(kZLoss)};
}
View output_of(const Call& c, int operand) {
  View view;
  static_cast<ConstView&>(view) = c.view(operand);
  return view;
}

/// Sizes of either direction, whose first operands and options are the same.
struct Sizes {
  std::int64_t rows = 1, channels, classes, chunk, pitch;

  explicit Sizes(const Call& c) : channels(c.view(kWeight).shape[1]), classes(c.view(kWeight).shape[0]) {
    const ConstView& target = c.view(kTarget);
    for (int d = 0; d < target.rank; ++d) rows *= target.shape[d];
    const std::int64_t asked = c.whole(kChunk);
    chunk = std::min(asked > 0 ? asked : usual_chunk(classes), rows);
    pitch = round_up(classes, 16);  // rows of whole 16-byte vectors, of f32 and of 16 bits
  }
};

/// Logits of all rows as cross_entropy's parts look at them where they need none: their sizes.
View no_logits(const Call& c, const Sizes& sizes) {
  View view = {};
  view.dtype = DType::f32;
  const ConstView& target = c.view(kTarget);
  view.rank = target.rank + 1;
  for (int d = 0; d < view.rank; ++d) {
    view.shape[d] = d < target.rank ? target.shape[d] : sizes.classes;
    view.stride[d] = 0;
  }
  return view;
}
View dense(void* memory, DType dtype, std::int64_t rows, std::int64_t columns) {
  View view = {};
  view.data = memory;
  view.dtype = dtype;
  view.rank = 2;
  view.shape[0] = rows;
  view.shape[1] = columns;
  view.stride[0] = columns;
  view.stride[1] = 1;
  return view;
}
/// The chunk's logits: hidden·weightᵀ + bias, in f32.
Status product_of_logits(const Queue& queue, const Call& c, const Chunks& chunks, View logits) {
  ConstView hidden = chunks.of(c.view(kHidden), 1);
  if (flatten(hidden)) flatten(logits);
  return gemm(queue, {hidden, for_each_of(hidden, turned(c.view(kWeight))), {}, c.view(kBias)}, logits);
}

// ---- forward

struct ForwardParts {
  float *logits, *losses;
  std::size_t bytes;
  ForwardParts(const Call& c, void* memory) {
    const Sizes sizes(c);
    WorkspaceParts parts(memory);
    logits = static_cast<float*>(parts.take(sizes.chunk, sizes.pitch, sizeof(float)));
    losses =
        c.view(kLosses).present() ? nullptr : static_cast<float*>(parts.take(sizes.rows, 1, sizeof(float)));
    bytes = parts.bytes();
  }
};
std::size_t forward_bytes(const Queue&, const Call& c) { return ForwardParts(c, nullptr).bytes; }

Status forward_by_chunks(const Queue& queue, const Call& c) {
  const Sizes sizes(c);
  const ForwardParts parts(c, c.workspace.pointer);
  View losses = output_of(c, kLosses);
  if (!losses.present()) {
    static_cast<ConstView&>(losses) = c.view(kTarget);
    losses.data = parts.losses;
    losses.dtype = DType::f32;
    std::int64_t stride = 1;
    for (int d = losses.rank - 1; d >= 0; stride *= losses.shape[d--]) losses.stride[d] = stride;
  }
  const View loss = output_of(c, kLoss), lse = output_of(c, kLse);
  const ConstView &target = c.view(kTarget), &class_weight = c.view(kClassWeight);
  // [chunks]
  for (Chunks chunks(target, sizes.chunk); chunks.any(); chunks.next()) {
    const View logits = chunks.in(parts.logits, DType::f32, sizes.classes, sizes.pitch);
    ROOFTILE_TRY(product_of_logits(queue, c, chunks, logits));
    ROOFTILE_TRY(detail::cross_entropy_part(queue, CrossEntropyParts::rows,
                                            {logits, chunks.of(target, 0), class_weight},
                                            {loss, chunks.of(losses, 0), chunks.of(lse, 0)}, options_of(c)));
  }
  return detail::cross_entropy_part(queue, CrossEntropyParts::shared,
                                    {no_logits(c, sizes), target, class_weight}, {loss, losses},
                                    options_of(c));
  // [/chunks]
}

// ---- backward

/// Whether the rows of each chunk of hidden have a common stride, as those of a matrix do.
bool rows_are_a_matrix(const Call& c, const Sizes& sizes) {
  const Chunks chunks(c.view(kTarget), sizes.chunk);
  ConstView first = chunks.of(c.view(kHidden), 1);
  return !chunks.any() || flatten(first);
}
struct BackwardParts {
  CrossEntropyShared* shared;
  float *logits, *dweight = nullptr, *dbias = nullptr;
  void *rounded = nullptr, *hidden = nullptr;
  std::size_t bytes;
  BackwardParts(const Call& c, void* memory) {
    const Sizes sizes(c);
    const DType type = c.view(kHidden).dtype;
    const auto width = static_cast<std::size_t>(bits(type) / 8);
    WorkspaceParts parts(memory);
    shared = static_cast<CrossEntropyShared*>(parts.take(1, 1, sizeof(CrossEntropyShared)));
    logits = static_cast<float*>(parts.take(sizes.chunk, sizes.pitch, sizeof(float)));
    if (type != DType::f32) rounded = parts.take(sizes.chunk, sizes.pitch, width);
    if (const ConstView& to = c.view(kDweight); to.present()) {
      if (to.dtype != DType::f32)
        dweight = static_cast<float*>(parts.take(sizes.classes, sizes.channels, sizeof(float)));
      if (!rows_are_a_matrix(c, sizes)) hidden = parts.take(sizes.chunk, sizes.channels, width);
    }
    if (c.view(kDbias).present()) dbias = static_cast<float*>(parts.take(sizes.classes, 1, sizeof(float)));
    bytes = parts.bytes();
  }
};
std::size_t backward_bytes(const Queue&, const Call& c) { return BackwardParts(c, nullptr).bytes; }

/// One call's way through its chunks.
class BackwardCall {
 public:
  BackwardCall(const Queue& queue, const Call& c)
      : queue_(queue), c_(c), sizes_(c), parts_(c, c.workspace.pointer), dweight_(output_of(c, kDweight)) {
    if (!parts_.dweight) return;
    // By rows or by columns, whichever are contiguous in what they are rounded to.
    by_columns_ = dweight_.stride[0] == 1 && dweight_.stride[1] != 1;
    static_cast<ConstView&>(dweight_) =
        by_columns_ ? turned(dense(parts_.dweight, DType::f32, sizes_.channels, sizes_.classes))
                    : dense(parts_.dweight, DType::f32, sizes_.classes, sizes_.channels);
  }

  Status run() {
    const ConstView &target = c_.view(kTarget), &class_weight = c_.view(kClassWeight), &lse = c_.view(kLseIn),
                    &dlosses = c_.view(kDlosses), &dloss = c_.view(kDloss);
    const CrossEntropyOptions options = options_of(c_);
    const View none = no_logits(c_, sizes_);
    ROOFTILE_TRY(detail::cross_entropy_backward_part(queue_, CrossEntropyParts::shared, parts_.shared,
                                                     {none, target, class_weight, lse, dlosses, dloss}, none,
                                                     options));
    Chunks chunks(target, sizes_.chunk);
    if (!chunks.any()) {  // sums of no rows
      ROOFTILE_TRY(add_to_dweight(dense(nullptr, type(), 0, sizes_.classes),
                                  dense(nullptr, type(), 0, sizes_.channels)));
      ROOFTILE_TRY(add_to_dbias(dense(nullptr, DType::f32, 0, sizes_.classes)));
    }
    // [backward]
    for (; chunks.any(); chunks.next(), first_ = false) {
      const View logits = chunks.in(parts_.logits, DType::f32, sizes_.classes, sizes_.pitch);
      ROOFTILE_TRY(product_of_logits(queue_, c_, chunks, logits));
      ROOFTILE_TRY(detail::cross_entropy_backward_part(
          queue_, CrossEntropyParts::rows, parts_.shared,
          {logits, chunks.of(target, 0), class_weight, chunks.of(lse, 0), chunks.of(dlosses, 0), dloss},
          logits, options));
      ROOFTILE_TRY(add_to_dbias(logits));
      View dx = logits;
      if (parts_.rounded) {
        dx = chunks.in(parts_.rounded, type(), sizes_.classes, sizes_.pitch);
        ROOFTILE_TRY(detail::round_to(queue_, logits, dx));
      }
      ConstView hidden = chunks.of(c_.view(kHidden), 1);
      if (c_.view(kDweight).present()) ROOFTILE_TRY(matrix_of(chunks, hidden));
      ROOFTILE_TRY(add_to_dweight(dx, hidden));
      ROOFTILE_TRY(product_of_dhidden(chunks, dx));
    }
    // [/backward]
    if (!parts_.dweight) return {};
    return detail::round_to(queue_, dweight_, output_of(c_, kDweight));
  }

 private:
  DType type() const { return c_.view(kHidden).dtype; }

  /// The chunk's rows of hidden as a matrix, copied where they are none.
  Status matrix_of(const Chunks& chunks, ConstView& hidden) const {
    if (flatten(hidden)) return {};
    View copied = chunks.in(parts_.hidden, type(), sizes_.channels, sizes_.channels);
    ROOFTILE_TRY(copy(queue_, hidden, copied));
    flatten(copied);
    hidden = copied;
    return {};
  }
  /// dweight (+)= dxᵀ·hidden.
  Status add_to_dweight(View dx, const ConstView& hidden) const {
    if (!dweight_.present()) return {};
    flatten(dx);
    return gemm(queue_, {turned(dx), hidden, first_ ? View{} : dweight_}, dweight_,
                {.beta = first_ ? 0. : 1.});
  }
  /// dbias (+)= Σ dx.
  Status add_to_dbias(View dx) const {
    const View dbias = output_of(c_, kDbias);
    if (!dbias.present()) return {};
    flatten(dx);
    if (first_) return row_reduce(queue_, turned(dx), dbias);
    View sums = dense(parts_.dbias, DType::f32, sizes_.classes, 1);
    sums.rank = 1;
    sums.stride[0] = 1;
    ROOFTILE_TRY(row_reduce(queue_, turned(dx), sums));
    return add(queue_, dbias, sums, dbias);
  }
  /// dhidden = dx·weight.
  Status product_of_dhidden(const Chunks& chunks, View dx) const {
    View dhidden = chunks.of(output_of(c_, kDhidden), 1);
    if (flatten(dhidden)) flatten(dx);
    return gemm(queue_, {dx, for_each_of(dx, c_.view(kWeight))}, dhidden);
  }

  const Queue& queue_;
  const Call& c_;
  const Sizes sizes_;
  const BackwardParts parts_;
  View dweight_;  ///< what is added to: the output, or the workspace's
  bool by_columns_ = false, first_ = true;
};

Status backward_by_chunks(const Queue& queue, const Call& c) { return BackwardCall(queue, c).run(); }

// ---- the functions

Status any_call(const Call&) { return {}; }
constexpr Variant kVariants[] = {
    {"chunks", "gemm, then cross_entropy on the rows of a chunk, whose logits the workspace holds",
     Role::standard, accepts<any_call>, composes<forward_by_chunks>},
};
constexpr Variant kBackwardVariants[] = {
    {"chunks", "a chunk's logits anew, their gradients in place, two products of these", Role::standard,
     accepts<any_call>, composes<backward_by_chunks>},
};
Status launch(const Queue& queue, const Op& op, const Call& c) { return dispatch(queue, op, &c, c.variant); }

struct OptionValues {
  double all[5];
  explicit OptionValues(const LinearCrossEntropyOptions& o)
      : all{double(o.reduction == Reduction::sum), static_cast<double>(o.ignore_index), o.label_smoothing,
            o.z_loss, static_cast<double>(o.chunk)} {}
};
struct ForwardViews {
  const ConstView* all[8];
  ForwardViews(const LinearCrossEntropyInputs& in, const CrossEntropyOutputs& out)
      : all{&in.hidden,       &in.weight, &in.target,  &in.bias,
            &in.class_weight, &out.loss,  &out.losses, &out.lse} {}
};
struct BackwardViews {
  const ConstView* all[11];
  BackwardViews(const LinearCrossEntropyBackwardInputs& in, const LinearCrossEntropyBackwardOutputs& out)
      : all{&in.hidden,  &in.weight, &in.target,   &in.bias,     &in.class_weight, &in.lse,
            &in.dlosses, &in.dloss,  &out.dhidden, &out.dweight, &out.dbias} {}
};

}  // namespace

extern const Op linear_cross_entropy_op{
    "linear_cross_entropy", "forward", "linear_cross_entropy", kVariants, kForward, launch, forward_bytes};
extern const Op linear_cross_entropy_backward_op{
    "linear_cross_entropy", "backward", "linear_cross_entropy_backward", kBackwardVariants, kBackward, launch,
    backward_bytes};
extern const Op* const linear_cross_entropy_ops[] = {&linear_cross_entropy_op,
                                                     &linear_cross_entropy_backward_op, nullptr};

Status linear_cross_entropy(const Queue& queue, const LinearCrossEntropyInputs& in,
                            const CrossEntropyOutputs& out, const LinearCrossEntropyOptions& options,
                            Workspace workspace) {
  return call(queue, linear_cross_entropy_op,
              Call{ForwardViews(in, out).all, OptionValues(options).all, options.variant, workspace});
}
Status linear_cross_entropy_workspace(const Queue& queue, const LinearCrossEntropyInputs& in,
                                      const CrossEntropyOutputs& out,
                                      const LinearCrossEntropyOptions& options, std::size_t& bytes) {
  return workspace_of(queue, linear_cross_entropy_op,
                      Call{ForwardViews(in, out).all, OptionValues(options).all}, bytes);
}
Status linear_cross_entropy_backward(const Queue& queue, const LinearCrossEntropyBackwardInputs& in,
                                     const LinearCrossEntropyBackwardOutputs& out,
                                     const LinearCrossEntropyOptions& options, Workspace workspace) {
  return call(queue, linear_cross_entropy_backward_op,
              Call{BackwardViews(in, out).all, OptionValues(options).all, options.variant, workspace});
}
Status linear_cross_entropy_backward_workspace(const Queue& queue, const LinearCrossEntropyBackwardInputs& in,
                                               const LinearCrossEntropyBackwardOutputs& out,
                                               const LinearCrossEntropyOptions& options, std::size_t& bytes) {
  return workspace_of(queue, linear_cross_entropy_backward_op,
                      Call{BackwardViews(in, out).all, OptionValues(options).all}, bytes);
}

}  // namespace rooftile
