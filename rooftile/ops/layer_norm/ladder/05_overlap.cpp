// Idea: while one row is written, the next is read: two loops in one, so that no sum is waited for with idle
// hands. Changed: the library's kernel, over all rows at once. The arithmetic, so each bit, is
// 04_one_pass's. Binds: in cache, loads and stores: five of each vector's ten operations. From memory, one
// core's share of it. Next: all threads; prefetching, and stores past the caches, where a call moves more
// than these hold.
#include "rooftile/ops/layer_norm/ladder/program.h"

namespace rooftile::ladder {
using namespace tile;

ROOFTILE_FLATTEN void launch_overlap(const CpuLaunch& launch, const LayerNormProblem& p) {
  const std::int64_t rows = p.rows.rows;
  GradientsOf<Team, Program> none{};
  const auto row_at = [&](std::int64_t i) { return plain_operands(p, i); };
  if (rows > 0)
    run_rows<false, false, float>(Program{p.eps()}, Team(scratch_of(launch)), 0, rows, row_at,
                                  plain_vectors(p), 1 / static_cast<float>(p.rows.columns), none);
}

}  // namespace rooftile::ladder
