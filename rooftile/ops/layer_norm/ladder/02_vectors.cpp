// Idea: a vector register holds 4, 8 or 16 floats; each of the three loops takes one operation for all of
// them. Changed: 01_scalar's loops, in the compiler's vector types and in f32; the row's last few elements
// stay scalar. Binds: latency, still. One vector of sums waits 3 cycles for its own result, 4 for the
// squares: the second adder idles. Next: four vectors of sums, and a mask instead of the scalar tail.
#include <cmath>

#include "rooftile/ops/layer_norm/ladder/ladder.h"
#include "rooftile/tile/cpu/vector.h"

namespace rooftile::ladder {
using namespace tile;

static float sum_of(Vec<float> v) {
  float sum = 0;
  for (int k = 0; k < kVecLanes<float>; ++k) sum += v[k];
  return sum;
}

static void layer_norm_row(const PlainRow& row, std::int64_t n, const float* weight, const float* bias,
                           float eps) {
  using V = Vec<float>;
  constexpr int W = kVecLanes<float>;
  const std::int64_t full = n / W * W;

  V sums = splat(0.f);
  for (std::int64_t i = 0; i < full; i += W) sums += load_unaligned<V>(row.x + i);
  float sum = sum_of(sums);
  for (std::int64_t i = full; i < n; ++i) sum += row.x[i];
  const float mean = sum / static_cast<float>(n);

  // [squares]
  V squares = splat(0.f);
  for (std::int64_t i = 0; i < full; i += W) {
    const V d = load_unaligned<V>(row.x + i) - mean;
    squares = vfma(d, d, squares);
  }
  float square = sum_of(squares);
  for (std::int64_t i = full; i < n; ++i) square += (row.x[i] - mean) * (row.x[i] - mean);
  const float rstd = 1 / std::sqrt(square / static_cast<float>(n) + eps);
  // [/squares]

  for (std::int64_t i = 0; i < full; i += W) {
    const V x = (load_unaligned<V>(row.x + i) - mean) * rstd;
    store_unaligned(row.y + i, vfma(x, load_unaligned<V>(weight + i), load_unaligned<V>(bias + i)));
  }
  for (std::int64_t i = full; i < n; ++i) row.y[i] = (row.x[i] - mean) * rstd * weight[i] + bias[i];
  if (row.mean) *row.mean = mean;
  if (row.rstd) *row.rstd = rstd;
}

void launch_vectors(const CpuLaunch&, const LayerNormProblem& p) {
  for (std::int64_t row = 0; row < p.rows.rows; ++row)
    layer_norm_row(plain_row(p, row), p.rows.columns,
                   static_cast<const float*>(p.vectors[LayerNormProblem::kWeight].data),
                   static_cast<const float*>(p.vectors[LayerNormProblem::kBias].data), p.eps());
}

}  // namespace rooftile::ladder
