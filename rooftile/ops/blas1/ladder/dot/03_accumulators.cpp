// Idea: a tile is four vectors of sums; while one addition is under way, three others begin.
// Changed: the block language's kernel, with all elements as one chunk; a mask cuts the tail.
// Binds: in cache the loads, two for a multiply-add; from memory, memory. The error still grows with n.
// Next: chunks, so that no sum becomes long.
#include "rooftile/ops/blas1/blas1.tile.h"
#include "rooftile/ops/blas1/ladder/dot/dot.h"
#include "rooftile/ops/blas1/ladder/ladder.h"

namespace rooftile::ladder {
using namespace tile;

void launch_dot_accumulators(const CpuLaunch&, const DotProblem& p) {
  write_dot(p, [](const float* x, const float* y, std::int64_t n) {
    const CpuTeam<float, Access::cached> team(nullptr);
    return kernels::dot(team, Row<const float>{x, n}, Row<const float>{y, n});
  });
}

}  // namespace rooftile::ladder
