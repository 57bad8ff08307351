#pragma once
// What passes from validation (sampling.cpp) to the launches (sampling.cpu.cpp, sampling.cu).
#include "rooftile/core/rows.h"
#include "rooftile/ops/sampling/sampling.weights.h"

namespace rooftile {

struct TopKProblem {
  enum { kX, kValues, kIndices };
  Rows<3> rows;  ///< of values and indices as if they had x's columns: each row's beginning
  const void* x;
  void* values;
  std::int64_t* indices;
  std::int64_t value_stride, index_stride;
  DType dtype;
  int k;
};

struct SampleProblem {
  enum { kLogits, kToken, kSeeds, kOffsets };
  Rows<4> rows;
  const void* logits;
  std::int64_t* token;
  PhiloxNumbers numbers;
  const void *seeds, *offsets;  ///< one per row, as wide as `numbers`; null: none
  DType dtype;
  double temperature, top_p, min_p;
  std::int64_t top_k;
  SampleRule rule;

  /// With the rule that the options make: in the launch, as the caller's rounding mode must not show in it.
  SampleProblem ruled() const {
    SampleProblem p = *this;
    p.rule = sample_rule(temperature, top_k, top_p, min_p);
    return p;
  }
  constexpr std::uint64_t random(std::int64_t row) const {
    const PhiloxStream stream = numbers.stream();
    const std::uint64_t place = seeds || offsets ? 0 : static_cast<std::uint64_t>(row);
    return sample_random(stream.seed + of_row(seeds, kSeeds, row),
                         stream.offset + of_row(offsets, kOffsets, row) + place);
  }
  constexpr std::uint64_t of_row(const void* its, int operand, std::int64_t row) const {
    return its ? numbers.whole(its, rows.offset(operand, row)) : 0;
  }
  /// How many of the largest elements are all that a row's token depends on; 0: too many to keep.
  constexpr int listed() const {
    if (rule.top_k > 0 && rule.top_k <= kMaxListed) {
      return static_cast<int>(rule.top_k < rows.columns ? rule.top_k : rows.columns);
    }
    return rows.columns <= kMaxListed ? static_cast<int>(rows.columns) : 0;
  }
};

}  // namespace rooftile
