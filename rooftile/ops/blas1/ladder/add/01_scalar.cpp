// Idea: one element a step: two loads, an addition, a store.
// Changed: this is the first rung.
// Binds: instructions. A step moves 12 bytes, and a core finishes little more than one a cycle.
// Next: a whole vector a step.
#include "rooftile/ops/blas1/ladder/ladder.h"

namespace rooftile::ladder {

// [loop]
void launch_add_scalar(const CpuLaunch&, const AddProblem& p) {
  const float* x = static_cast<const float*>(p.x);
  const float* y = static_cast<const float*>(p.y);
  float* z = static_cast<float*>(p.z);
  for (std::int64_t i = 0; i < p.rows.columns; ++i) z[i] = x[i] + y[i];
}
// [/loop]

}  // namespace rooftile::ladder
