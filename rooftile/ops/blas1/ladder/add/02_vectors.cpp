// Idea: a vector register holds 4, 8 or 16 floats, and one instruction adds them all.
// Changed: a vector a step; the last few elements stay scalar.
// Binds: in cache, its bandwidth. From memory a fourth of the traffic is waste: the old z is read, and lost.
// Next: write past the caches.
#include "rooftile/ops/blas1/ladder/ladder.h"
#include "rooftile/tile/cpu/vector.h"

namespace rooftile::ladder {
using namespace tile;

void launch_add_vectors(const CpuLaunch&, const AddProblem& p) {
  using V = Vec<float>;
  constexpr int W = kVecLanes<float>;
  const std::int64_t n = p.rows.columns, full = n / W * W;
  const float* x = static_cast<const float*>(p.x);
  const float* y = static_cast<const float*>(p.y);
  float* z = static_cast<float*>(p.z);
  // [loop]
  for (std::int64_t i = 0; i < full; i += W)
    store_unaligned(z + i, load_unaligned<V>(x + i) + load_unaligned<V>(y + i));
  for (std::int64_t i = full; i < n; ++i) z[i] = x[i] + y[i];
  // [/loop]
}

}  // namespace rooftile::ladder
