#pragma once
// What passes from validation (cross_entropy.cpp) to the launches (cross_entropy.cpu.cpp, cross_entropy.cu).
#include "rooftile/core/row_problem.h"

namespace rooftile {

/// What of a call is computed: functions that never have all rows' logits call for some rows at a time, and
/// once for what all rows share.
enum class CrossEntropyParts : std::uint8_t { all, rows, shared };

/// What all rows of a backward share: the gradient of their losses that comes from the reduced one (dloss, by
/// the mean's divisor), and Σ w over the classes.
struct CrossEntropyShared {
  double gradient, weights;
};

/// What a loss and its gradient follow from beside the logits.
struct CrossEntropyTerms {
  const void* target;
  DType target_dtype;
  ColumnVector weight;  ///< of f32; data is null where it is absent
  std::int64_t classes;
  std::int64_t ignore_index;
  float label_smoothing, z_loss;
  bool mean;
  float scale;  ///< 1 / the next power of two from `classes` on: a sum of so many logits does not overflow

  constexpr bool smooths() const { return label_smoothing > 0; }
  constexpr std::int64_t target_at(std::int64_t offset) const {
    return target_dtype == DType::i64 ? static_cast<const std::int64_t*>(target)[offset]
                                      : static_cast<const std::int32_t*>(target)[offset];
  }
  constexpr bool is_class(std::int64_t index) const { return index >= 0 && index < classes; }
  /// ignore_index may be a class.
  constexpr bool counts(std::int64_t index) const { return is_class(index) && index != ignore_index; }
  constexpr double weight_of(std::int64_t index) const {
    return weight.data ? double(static_cast<const float*>(weight.data)[index * weight.stride]) : 1;
  }
  /// What a row with this target adds to the mean's divisor.
  constexpr double share_of(std::int64_t index) const { return counts(index) ? weight_of(index) : 0; }
};

struct CrossEntropyProblem {
  enum { kLogits, kTarget, kLosses, kLse };
  Rows<4> rows;  ///< in this order; all but the logits have one value for each row
  const void* logits;
  CrossEntropyTerms terms;
  float* loss;
  float* losses;  ///< the output, or workspace
  float* lse;     ///< null: absent
  DType dtype;
  CrossEntropyParts parts = CrossEntropyParts::all;  ///< shared: `loss`, of `losses` that are there
};

struct CrossEntropyBackwardProblem {
  enum { kDlogits, kLogits, kTarget, kLse, kDlosses };
  Rows<5> rows;
  void* dlogits;
  const void* logits;
  CrossEntropyTerms terms;
  const float* lse;
  const float* dlosses;  ///< null: absent
  const float* dloss;    ///< null: absent, and 1 where `dlosses` is, too
  DType dtype;
  CrossEntropyParts parts = CrossEntropyParts::all;
  CrossEntropyShared* shared = nullptr;  ///< of parts: where it is; else null

  /// Whether Σ w over the classes is wanted.
  constexpr bool weighs() const { return terms.smooths() && terms.weight.data; }
  /// Whether the reduced loss has a gradient, and what.
  constexpr bool reduces() const { return dloss || !dlosses; }
  constexpr double dloss_or_one() const { return dloss ? double(*dloss) : 1; }
};

}  // namespace rooftile
