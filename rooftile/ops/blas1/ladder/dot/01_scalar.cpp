// Idea: one sum, as the equation reads.
// Changed: this is the first rung.
// Binds: latency: an addition waits 2 to 4 cycles for the one before. And from 2^24 on, + 1 changes nothing.
// Next: a vector of sums.
#include "rooftile/ops/blas1/ladder/dot/dot.h"
#include "rooftile/ops/blas1/ladder/ladder.h"

namespace rooftile::ladder {

void launch_dot_scalar(const CpuLaunch&, const DotProblem& p) {
  write_dot(p, [](const float* x, const float* y, std::int64_t n) {
    // [loop]
    float sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += x[i] * y[i];
    // [/loop]
    return sum;
  });
}

}  // namespace rooftile::ladder
