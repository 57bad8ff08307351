// Idea: each lane of a vector sums its own elements; at the end the lanes are added.
// Changed: a fused multiply-add for a whole vector. Another order of additions, so other last bits.
// Binds: latency still: one chain of additions, 4 cycles for each vector of x and y.
// Next: several chains.
#include "rooftile/ops/blas1/ladder/dot/dot.h"
#include "rooftile/ops/blas1/ladder/ladder.h"
#include "rooftile/tile/cpu/vector.h"

namespace rooftile::ladder {
using namespace tile;

void launch_dot_vectors(const CpuLaunch&, const DotProblem& p) {
  write_dot(p, [](const float* x, const float* y, std::int64_t n) {
    using V = Vec<float>;
    constexpr int W = kVecLanes<float>;
    const std::int64_t full = n / W * W;
    // [loop]
    V sums = splat(0.f);
    for (std::int64_t i = 0; i < full; i += W)
      sums = vfma(load_unaligned<V>(x + i), load_unaligned<V>(y + i), sums);
    float sum = 0;
    for (int k = 0; k < W; ++k) sum += sums[k];
    // [/loop]
    for (std::int64_t i = full; i < n; ++i) sum += x[i] * y[i];
    return sum;
  });
}

}  // namespace rooftile::ladder
