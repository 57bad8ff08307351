#pragma once
// What passes from validation (attention_scaled.cpp) to the variants.
#include "rooftile/core/queue.h"
#include "rooftile/core/signature.h"
#include "rooftile/ops/attention/attention.problem.h"

namespace rooftile {

struct AttentionScaledProblem {
  const Call& call;
  Device device;
  AttentionProblem attention;  ///< of the codes; without packed sequences
  DType out;                   ///< y's
  bool packed;                 ///< sequences
  /// For wgmma_f8, in the workspace: v as {B, G, E, T}, its rows `turned_row` bytes apart.
  std::uint8_t* turned;

  static constexpr int kMaxHead = 128;  ///< channels that wgmma_f8 takes
  std::int64_t turned_row() const { return (attention.t + 15) / 16 * 16; }
  std::int64_t turned_bytes() const { return attention.b * attention.g * attention.e * turned_row(); }
};

}  // namespace rooftile
