// Judges the learner's block_sum within rooftile's dot: a block's 256 products in, their sum out.
#include "rooftile/exercise/gpu.h"
#include "rooftile/ops/blas1/blas1.problem.h"

#include ROOFTILE_EXERCISE

namespace {

using namespace rooftile;
constexpr unsigned kThreads = 256;

__global__ void products(const float* x, const float* y, std::int64_t n, float* sums) {
  ROOFTILE_SHARED(values, float[kThreads]);
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  values[threadIdx.x] = i < n ? x[i] * y[i] : 0;
  const float sum = block_sum(values);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

template <class R>
__global__ void add_sums(const float* sums, int count, R* result) {
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += sums[i];
  *result = sum;
}

Status launch(const CudaLaunch& where, const DotProblem& p) {
  const std::int64_t n = p.rows.columns;
  const auto blocks = static_cast<unsigned>((n + kThreads - 1) / kThreads);
  auto* sums = static_cast<float*>(where.scratch);
  if (blocks > 0)
    if (Status s =
            cuda::launch(where, "dot", {blocks, kThreads}, products, static_cast<const float*>(p.data[0]),
                         static_cast<const float*>(p.data[1]), n, sums);
        !s)
      return s;
  const int count = static_cast<int>(blocks);
  if (p.result_dtype == DType::f64)
    return cuda::launch(where, "dot", {1, 1}, add_sums<double>, sums, count, static_cast<double*>(p.result));
  return cuda::launch(where, "dot", {1, 1}, add_sums<float>, sums, count, static_cast<float*>(p.result));
}

}  // namespace
ROOFTILE_EXERCISE_KERNEL("dot", "03_shared_memory", launch)
