// Idea: e^x = 2^n · e^r with a whole n and |r| ≤ ln 2 / 2; a polynomial of degree 5 gives e^r to 1e-7, on all
// lanes. Changed: std::exp is gone from the full vectors; the exponentials are summed as they come. Binds:
// latency. Each sum waits for the one before it, each polynomial for its own last step. Next: four vectors at
// a time, so that four chains run beside each other; and no scalar tail.
#include <cmath>

#include "rooftile/ops/softmax/ladder/ladder.h"
#include "rooftile/tile/cpu/vector.h"

namespace rooftile::ladder {
using namespace tile;

// [exp]
ROOFTILE_TILE Vec<float> exp_of(Vec<float> x) {
  constexpr float kMagic = 0x1.8p23f;  // adding it rounds to a whole number
  x = vmin(splat(89.f), vmax(splat(-104.f), x));
  const Vec<float> n = vfma(x, splat(0x1.715476p0f), splat(kMagic)) - kMagic;
  Vec<float> r = vfma(n, splat(-0x1.62e4p-1f), x);  // ln 2 in two parts
  r = vfma(n, splat(-0x1.7f7d1cp-20f), r);
  Vec<float> p = vfma(r, splat(0x1.1062500p-7f), splat(0x1.572a64p-5f));
  p = vfma(p, r, splat(0x1.5557bp-3f));
  p = vfma(p, r, splat(0x1.fffdfcp-2f));
  p = vfma(p, r, splat(1.f));
  p = vfma(p, r, splat(1.f));
  return vscale(p, n);
}
// [/exp]

static void softmax_row(const float* x, float* y, std::int64_t n, const SplitScale& s) {
  using V = Vec<float>;
  constexpr int W = kVecLanes<float>;
  const std::int64_t full = n / W * W;

  V maxima = splat(-HUGE_VALF);
  for (std::int64_t i = 0; i < full; i += W) maxima = vmax(maxima, s.unit * load_unaligned<V>(x + i));
  float row_max = -HUGE_VALF;
  for (int k = 0; k < W; ++k) row_max = std::fmax(row_max, maxima[k]);
  for (std::int64_t i = full; i < n; ++i) row_max = std::fmax(row_max, s.unit * x[i]);

  V sums = splat(0.f);
  for (std::int64_t i = 0; i < full; i += W) {
    const V e = exp_of((s.unit * load_unaligned<V>(x + i) - row_max) * s.rest);
    store_unaligned(y + i, e);
    sums += e;
  }
  float sum = 0;
  for (int k = 0; k < W; ++k) sum += sums[k];
  for (std::int64_t i = full; i < n; ++i) sum += y[i] = std::exp((s.unit * x[i] - row_max) * s.rest);

  const float inverse = 1 / sum;
  for (std::int64_t i = 0; i < full; i += W) store_unaligned(y + i, load_unaligned<V>(y + i) * inverse);
  for (std::int64_t i = full; i < n; ++i) y[i] *= inverse;
}

void launch_fast_exp(const CpuLaunch&, const SoftmaxProblem& p) {
  const float* x = static_cast<const float*>(p.x);
  float* y = static_cast<float*>(p.y);
  for (std::int64_t row = 0; row < p.rows.rows; ++row)
    softmax_row(x + p.rows.offset(0, row), y + p.rows.offset(1, row), p.rows.columns, SplitScale(p.scale));
}

}  // namespace rooftile::ladder
