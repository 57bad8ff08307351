// What the exercise of rooftile/ops/transpose invites: three kernels with one mistake each.
#include "rooftile/backend/cuda/launch.h"
#include "rooftile/backend/cuda/shared.h"
#include "tests/emulated/transpose_mistakes.h"

namespace rooftile::emulated::test {
namespace {

template <Mistake kMistake>
__global__ void mistaken(const float* x, float* y, int m, int n) {
  ROOFTILE_SHARED(tile, float[32][32]);
  const int first_i = static_cast<int>(blockIdx.y * 32), first_j = static_cast<int>(blockIdx.x * 32);
  const int lane = static_cast<int>(threadIdx.x), row = static_cast<int>(threadIdx.y);
  const auto place = [](int r, int c) { return kMistake == Mistake::half_the_banks ? c ^ (r / 2) : c ^ r; };
  if (first_i + row < m && first_j + lane < n)
    tile[row][place(row, lane)] = x[std::int64_t{first_i + row} * n + first_j + lane];
  if (kMistake != Mistake::no_barrier) __syncthreads();
  if (first_j + row < n && first_i + lane < m)
    y[std::int64_t{first_j + row} * m + first_i + lane] =
        tile[lane][kMistake == Mistake::one_side ? row : place(lane, row)];
}

}  // namespace

template <Mistake kMistake>
Status launch_mistaken(const CudaLaunch& launch, const TransposeProblem& p) {
  if (p.size() == 0) return {};
  const auto blocks = [](std::int64_t size) { return static_cast<unsigned>((size + 31) / 32); };
  return cuda::launch(launch, "mistaken", {{blocks(p.n), blocks(p.m)}, {32, 32}}, mistaken<kMistake>,
                      static_cast<const float*>(p.x), static_cast<float*>(p.y), static_cast<int>(p.m),
                      static_cast<int>(p.n));
}
template Status launch_mistaken<Mistake::none>(const CudaLaunch&, const TransposeProblem&);
template Status launch_mistaken<Mistake::one_side>(const CudaLaunch&, const TransposeProblem&);
template Status launch_mistaken<Mistake::half_the_banks>(const CudaLaunch&, const TransposeProblem&);
template Status launch_mistaken<Mistake::no_barrier>(const CudaLaunch&, const TransposeProblem&);

}  // namespace rooftile::emulated::test
