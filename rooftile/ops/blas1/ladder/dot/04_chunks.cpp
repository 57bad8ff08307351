// Idea: sum chunks of 16384 elements, and add their sums pairwise in f64: no chain of additions is long.
// Changed: 03_accumulators' kernel runs once a chunk: the same speed, an error that no longer grows with n.
// Binds: one core's share of the memory bandwidth.
// Next: chunks know nothing of each other: threads may take them, and the tree keeps each bit.
#include "rooftile/ops/blas1/blas1.tile.h"
#include "rooftile/ops/blas1/ladder/dot/dot.h"
#include "rooftile/ops/blas1/ladder/ladder.h"

namespace rooftile::ladder {
using namespace tile;

void launch_dot_chunks(const CpuLaunch&, const DotProblem& p) {
  write_dot(p, [](const float* x, const float* y, std::int64_t n) {
    const CpuTeam<float, Access::cached> team(nullptr);
    // [chunks]
    Pairwise<Sum> sum;
    for (std::int64_t first = 0; first < n; first += kReductionChunk) {
      const std::int64_t count = n - first < kReductionChunk ? n - first : kReductionChunk;
      sum.add(kernels::dot(team, Row<const float>{x + first, count}, Row<const float>{y + first, count}));
    }
    return sum.total();
    // [/chunks]
  });
}

}  // namespace rooftile::ladder
