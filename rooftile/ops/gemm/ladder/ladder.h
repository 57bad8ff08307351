#pragma once
// The CPU's rungs: one product of f32, row by row without gaps, on one thread.
#include "rooftile/core/plugin.h"
#include "rooftile/ops/gemm/gemm.problem.h"

namespace rooftile::ladder {

void launch_scalar(const CpuLaunch& launch, const GemmProblem& problem);
void launch_loop_order(const CpuLaunch& launch, const GemmProblem& problem);
void launch_vectors(const CpuLaunch& launch, const GemmProblem& problem);
void launch_register_tile(const CpuLaunch& launch, const GemmProblem& problem);
void launch_packed(const CpuLaunch& launch, const GemmProblem& problem);

/// a·b + c as the instruction set has it: fused, or without such an instruction rounded twice.
inline float multiply_add(float a, float b, float c) {
#if defined(__FMA__)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

}  // namespace rooftile::ladder
