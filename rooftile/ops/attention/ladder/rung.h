#pragma once
// What the GPU's rungs share: where a head's rows lie, and one row's log-sum-exp.
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/launch.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/backend/cuda/unroll.h"
#include "rooftile/ops/attention/ladder/ladder.h"

namespace rooftile::ladder::attention_rung {

/// Rows of one batch and head in f32.
struct HeadRows {
  float* data;
  std::int64_t row_stride, stride;
  __device__ HeadRows(const AttentionOperand& o, std::int64_t batch, std::int64_t head)
      : data(static_cast<float*>(const_cast<void*>(o.data)) + batch * o.stride[0] + head * o.stride[2]),
        row_stride(o.stride[1]),
        stride(o.stride[3]) {}
  __device__ float& at(std::int64_t row, std::int64_t channel) const {
    return data[row * row_stride + channel * stride];
  }
};

__device__ inline void put_lse(const AttentionProblem& p, std::int64_t batch, std::int64_t head,
                               std::int64_t i, float row_max, float sum) {
  if (p.lse)
    p.lse[batch * p.lse_stride[0] + head * p.lse_stride[1] + i * p.lse_stride[2]] = row_max + logf(sum);
}

/// `blocks` of `threads`, if a grid may have so many.
template <class Kernel>
Status launch_blocks(const CudaLaunch& launch, const AttentionProblem& p, std::int64_t blocks,
                     unsigned threads, std::size_t shared_bytes, Kernel kernel) {
  if (blocks == 0) return {};
  if (blocks > 0x7fffffff)
    return Status::error("attention: a grid has at most 2147483647 blocks, this rung would take %lld",
                         static_cast<long long>(blocks));
  return cuda::launch(launch, "attention", {static_cast<unsigned>(blocks), threads, shared_bytes}, kernel, p);
}

}  // namespace rooftile::ladder::attention_rung
