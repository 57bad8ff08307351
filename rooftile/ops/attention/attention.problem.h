#pragma once
// What passes from validation (attention.cpp) to the launches (attention.cpu.cpp, attention.cu, the ladder).
#include <cstdint>

#include "rooftile/core/dtype.h"

#if defined(__CUDACC__)
#define ROOFTILE_ATTENTION __host__ __device__ inline
#else
#define ROOFTILE_ATTENTION inline
#endif

namespace rooftile {

/// One operand of four dimensions, its strides in elements: of q, k, v, y and their gradients batch,
/// position, head, channel; of a bias batch, head, query, key.
struct AttentionOperand {
  const void* data = nullptr;
  std::int64_t stride[4] = {};
};

/// A half-open range.
struct AttentionRange {
  std::int64_t begin, end;
  ROOFTILE_ATTENTION std::int64_t size() const { return end - begin; }
};

struct AttentionProblem {
  std::int64_t b, s, t, h, g, d, e;
  DType dtype, bias_dtype;
  float scale, softcap;      ///< scale: never 0; softcap 0: none
  std::int64_t left, right;  ///< keys before and after the query's own; -1: all. Causal: right is 0
  AttentionOperand q, k, v, bias, y, dy, dq, dk, dv;
  float* lse;  ///< null: not wanted
  std::int64_t lse_stride[3];
  const void* sink;  ///< null: none
  void* dsink;       ///< null: not wanted
  std::int64_t sink_stride, dsink_stride;
  DType sink_dtype;
  // Of a GPU's launch alone:
  bool words;             ///< rows of q, k, v and y are whole 16-byte words
  std::int64_t together;  ///< heads whose blocks run side by side; 0: all

  ROOFTILE_ATTENTION std::int64_t group() const { return g == 0 ? 0 : h / g; }
  /// The keys that query i sees; empty ones have end = begin.
  ROOFTILE_ATTENTION AttentionRange keys(std::int64_t i) const { return keys(i, t); }
  /// Of `length` keys instead of t.
  ROOFTILE_ATTENTION AttentionRange keys(std::int64_t i, std::int64_t length) const {
    const std::int64_t own = i + length - s;
    return cut(left < 0 ? 0 : own - left, right < 0 ? length : own + right + 1, length);
  }
  /// The queries that see key j.
  ROOFTILE_ATTENTION AttentionRange queries(std::int64_t j) const {
    const std::int64_t own = j - t + s;
    return cut(right < 0 ? 0 : own - right, left < 0 ? s : own + left + 1, s);
  }
  /// What any of the queries from i to before end sees, end > i; what lies between is seen by one of them.
  ROOFTILE_ATTENTION AttentionRange keys_of(std::int64_t i, std::int64_t end) const {
    return {keys(i).begin, keys(end - 1).end};
  }
  ROOFTILE_ATTENTION AttentionRange queries_of(std::int64_t j, std::int64_t end) const {
    return {queries(j).begin, queries(end - 1).end};
  }

 private:
  ROOFTILE_ATTENTION static AttentionRange cut(std::int64_t begin, std::int64_t end, std::int64_t size) {
    begin = begin < 0 ? 0 : begin < size ? begin : size;
    end = end > size ? size : end;
    return {begin, end > begin ? end : begin};
  }
};

}  // namespace rooftile
