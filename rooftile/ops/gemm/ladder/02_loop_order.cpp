// Idea: the two inner loops exchanged. A row of y grows by a multiple of a row of B, again and again.
// Changed: B is read along its rows, whole lines; neighbouring multiply-adds no longer wait for each other.
// Binds: loads and stores. One float at a time: two loads and a store for each multiply-add, 2 flops.
// Next: 16 neighbours at once.
#include <algorithm>

#include "rooftile/ops/gemm/ladder/ladder.h"

namespace rooftile::ladder {

void launch_loop_order(const CpuLaunch&, const GemmProblem& p) {
  const auto *a = static_cast<const float*>(p.a), *b = static_cast<const float*>(p.b);
  auto* y = static_cast<float*>(p.y);
  std::fill(y, y + p.m * p.n, 0.0f);
  // [loop_order]
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t k = 0; k < p.k; ++k)
      for (std::int64_t j = 0; j < p.n; ++j)
        y[i * p.n + j] = multiply_add(a[i * p.k + k], b[k * p.n + j], y[i * p.n + j]);
  // [/loop_order]
}

}  // namespace rooftile::ladder
