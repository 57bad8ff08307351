// Idea: the tile's side is chosen at the launch. A block of t·t threads reads each element of A and B n/t and
//   m/t times: larger tiles move less; smaller ones make more blocks, and waste less at the ends.
// Changed: shared memory is dynamic, t is an argument. The sum's order, and so every bit, is the same for
// all. Binds: shared memory, as before: a thread loads two elements for each fma, whatever t is. Next: a
// thread computes more than one element, so that what it loads is used more than once.
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/gemm/ladder/ladder_gpu.h"

namespace rooftile::ladder {
namespace {

// [kernel]
__global__ void gemm_tile_size(const float* a, const float* b, float* y, int m, int n, int k, int t) {
  ROOFTILE_DYNAMIC_SHARED(bytes);
  float* const a_tile = reinterpret_cast<float*>(bytes);
  float* const b_tile = a_tile + t * t;
  const int row = static_cast<int>(threadIdx.y), column = static_cast<int>(threadIdx.x);
  const int i = static_cast<int>(blockIdx.y) * t + row, j = static_cast<int>(blockIdx.x) * t + column;
  float sum = 0;
  for (int first = 0; first < k; first += t) {
    const int in_a = first + column, in_b = first + row;
    a_tile[row * t + column] = i < m && in_a < k ? a[std::int64_t{i} * k + in_a] : 0;  // [a]
    b_tile[row * t + column] = in_b < k && j < n ? b[std::int64_t{in_b} * n + j] : 0;  // [b]
    __syncthreads();
    for (int p = 0; p < t; ++p) sum = fmaf(a_tile[row * t + p], b_tile[p * t + column], sum);  // [product]
    __syncthreads();
  }
  if (i < m && j < n) y[std::int64_t{i} * n + j] = sum;  // [y]
}
// [/kernel]

// [choice]
/// The largest side that still gives every multiprocessor two blocks; 8 where none does.
int side_for(std::int64_t m, std::int64_t n, int multiprocessors) {
  for (const int t : {32, 16})
    if (std::int64_t{tiles_of(m, t)} * tiles_of(n, t) >= 2 * multiprocessors) return t;
  return 8;
}
// [/choice]

}  // namespace

Status launch_gemm_tile_size(const CudaLaunch& launch, const GemmProblem& p) {
  if (p.empty()) return {};
  const int t = side_for(p.m, p.n, launch.multiprocessors);
  const auto side = static_cast<unsigned>(t);
  return cuda::launch(
      launch, "gemm", {{tiles_of(p.n, t), tiles_of(p.m, t)}, {side, side}, 2 * sizeof(float) * side * side},
      gemm_tile_size, static_cast<const float*>(p.a), static_cast<const float*>(p.b),
      static_cast<float*>(p.y), static_cast<int>(p.m), static_cast<int>(p.n), static_cast<int>(p.k), t);
}

}  // namespace rooftile::ladder
