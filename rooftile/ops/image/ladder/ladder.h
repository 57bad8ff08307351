#pragma once
#include "rooftile/core/plugin.h"
#include "rooftile/ops/image/image.problem.h"

namespace rooftile::ladder {

// Packed pixels, one thread. From the plainest to the one that lacks only threads.
void launch_scalar(const CpuLaunch& launch, const GrayProblem& problem);
void launch_integers(const CpuLaunch& launch, const GrayProblem& problem);
void launch_vectors(const CpuLaunch& launch, const GrayProblem& problem);
void launch_pairs(const CpuLaunch& launch, const GrayProblem& problem);
void launch_streaming(const CpuLaunch& launch, const GrayProblem& problem);

// The same on a GPU, or on the emulated device. Rows begin at a multiple of 4 bytes where words are read, of
// 16 for sixteen pixels.
Status launch_gray_one_pixel(const CudaLaunch& launch, const GrayProblem& problem);
Status launch_gray_fixed_point(const CudaLaunch& launch, const GrayProblem& problem);
Status launch_gray_words(const CudaLaunch& launch, const GrayProblem& problem);
Status launch_gray_shared_memory(const CudaLaunch& launch, const GrayProblem& problem);
Status launch_gray_sixteen_pixels(const CudaLaunch& launch, const GrayProblem& problem);

}  // namespace rooftile::ladder
