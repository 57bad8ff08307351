// Idea: a block's registers hold a row, 32 elements a thread: it is read once and written once.
// Changed: the three passes are over registers; a block has as many threads as hold the row, at most 1024.
// Binds: bytes, two units, as few as there can be, but in requests of 128 bytes: a thread gives 32 to read
// its elements and 32 to write them. Next: requests of 512 bytes.
#include <cmath>

#include "rooftile/backend/cuda/launch.h"
#include "rooftile/ops/softmax/ladder/gpu_row.h"

namespace rooftile::ladder {
using namespace softmax_gpu;
namespace {

__global__ void __launch_bounds__(kMaxThreads) softmax_registers(const __grid_constant__ SoftmaxProblem p) {
  const int n = static_cast<int>(p.rows.columns), threads = static_cast<int>(blockDim.x);
  const int t = static_cast<int>(threadIdx.x);
  const float* x = static_cast<const float*>(p.x) + p.rows.offset(0, blockIdx.x);
  float* y = static_cast<float*>(p.y) + p.rows.offset(1, blockIdx.x);

  const tile::SplitScale s(p.scale);
  // [held]
  float row[kItemsPerThread];  // past the end -inf, whose exponential is 0
  ROOFTILE_UNROLL for (int k = 0; k < kItemsPerThread; ++k) {
    const int i = k * threads + t;
    row[k] = i < n ? s.unit * x[i] : -HUGE_VALF;  // [read]
  }
  // [/held]

  float row_max = -HUGE_VALF;
  ROOFTILE_UNROLL for (int k = 0; k < kItemsPerThread; ++k) row_max = fmaxf(row_max, row[k]);
  row_max = over_block(row_max, Larger{});

  float sum = 0;
  ROOFTILE_UNROLL for (int k = 0; k < kItemsPerThread; ++k) sum += row[k] = expf((row[k] - row_max) * s.rest);
  const float inverse = 1 / over_block(sum, Add{});

  ROOFTILE_UNROLL for (int k = 0; k < kItemsPerThread; ++k) {
    const int i = k * threads + t;
    if (i < n) y[i] = row[k] * inverse;  // [write]
  }
}

}  // namespace

Status launch_softmax_registers(const CudaLaunch& launch, const SoftmaxProblem& p) {
  if (p.rows.rows <= 0 || p.rows.columns <= 0) return {};
  const auto blocks = static_cast<unsigned>(p.rows.rows);
  const auto warps =
      static_cast<unsigned>((p.rows.columns + 32 * kItemsPerThread - 1) / (32 * kItemsPerThread));
  return cuda::launch(launch, "softmax", {blocks, 32 * warps}, softmax_registers, p);
}

}  // namespace rooftile::ladder
