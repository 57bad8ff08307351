// Idea: B is given by columns: an element's neighbours are along K. Lanes read along K, which is coalesced,
// and
//   the tile is turned while it is stored into shared memory ("corner turning").
// Changed: of 03_shared, the load of B alone: threadIdx.x counts rows of B instead of columns, and rows of
// its
//   tile are 33 floats, so that 32 lanes which store one column of it meet 32 banks.
// Binds: shared memory, as in 03_shared: B's other order costs nothing.
// Next: the library's kernels, which read both operands in either order.
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/gemm/ladder/ladder_gpu.h"

namespace rooftile::ladder {
namespace {

// [kernel]
__global__ void gemm_corner_turning(const float* a, const float* b, float* y, int m, int n, int k) {
  ROOFTILE_SHARED(a_tile, float[32][32]);
  ROOFTILE_SHARED(b_tile, float[32][33]);
  const int row = static_cast<int>(threadIdx.y), column = static_cast<int>(threadIdx.x);
  const int first_j = static_cast<int>(blockIdx.x) * 32;
  const int i = static_cast<int>(blockIdx.y) * 32 + row, j = first_j + column;
  float sum = 0;
  for (int first = 0; first < k; first += 32) {
    const int p = first + column, from = first_j + row;
    a_tile[row][column] = i < m && p < k ? a[std::int64_t{i} * k + p] : 0;        // [a]
    b_tile[column][row] = from < n && p < k ? b[std::int64_t{from} * k + p] : 0;  // [turn]
    __syncthreads();
    for (int q = 0; q < 32; ++q) sum = fmaf(a_tile[row][q], b_tile[q][column], sum);  // [product]
    __syncthreads();
  }
  if (i < m && j < n) y[std::int64_t{i} * n + j] = sum;  // [y]
}
// [/kernel]

}  // namespace

Status launch_gemm_corner_turning(const CudaLaunch& launch, const GemmProblem& p) {
  return launch_gemm(launch, p, {{tiles_of(p.n, 32), tiles_of(p.m, 32)}, {32, 32}}, gemm_corner_turning);
}

}  // namespace rooftile::ladder
