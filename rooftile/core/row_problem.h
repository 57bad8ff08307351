#pragma once
// Functions that compute row by row and have a signature: their problem, and how it is made.
#include "rooftile/core/row_blocks.h"
#include "rooftile/core/rows.h"
#include "rooftile/core/signature.h"

namespace rooftile {

/// What a row function's operands are, by the shapes in its signature. Operands with rows, "... C"; row
/// statistics, "...", which have one f32 for each row, of f64 rows one f64; vectors over the columns, "C";
/// scalars, "1", which all rows share; and the gradients of vectors and scalars.
struct RowCounts {
  int inputs = 1, statistics_in = 0, outputs = 1, statistics_out = 0, vectors = 0, gradients = 0, scalars = 0,
      scalar_gradients = 0;

  constexpr bool operator==(const RowCounts&) const = default;
  /// Those that have rows or one value for each.
  constexpr int operands() const { return inputs + statistics_in + outputs + statistics_out; }
};

/// A vector of one element for each column, as a weight; data is null where it is absent.
struct ColumnVector {
  const void* data = nullptr;
  std::int64_t stride = 1;
};

/// What passes to the launches. Operands in the order of RowCounts, each kind in the signature's order.
template <RowCounts kCounts_>
struct RowProblem {
  static constexpr RowCounts kCounts = kCounts_;
  static constexpr int kStatisticsIn = kCounts.inputs, kOutputs = kStatisticsIn + kCounts.statistics_in,
                       kStatisticsOut = kOutputs + kCounts.outputs, kOperands = kCounts.operands();
  static constexpr int kInputs = kCounts.inputs, kVectors = kCounts.vectors, kGradients = kCounts.gradients,
                       kScalars = kCounts.scalars, kScalarGradients = kCounts.scalar_gradients;
  static constexpr bool kHasGradients = kGradients + kScalarGradients > 0;
  Rows<kOperands> rows;
  const void* data[kOperands];  ///< null: absent
  ColumnVector vectors[kVectors + 1], gradients[kGradients + 1];
  const void* scalars[kScalars + 1];
  void* scalar_gradients[kScalarGradients + 1];
  DType dtype, vector_dtype, gradient_dtype;  ///< vectors' and scalars'
  double options[Signature::kMaxOptions];
  std::int64_t blocks, teams;  ///< RowBlocks, where there are gradients
  /// Workspace, of f64 rows of doubles: of gradients that are there each block's column sums, then scalars'
  /// team sums.
  float* sums;

  template <class Real = float>
  constexpr Real real(int option) const {
    return static_cast<Real>(options[option]);
  }
  constexpr bool flag(int option) const { return options[option] != 0; }
  constexpr int gradient_count() const {
    int n = 0;
    for (int g = 0; g < kGradients; ++g) n += gradients[g].data != nullptr;
    return n;
  }
  constexpr bool wants_gradients() const {
    bool any = gradient_count() > 0;
    for (int g = 0; g < kScalarGradients; ++g) any = any || scalar_gradients[g];
    return any;
  }
  /// Where a block's sums for a gradient lie; null: it is absent.
  template <class Real = float>
  constexpr Real* block_sums(std::int64_t block, int gradient) const {
    if (!gradients[gradient].data) return nullptr;
    int before = 0;
    for (int g = 0; g < gradient; ++g) before += gradients[g].data != nullptr;
    return sums_of<Real>() + (block * gradient_count() + before) * column_sums_stride(rows.columns);
  }
  /// Where the teams' sums for a scalar's gradient lie, one after the other; null: it is absent.
  template <class Real = float>
  constexpr Real* team_sums(int gradient) const {
    if (!scalar_gradients[gradient]) return nullptr;
    std::int64_t before = blocks * gradient_count() * column_sums_stride(rows.columns);
    for (int g = 0; g < gradient; ++g) before += scalar_gradients[g] ? teams : 0;
    return sums_of<Real>() + before;
  }

