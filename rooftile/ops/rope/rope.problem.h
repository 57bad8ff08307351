#pragma once
// What passes from validation (rope.cpp) to the launches (rope.cpu.cpp, rope.cu).
#include "rooftile/core/tensor_view.h"

namespace rooftile {

/// Queries or keys: what they are, and where they go. Strides of B, S, H and D, in elements.
struct RopeHeads {
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t count = 0;  ///< of a token
  std::int64_t x_stride[4] = {}, y_stride[4] = {};

  constexpr bool in_place() const {
    bool same = x == y;
    for (int d = 0; d < 4; ++d) same = same && x_stride[d] == y_stride[d];
    return same;
  }
};

struct RopeProblem {
  RopeHeads q, k;
  std::int64_t batch, length, size;  ///< B, S, D
  std::int64_t pairs;                ///< that turn: 2 · pairs <= size
  const void* positions;             ///< null: 0, 1, … along S
  std::int64_t position_stride[2];
  const float* inv_freq;  ///< null: base^(-i/pairs)
  std::int64_t inv_freq_stride;
  double offset, base;
  double cosine_factor, sine_factor;  ///< the backward's sine has the other sign
  DType dtype, position_dtype;
  bool interleaved;

  constexpr std::int64_t tokens() const { return batch * length; }
  constexpr std::int64_t heads() const { return q.count + k.count; }
  constexpr double position(std::int64_t b, std::int64_t s) const {
    if (!positions) return static_cast<double>(s) + offset;
    const std::int64_t at = b * position_stride[0] + s * position_stride[1];
    return static_cast<double>(position_dtype == DType::i64
                                   ? static_cast<const std::int64_t*>(positions)[at]
                                   : static_cast<const std::int32_t*>(positions)[at]) +
           offset;
  }
};

}  // namespace rooftile
