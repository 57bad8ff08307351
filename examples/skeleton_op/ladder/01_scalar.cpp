// Idea: two loops over each row, exactly as the equation reads.
// Changed: this is the first rung.
// Binds: one addition at a time, each waiting for the one before it.
// Next: the library's kernel: tiles of vectors, masked tails, threads.
#include "rooftile/core/plugin.h"
#include "rooftile/ops/skeleton/skeleton.problem.h"

namespace rooftile::ladder {

void launch_skeleton_scalar(const CpuLaunch&, const SkeletonProblem& p) {
  const std::int64_t n = p.rows.columns;
  for (std::int64_t row = 0; row < p.rows.rows; ++row) {
    const float* x = static_cast<const float*>(p.x) + p.rows.offset(0, row);
    float* y = static_cast<float*>(p.y) + p.rows.offset(1, row);
    float sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += x[i];
    const float mean = sum / static_cast<float>(n);
    for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] - mean;
  }
}

}  // namespace rooftile::ladder
