#pragma once
#include "rooftile/core/plugin.h"
#include "rooftile/ops/softmax/softmax.problem.h"
#include "rooftile/tile/split_scale.h"

namespace rooftile::ladder {

// f32, dense rows, one thread. From the plainest to the one that lacks only threads.
void launch_scalar(const CpuLaunch& launch, const SoftmaxProblem& problem);
void launch_vectors(const CpuLaunch& launch, const SoftmaxProblem& problem);
void launch_fast_exp(const CpuLaunch& launch, const SoftmaxProblem& problem);
void launch_accumulators(const CpuLaunch& launch, const SoftmaxProblem& problem);
void launch_streaming(const CpuLaunch& launch, const SoftmaxProblem& problem);

// On a GPU: f32, dense rows. From the plainest to the one that lacks only dtypes, strides, longer and
// unaligned rows.
/// Elements that a block's registers hold: 1024 threads with 32 each.
inline constexpr std::int64_t kLongestGpuSoftmaxRow = 32768;
Status launch_softmax_naive(const CudaLaunch& launch, const SoftmaxProblem& problem);
Status launch_softmax_block(const CudaLaunch& launch, const SoftmaxProblem& problem);
Status launch_softmax_shuffles(const CudaLaunch& launch, const SoftmaxProblem& problem);
Status launch_softmax_registers(const CudaLaunch& launch, const SoftmaxProblem& problem);
Status launch_softmax_words(const CudaLaunch& launch, const SoftmaxProblem& problem);
Status launch_softmax_teams(const CudaLaunch& launch, const SoftmaxProblem& problem);
Status launch_softmax_exp2(const CudaLaunch& launch, const SoftmaxProblem& problem);

}  // namespace rooftile::ladder