 private:
  template <class Real>
  constexpr Real* sums_of() const {
    if constexpr (std::is_same_v<Real, float>)
      return sums;
    else
      return static_cast<Real*>(static_cast<void*>(sums));
  }
};

namespace detail {

enum class RowOperand { rows, statistic, vector, scalar };
constexpr RowOperand row_operand(const Signature::Operand& operand) {
  if (operand.shape.one) return RowOperand::scalar;
  if (!operand.shape.outer) return RowOperand::vector;
  return operand.shape.count == 0 ? RowOperand::statistic : RowOperand::rows;
}
constexpr RowCounts row_counts(const Signature& s) {
  RowCounts n{.inputs = 0, .outputs = 0};
  for (int o = 0; o < s.operand_count(); ++o) {
    const bool output = s.operands[o].role != Signature::Role::input;
    switch (row_operand(s.operands[o])) {
      case RowOperand::rows:
        ++(output ? n.outputs : n.inputs);
        break;
      case RowOperand::statistic:
        ++(output ? n.statistics_out : n.statistics_in);
        break;
      case RowOperand::vector:
        ++(output ? n.gradients : n.vectors);
        break;
      case RowOperand::scalar:
        ++(output ? n.scalar_gradients : n.scalars);
    }
  }
  return n;
}

/// A statistic as an operand of x's rank, so that its offsets are found with the rows'.
inline ConstView over_columns(const ConstView& statistic, const ConstView& x) {
  ConstView v = statistic;
  v.rank = x.rank;
  v.shape[v.rank - 1] = x.shape[x.rank - 1];
  v.stride[v.rank - 1] = 1;  // never walked: each row has one value
  return v;
}

inline RowBlocks row_blocks(const Queue& queue, const ConstView& x) {
  std::int64_t rows = 1;
  for (int d = 0; d + 1 < x.rank; ++d) rows *= x.shape[d];
  const std::int64_t columns = x.shape[x.rank - 1];
  if (columns == 0) return {};
  if (queue.device() == Device::cpu) return {cpu_row_blocks(rows), cpu_row_blocks(rows)};
  const std::int64_t blocks = gpu_row_blocks(rows, columns, x.dtype, queue.architecture());
  return {blocks, gpu_row_teams(blocks, rows, columns, x.dtype)};
}

/// x is the signature's first operand.
template <class Problem>
Problem row_problem(const Queue& queue, const Signature& s, const Call& call) {
  const ConstView& x = call.view(0);
  Problem p{};
  ConstView views[Problem::kOperands];
  int rows_in = 0, statistics_in = Problem::kStatisticsIn, rows_out = Problem::kOutputs,
      statistics_out = Problem::kStatisticsOut, vectors = 0, gradients = 0, scalars = 0, scalar_gradients = 0;
  p.dtype = x.dtype;
  p.vector_dtype = p.gradient_dtype = DType::f32;
  for (int o = 0; o < s.operand_count(); ++o) {
    const ConstView& view = call.view(o);
    const bool output = s.operands[o].role != Signature::Role::input, present = view.present();
    const RowOperand kind = row_operand(s.operands[o]);
    if (kind == RowOperand::vector || kind == RowOperand::scalar) {
      if (present) (output ? p.gradient_dtype : p.vector_dtype) = view.dtype;
      if (kind == RowOperand::scalar) {
        if (output)
          p.scalar_gradients[scalar_gradients++] = present ? call.output(o) : nullptr;
        else
          p.scalars[scalars++] = view.data;
        continue;
      }
      ColumnVector& vector = output ? p.gradients[gradients++] : p.vectors[vectors++];
      if (present && view.shape[0] > 0) vector = {view.data, view.stride[0]};
      continue;
    }
    int& next = kind == RowOperand::rows ? (output ? rows_out : rows_in)
                : output                 ? statistics_out
                                         : statistics_in;
    // An absent operand has x's strides, which keep nothing from being merged.
    views[next] = !present ? x : kind == RowOperand::rows ? view : over_columns(view, x);
    p.data[next++] = present ? view.data : nullptr;
  }
  const ConstView* pointers[Problem::kOperands];
  for (int o = 0; o < Problem::kOperands; ++o) pointers[o] = &views[o];
  p.rows = rows_of(pointers);
  for (int k = 0; k < s.option_count(); ++k) p.options[k] = call.options[k];
  if (Problem::kHasGradients) {
    const RowBlocks its = row_blocks(queue, x);
    p.blocks = its.blocks;
    p.teams = its.teams;
  }
  p.sums = static_cast<float*>(call.workspace.pointer);
  return p;
}

template <class Problem>
Status launch_rows(const Queue& queue, const Op& op, const Call& call) {
  const auto problem = row_problem<Problem>(queue, op.signature, call);
  return dispatch(queue, op, &problem, call.variant);
}

inline std::size_t sums_bytes(const Queue& queue, const Signature& s, const Call& call) {
  const ConstView& x = call.view(0);
  const RowBlocks blocks = row_blocks(queue, x);
  std::int64_t numbers = 0;
  for (int o = 0; o < s.operand_count(); ++o) {
    if (s.operands[o].role == Signature::Role::input || !call.view(o).present()) continue;
    const RowOperand kind = row_operand(s.operands[o]);
    if (kind == RowOperand::vector) numbers += blocks.blocks * column_sums_stride(x.shape[x.rank - 1]);
    if (kind == RowOperand::scalar) numbers += blocks.teams;
  }
  return static_cast<std::size_t>(numbers) * (x.dtype == DType::f64 ? sizeof(double) : sizeof(float));
}
template <const Signature& kSignature>
std::size_t row_workspace(const Queue& queue, const Call& call) {
  return sums_bytes(queue, kSignature, call);
}

inline Status takes_all_rows(const void*) { return {}; }
inline constexpr Variant kRowVariants[] = {
    {"tile", "every dtype and stride: the block language's kernel", Role::standard, takes_all_rows},
};

}  // namespace detail

/// The op of a signature whose operands RowCounts tells; `variants`: where it has a ladder.
template <const Signature& kSignature, class Problem>
constexpr Op row_op(const char* name, const char* direction,
                    std::span<const Variant> variants = detail::kRowVariants) {
  static_assert(detail::row_counts(kSignature) == Problem::kCounts,
                "rooftile::row_op: the problem's RowCounts are not those of the signature");
  return {name,
          direction,
          kSignature.function,
          variants,
          kSignature,
          &detail::launch_rows<Problem>,
          Problem::kHasGradients ? &detail::row_workspace<kSignature> : nullptr};
}

}  // namespace rooftile
