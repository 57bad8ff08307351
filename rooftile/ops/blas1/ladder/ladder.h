#pragma once
#include "rooftile/core/plugin.h"
#include "rooftile/ops/blas1/blas1.problem.h"

namespace rooftile::ladder {

// f32, all elements side by side, one thread. From the plainest to the one that lacks only threads.
void launch_add_scalar(const CpuLaunch& launch, const AddProblem& problem);
void launch_add_vectors(const CpuLaunch& launch, const AddProblem& problem);
void launch_add_streaming(const CpuLaunch& launch, const AddProblem& problem);

void launch_dot_scalar(const CpuLaunch& launch, const DotProblem& problem);
void launch_dot_vectors(const CpuLaunch& launch, const DotProblem& problem);
void launch_dot_accumulators(const CpuLaunch& launch, const DotProblem& problem);
void launch_dot_chunks(const CpuLaunch& launch, const DotProblem& problem);
void launch_dot_compensated(const CpuLaunch& launch, const DotProblem& problem);

// The same on a GPU, or on the emulated device. Those from vector loads on take vectors that begin at a
// multiple of 16 bytes.
Status launch_add_one_element(const CudaLaunch& launch, const AddProblem& problem);
Status launch_add_grid_stride(const CudaLaunch& launch, const AddProblem& problem);
Status launch_add_vector_loads(const CudaLaunch& launch, const AddProblem& problem);
Status launch_add_in_flight(const CudaLaunch& launch, const AddProblem& problem);

Status launch_dot_thread_sums(const CudaLaunch& launch, const DotProblem& problem);
Status launch_dot_neighbours(const CudaLaunch& launch, const DotProblem& problem);
Status launch_dot_shared_memory(const CudaLaunch& launch, const DotProblem& problem);
Status launch_dot_shuffles(const CudaLaunch& launch, const DotProblem& problem);
Status launch_dot_vector_loads(const CudaLaunch& launch, const DotProblem& problem);
Status launch_dot_two_passes(const CudaLaunch& launch, const DotProblem& problem);

/// Blocks of `threads` threads for a grid-stride loop over `steps`: as many as the GPU holds at once (2048
/// threads a multiprocessor), or fewer where that is enough.
inline unsigned grid_of(const CudaLaunch& launch, std::int64_t steps, int threads) {
  const std::int64_t held = std::int64_t{launch.multiprocessors} * (2048 / threads);
  const std::int64_t needed = (steps + threads - 1) / threads;
  return static_cast<unsigned>(needed < held ? needed : held);
}

}  // namespace rooftile::ladder
