// Idea: a kernel for each result, as the equations read: dx element by element, dweight and dbias by a thread
// a column, dalpha by one block that goes through all elements.
// Changed: this is the first rung.
// Binds: bytes, since x and dy are read three times; and as few threads as columns, or one block.
// Next: one kernel, which reads them once.
#include "rooftile/ops/dyt/ladder/gpu_terms.h"

namespace rooftile::ladder {
namespace {
using namespace dyt_gpu;

__global__ void write_dx(const __grid_constant__ DytBackwardProblem p) {
  const std::int64_t row = blockIdx.x;
  const float *x = row_of<const float>(p, kX, row), *dy = row_of<const float>(p, kDy, row);
  const float *weight = weights_of(p), alpha = alpha_of(p);
  float* dx = row_of<float>(p, kDx, row);
  for (std::int64_t i = threadIdx.x; i < p.rows.columns; i += kThreads)
    dx[i] = terms_of(x[i], dy[i], weight[i], alpha).dx;  // [dx]
}

__global__ void add_columns(const __grid_constant__ DytBackwardProblem p) {
  const std::int64_t column = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (column >= p.rows.columns) return;
  const float weight = weights_of(p)[column], alpha = alpha_of(p);
  float dweight = 0, dbias = 0;
  for (std::int64_t row = 0; row < p.rows.rows; ++row) {
    const Terms t = terms_of(row_of<const float>(p, kX, row)[column],
                             row_of<const float>(p, kDy, row)[column], weight, alpha);  // [down a column]
    dweight += t.dweight;
    dbias += t.dbias;
  }
  static_cast<float*>(const_cast<void*>(p.gradients[0].data))[column] = dweight;
  static_cast<float*>(const_cast<void*>(p.gradients[1].data))[column] = dbias;
}

__global__ void add_all(const __grid_constant__ DytBackwardProblem p) {
  const float *weight = weights_of(p), alpha = alpha_of(p);
  float dalpha = 0;
  for (std::int64_t row = 0; row < p.rows.rows; ++row) {
    const float *x = row_of<const float>(p, kX, row), *dy = row_of<const float>(p, kDy, row);
    for (std::int64_t i = threadIdx.x; i < p.rows.columns; i += kThreads)
      dalpha += terms_of(x[i], dy[i], weight[i], alpha).dalpha;  // [dalpha]
  }
  dalpha = block_sum(dalpha);
  if (threadIdx.x == 0) *static_cast<float*>(p.scalar_gradients[0]) = dalpha;
}

}  // namespace

Status launch_dyt_backward_naive(const CudaLaunch& launch, const DytBackwardProblem& p) {
  const auto rows = static_cast<unsigned>(p.rows.rows);
  const auto across = static_cast<unsigned>((p.rows.columns + kThreads - 1) / kThreads);
  // dx may lie where x or dy does: it comes last.
  Status status = cuda::launch(launch, "dyt_backward", {1, kThreads}, add_all, p);
  if (status && across > 0) status = cuda::launch(launch, "dyt_backward", {across, kThreads}, add_columns, p);
  if (status && rows > 0) status = cuda::launch(launch, "dyt_backward", {rows, kThreads}, write_dx, p);
  return status;
}

}  // namespace rooftile::ladder
