// Idea: three loops, as the equation reads: an element of y is a row of A times a column of B.
// Changed: –
// Binds: latency. Each multiply-add waits 4 cycles for the one before, where a core could do 128 (AVX-512).
//   A column of B takes one float of each line of memory, which is gone before the next column needs it.
// Next: the same multiply-adds in another order.
#include "rooftile/ops/gemm/ladder/ladder.h"

namespace rooftile::ladder {

void launch_scalar(const CpuLaunch&, const GemmProblem& p) {
  const auto *a = static_cast<const float*>(p.a), *b = static_cast<const float*>(p.b);
  auto* y = static_cast<float*>(p.y);
  // [scalar]
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j) {
      float sum = 0;
      for (std::int64_t k = 0; k < p.k; ++k) sum = multiply_add(a[i * p.k + k], b[k * p.n + j], sum);
      y[i * p.n + j] = sum;
    }
  // [/scalar]
}

}  // namespace rooftile::ladder
