// Idea: a tile of four vectors is one step, so four independent chains hide each other's latency; masks cut
// the tail. Changed: the loops are the block language's `each`; its last chunk is masked instead of scalar.
// Binds: in cache, the arithmetic of exp; from memory, each row waits for its own first read.
// Next: ask memory for coming rows early, and write past the caches.
#include "rooftile/ops/softmax/ladder/ladder.h"
#include "rooftile/ops/softmax/softmax.tile.h"

namespace rooftile::ladder {
using namespace tile;

ROOFTILE_FLATTEN void launch_accumulators(const CpuLaunch& launch, const SoftmaxProblem& p) {
  const float* x = static_cast<const float*>(p.x);
  float* y = static_cast<float*>(p.y);
  for (std::int64_t row = 0; row < p.rows.rows; ++row) {
    const Row<const float> from{x + p.rows.offset(0, row), p.rows.columns};
    const Row<float> to{y + p.rows.offset(1, row), p.rows.columns};
    kernels::softmax(CpuTeam<float, Access::cached>(launch.scratch), from, to, p.scale);
  }
}

}  // namespace rooftile::ladder
