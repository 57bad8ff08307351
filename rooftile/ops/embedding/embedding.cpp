#include "rooftile/ops/embedding/embedding.h"

#include <algorithm>

#include "rooftile/core/row_problem.h"
#include "rooftile/core/signature.h"
#include "rooftile/ops/embedding/embedding.problem.h"

namespace rooftile {
namespace {

constexpr Signature::Types kT{'T', {DType::f32, DType::f16, DType::bf16}};
constexpr Signature::Types kI{'I', {DType::i64, DType::i32}};

constexpr Signature kForward{"embedding",
                             {kT, kI},
                             {below('V', input("tokens", 'I', "... S")), input("table", 'T', "V D"),
                              optional(input("position_table", 'T', "S D")), output("y", 'T', "... S D")},
                             {whole("padding_idx", -1, -1)}};
constexpr Signature kBackward{
    "embedding_backward",
    {kT, kI},
    {below('V', input("tokens", 'I', "... S")), input("table", 'T', "V D"), input("dy", 'T', "... S D"),
     output("dtable", 'T', "V D"), optional(output("dposition_table", 'T', "S D"))},
    {whole("padding_idx", -1, -1)}};

Status any(const void*) { return {}; }
Status few_tokens(const EmbeddingBackwardProblem& p) {
  if (p.rows.rows <= INT32_MAX) return {};
  return Status::error("embedding_backward: there are %lld tokens, at most 2^31 - 1 can be sorted",
                       static_cast<long long>(p.rows.rows));
}
constexpr Variant kVariants[] = {
    {"tile", "a row of the table for each token, read and written in whole vectors", Role::standard, any}};
constexpr Variant kBackwardVariants[] = {
    {"tile", "tokens sorted by number; each row of the table adds up its own, in their order", Role::standard,
     accepts<few_tokens>}};

EmbeddingTokens tokens_of(const Call& c) { return {c.view(0).data, c.view(0).dtype, c.view(1).shape[0]}; }
std::int64_t count_of(const ConstView& view) {
  std::int64_t n = 1;
  for (int d = 0; d < view.rank; ++d) n *= view.shape[d];
  return n;
}

Status launch_forward(const Queue& queue, const Op& op, const Call& c) {
  const ConstView &table = c.view(1), &position = c.view(2), &y = c.view(3);
  EmbeddingProblem p{};
  ConstView by_place = y;  // an absent one has y's strides, which keep nothing from being merged
  if (position.present())
    for (int d = 0; d < y.rank; ++d)
      by_place.stride[d] = d + 2 < y.rank ? 0 : position.stride[d + 2 - y.rank];
  p.rows = rows_of(y, detail::over_columns(c.view(0), y), by_place);
  p.y = c.output(3);
  p.tokens = tokens_of(c);
  p.table = table.data;
  p.table_stride = table.stride[0], p.table_column_stride = table.shape[1] > 1 ? table.stride[1] : 1;
  p.position = position.present() ? position.data : nullptr;
  p.dtype = table.dtype;
  return dispatch(queue, op, &p, c.variant);
}

/// In 4-byte numbers: where each part of the workspace begins, and how many it has in all.
struct Parts {
  std::int64_t ends = 0, other_order = 0, histograms = 0, all = 0;
};
Parts parts_of(const Queue& queue, const Call& c) {
  const auto padded = [](std::int64_t n) { return (n + 15) / 16 * 16; };
  const std::int64_t tokens = count_of(c.view(0));
  Parts parts{.ends = padded(tokens)};
  parts.all = parts.other_order = parts.ends + padded(c.view(1).shape[0] + 1);
  if (queue.device() == Device::cpu) return parts;
  parts.histograms = parts.other_order + padded(tokens);
  parts.all = parts.histograms + (tokens + kEmbeddingChunk - 1) / kEmbeddingChunk * kEmbeddingDigits;
  return parts;
}
std::size_t workspace_bytes(const Queue& queue, const Call& c) {
  return static_cast<std::size_t>(parts_of(queue, c).all) * sizeof(std::int32_t);
}

EmbeddingSums sums_of(const Call& c, int operand) {
  const ConstView& view = c.view(operand);
  if (!view.present()) return {};
  return {c.output(operand), view.shape[0], view.stride[0], view.shape[1] > 1 ? view.stride[1] : 1};
}

Status launch_backward(const Queue& queue, const Op& op, const Call& c) {
  const ConstView& dy = c.view(2);
  EmbeddingBackwardProblem p{};
  p.rows = rows_of(dy, detail::over_columns(c.view(0), dy));
  p.dy = dy.data;
  p.tokens = tokens_of(c);
  p.padding = c.whole(0);
  p.length = dy.shape[dy.rank - 2];
  p.table = sums_of(c, 3);
  p.position = sums_of(c, 4);
  const Parts parts = parts_of(queue, c);
  p.order = static_cast<std::int32_t*>(c.workspace.pointer);
  p.ends = p.order + parts.ends;
  p.other_order = p.order + parts.other_order;
  p.histograms = p.order + parts.histograms;
  p.dtype = dy.dtype;
  return dispatch(queue, op, &p, c.variant);
}

struct BackwardViews {
  const ConstView* all[5];
  BackwardViews(const EmbeddingBackwardInputs& in, const EmbeddingBackwardOutputs& out)
      : all{&in.tokens, &in.table, &in.dy, &out.dtable, &out.dposition_table} {}
};

}  // namespace

extern const Op embedding_op{"embedding", "forward", "embedding", kVariants, kForward, launch_forward};
extern const Op embedding_backward_op{"embedding", "backward",      "embedding_backward", kBackwardVariants,
                                      kBackward,   launch_backward, workspace_bytes};
extern const Op* const embedding_ops[] = {&embedding_op, &embedding_backward_op, nullptr};

Status embedding(const Queue& queue, const EmbeddingInputs& in, View y, const EmbeddingOptions& options) {
  return call(queue, embedding_op, {&in.tokens, &in.table, &in.position_table, &y},
              {static_cast<double>(options.padding_idx)}, options.variant);
}
Status embedding_backward(const Queue& queue, const EmbeddingBackwardInputs& in,
                          const EmbeddingBackwardOutputs& out, const EmbeddingOptions& options,
                          Workspace workspace) {
  const double values[] = {static_cast<double>(options.padding_idx)};
  return call(queue, embedding_backward_op,
              Call{BackwardViews(in, out).all, values, options.variant, workspace});
}
Status embedding_backward_workspace(const Queue& queue, const EmbeddingBackwardInputs& in,
                                    const EmbeddingBackwardOutputs& out, std::size_t& bytes) {
  const double values[] = {-1};
  return workspace_of(queue, embedding_backward_op, Call{BackwardViews(in, out).all, values}, bytes);
}

}  // namespace rooftile
