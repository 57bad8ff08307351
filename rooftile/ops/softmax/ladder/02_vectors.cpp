// Idea: a vector register holds 4, 8 or 16 floats; maximum, sum and scaling take one operation for all of
// them. Changed: 01_scalar's loops, in the compiler's vector types; the row's last few elements stay scalar.
// Binds: std::exp, still called for each element: the other three passes were never the problem.
// Next: exp itself on whole vectors.
#include <cmath>

#include "rooftile/ops/softmax/ladder/ladder.h"
#include "rooftile/tile/cpu/vector.h"

namespace rooftile::ladder {
using namespace tile;

static void softmax_row(const float* x, float* y, std::int64_t n, const SplitScale& s) {
  using V = Vec<float>;
  constexpr int W = kVecLanes<float>;
  const std::int64_t full = n / W * W;

  V maxima = splat(-HUGE_VALF);
  for (std::int64_t i = 0; i < full; i += W) maxima = vmax(maxima, s.unit * load_unaligned<V>(x + i));
  float row_max = -HUGE_VALF;
  for (int k = 0; k < W; ++k) row_max = std::fmax(row_max, maxima[k]);
  for (std::int64_t i = full; i < n; ++i) row_max = std::fmax(row_max, s.unit * x[i]);

  for (std::int64_t i = 0; i < n; ++i) y[i] = std::exp((s.unit * x[i] - row_max) * s.rest);

  V sums = splat(0.f);
  for (std::int64_t i = 0; i < full; i += W) sums += load_unaligned<V>(y + i);
  float sum = 0;
  for (int k = 0; k < W; ++k) sum += sums[k];
  for (std::int64_t i = full; i < n; ++i) sum += y[i];

  const float inverse = 1 / sum;
  for (std::int64_t i = 0; i < full; i += W) store_unaligned(y + i, load_unaligned<V>(y + i) * inverse);
  for (std::int64_t i = full; i < n; ++i) y[i] *= inverse;
}

void launch_vectors(const CpuLaunch&, const SoftmaxProblem& p) {
  const float* x = static_cast<const float*>(p.x);
  float* y = static_cast<float*>(p.y);
  for (std::int64_t row = 0; row < p.rows.rows; ++row)
    softmax_row(x + p.rows.offset(0, row), y + p.rows.offset(1, row), p.rows.columns, SplitScale(p.scale));
}

}  // namespace rooftile::ladder
