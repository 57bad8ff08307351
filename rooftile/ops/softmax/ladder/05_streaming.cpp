// Idea: memory answers after 100 ns, so ask for coming rows now; a row that nobody reads soon should not be
// fetched into the caches first, only to be overwritten: store past them; and write it while the next row's
// exponentials are computed, so that memory and arithmetic work at once. Changed: the team's access, and the
// kernel takes many rows. Binds: from memory, one core's share of its bandwidth. In cache this rung loses:
// it writes past what is read next. Next: all threads; and the access is chosen by the bytes a call moves.
#include "rooftile/ops/softmax/ladder/ladder.h"
#include "rooftile/ops/softmax/softmax.tile.h"

namespace rooftile::ladder {
using namespace tile;

ROOFTILE_FLATTEN void launch_streaming(const CpuLaunch& launch, const SoftmaxProblem& p) {
  const float* x = static_cast<const float*>(p.x);
  float* y = static_cast<float*>(p.y);
  const std::int64_t rows = p.rows.rows;
  const auto row_at = [&](std::int64_t row) {
    const std::int64_t here = p.rows.offset(0, row);
    const std::int64_t ahead = row + 1 < rows ? p.rows.offset(0, row + 1) - here : 0;
    return kernels::SoftmaxRow<float>{{x + here, p.rows.columns, 1, ahead},
                                      {y + p.rows.offset(1, row), p.rows.columns}};
  };
  const CpuTeam<float, Access::streaming> team(scratch_of(launch));
  kernels::softmax<float, false>(team, 0, rows, row_at, SplitScale(p.scale));
  stream_fence();
}

}  // namespace rooftile::ladder
