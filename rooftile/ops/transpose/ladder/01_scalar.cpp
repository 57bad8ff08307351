// Idea: one element after the other: row by row from x, down a column of y.
// Changed: this is the first rung.
// Binds: cache lines. A line of y takes one element and is wanted again a whole column later, when it is
// gone:
//   64 bytes come and go for 4.
// Next: an order in which a line's other elements come soon.
#include "rooftile/ops/transpose/ladder/ladder.h"

namespace rooftile::ladder {

void launch_scalar(const CpuLaunch&, const TransposeProblem& p) {
  const auto* x = static_cast<const std::uint32_t*>(p.x);
  auto* y = static_cast<std::uint32_t*>(p.y);
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j) y[j * p.m + i] = x[i * p.n + j];
}

}  // namespace rooftile::ladder
