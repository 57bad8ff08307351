// The exercise of this folder's README, solved. To try it yourself, empty the kernel's body, and run
//   ctest --preset release -R TransposeExercise
#include "rooftile/ops/transpose/exercise/swizzled.h"

#include "rooftile/backend/cuda/launch.h"
#include "rooftile/backend/cuda/shared.h"

namespace rooftile::exercise {
namespace {

// [swizzled]
/// 04_padded without its padding: the element of row r and column c lies at column c ^ r. Of a row, all 32
/// columns are there, in another order. Of a column c, the rows' places c ^ r differ in all 32 banks.
__global__ void transpose_swizzled(const float* x, float* y, int m, int n) {
  ROOFTILE_SHARED(tile, float[32][32]);
  const int first_i = static_cast<int>(blockIdx.y * 32), first_j = static_cast<int>(blockIdx.x * 32);
  const int lane = static_cast<int>(threadIdx.x), row = static_cast<int>(threadIdx.y);
  if (first_i + row < m && first_j + lane < n)
    tile[row][lane ^ row] = x[std::int64_t{first_i + row} * n + first_j + lane];
  __syncthreads();
  if (first_j + row < n && first_i + lane < m)
    y[std::int64_t{first_j + row} * m + first_i + lane] = tile[lane][row ^ lane];
}
// [/swizzled]

}  // namespace

Status launch_swizzled(const CudaLaunch& launch, const TransposeProblem& p) {
  if (p.size() == 0) return {};
  const auto blocks = [](std::int64_t size) { return static_cast<unsigned>((size + 31) / 32); };
  return cuda::launch(launch, "transpose", {{blocks(p.n), blocks(p.m)}, {32, 32}}, transpose_swizzled,
                      static_cast<const float*>(p.x), static_cast<float*>(p.y), static_cast<int>(p.m),
                      static_cast<int>(p.n));
}

}  // namespace rooftile::exercise
