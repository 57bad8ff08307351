// Idea: memory answers after 100 ns, so ask for the next row now; and a row that nobody reads soon should not
// be fetched into the caches first, only to be overwritten: store past them. Changed: the team's access, and
// how far ahead a row looks. The arithmetic, so each bit, is 04_accumulators'. Binds: one core's share of the
// memory bandwidth. In cache this rung loses: it writes past what is read next. Next: all threads; and the
// library chooses between this access and the last rung's by the bytes a call moves.
#include "rooftile/ops/softmax/ladder/ladder.h"
#include "rooftile/ops/softmax/softmax.tile.h"

namespace rooftile::ladder {
using namespace tile;

ROOFTILE_FLATTEN void launch_streaming(const CpuLaunch& launch, const SoftmaxProblem& p) {
  const float* x = static_cast<const float*>(p.x);
  float* y = static_cast<float*>(p.y);
  for (std::int64_t row = 0; row < p.rows.rows; ++row) {
    const std::int64_t here = p.rows.offset(0, row);
    const std::int64_t ahead = row + 1 < p.rows.rows ? p.rows.offset(0, row + 1) - here : 0;
    const Row<const float> from{x + here, p.rows.columns, 1, ahead};
    const Row<float> to{y + p.rows.offset(1, row), p.rows.columns};
    kernels::softmax(CpuTeam<float, Access::streaming>(launch.scratch), from, to, p.scale);
  }
  stream_fence();
}

}  // namespace rooftile::ladder
