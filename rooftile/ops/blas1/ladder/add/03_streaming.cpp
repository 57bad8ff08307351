// Idea: streaming stores write a line without reading it first; prefetches ask for lines early.
// Changed: one by one up to z's first aligned vector, which such stores need; then 02_vectors' loop.
// Binds: one core's share of the memory bandwidth. In cache this rung loses: z leaves for memory.
// Next: all threads, any dtype and stride; streaming only where a call moves more than caches hold.
#include "rooftile/ops/blas1/ladder/ladder.h"
#include "rooftile/tile/cpu/vector.h"

namespace rooftile::ladder {
using namespace tile;

void launch_add_streaming(const CpuLaunch&, const AddProblem& p) {
  using V = Vec<float>;
  constexpr int W = kVecLanes<float>;
  constexpr int kAhead = 3072 / sizeof(float);
  const std::int64_t n = p.rows.columns;
  const float* x = static_cast<const float*>(p.x);
  const float* y = static_cast<const float*>(p.y);
  float* z = static_cast<float*>(p.z);

  std::int64_t i = 0;
  for (; i < n && reinterpret_cast<std::uintptr_t>(z + i) % sizeof(V) != 0; ++i) z[i] = x[i] + y[i];
  // [loop]
  for (; i + W <= n; i += W) {
    __builtin_prefetch(x + i + kAhead);
    __builtin_prefetch(y + i + kAhead);
    stream(z + i, load_unaligned<V>(x + i) + load_unaligned<V>(y + i));
  }
  // [/loop]
  for (; i < n; ++i) z[i] = x[i] + y[i];
  stream_fence();
}

}  // namespace rooftile::ladder
