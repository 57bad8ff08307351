#pragma once
#include "rooftile/core/plugin.h"
#include "rooftile/ops/attention/attention.problem.h"

namespace rooftile::ladder {

// f32, heads of up to 128, neither bias nor cap. From the plainest to the one that lacks only dtypes, longer
// heads and the rest of the options; and that on tensor cores, of bf16, heads of 64.
Status launch_attention_standard(const CudaLaunch& launch, const AttentionProblem& problem);
Status launch_attention_fused(const CudaLaunch& launch, const AttentionProblem& problem);
Status launch_attention_online(const CudaLaunch& launch, const AttentionProblem& problem);
Status launch_attention_registers(const CudaLaunch& launch, const AttentionProblem& problem);
Status launch_attention_mma(const CudaLaunch& launch, const AttentionProblem& problem);

}  // namespace rooftile::ladder
