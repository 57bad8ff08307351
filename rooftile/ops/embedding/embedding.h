#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"
#include "rooftile/core/workspace.h"

namespace rooftile {

struct EmbeddingOptions {
  std::int64_t padding_idx = -1;  ///< a token whose row gets no gradient; -1: none
  const char* variant = nullptr;  ///< null: chosen by the library; else one of `rooftile list embedding`
};

struct EmbeddingInputs {
  ConstView tokens;               ///< {…, S}: i64 or i32, rows of the table from 0 to V - 1
  ConstView table;                ///< {V, D}: f32, f16 or bf16
  ConstView position_table = {};  ///< optional: {S, D} of the table's dtype, a row for each place along S
};

/// Rows of a table: y[…, s, :] = table[tokens[…, s], :], plus position_table[s, :], a sum in f32 rounded
/// once.
///
///     embedding(queue, {.tokens = tokens, .table = wte, .position_table = wpe_from_the_first_place}, y);
///
/// y: {…, S, D} of the table's dtype. Any strides and sizes, rank of tokens 1 to 7. A token outside of
/// 0 … V - 1 gives a row of NaN; nothing outside of the table is read. padding_idx matters to the backward
/// alone. No workspace.
///
/// Errors: tokens, table or y absent, a dtype or shape other than said above, null or misaligned data, a
/// padding_idx below -1, y that overlaps itself or an input; a variant that is unknown or refuses. Cost:
/// memory-bound, each row of y written once, its table's row read.
Status embedding(const Queue& queue, const EmbeddingInputs& inputs, View y,
                 const EmbeddingOptions& options = {});

struct EmbeddingBackwardInputs {
  ConstView tokens;  ///< the forward's
  ConstView table;   ///< the forward's: its shape and dtype; its elements are not read
  ConstView dy;      ///< {…, S, D}: the gradient of y
};
struct EmbeddingBackwardOutputs {
  View dtable;                ///< {V, D} of the table's dtype
  View dposition_table = {};  ///< optional: {S, D}
};

/// The gradients: a row of dtable is the sum of the rows of dy whose token it is, 0 where there is none; a
/// row of dposition_table the sum over all sequences. Sums are f32, in ascending order of the tokens' places,
/// rounded once: the same bits on each run, at any thread count. No sum is atomic: tokens are sorted by their
/// number in the workspace, stably. The row `padding_idx` of dtable is 0; a token outside of 0 … V - 1 has
/// none. Needs a workspace: ask embedding_backward_workspace.
///
/// Errors: as embedding's, and a workspace too small, not aligned to 64 bytes or not apart from all
/// arguments; more than 2^31 - 1 tokens. Cost: dy read once (twice with dposition_table), dtable written
/// once.
Status embedding_backward(const Queue& queue, const EmbeddingBackwardInputs& inputs,
                          const EmbeddingBackwardOutputs& outputs, const EmbeddingOptions& options = {},
                          Workspace workspace = {});
/// The bytes of workspace that embedding_backward needs with these arguments.
Status embedding_backward_workspace(const Queue& queue, const EmbeddingBackwardInputs& inputs,
                                    const EmbeddingBackwardOutputs& outputs, std::size_t& bytes);

}  // namespace rooftile
