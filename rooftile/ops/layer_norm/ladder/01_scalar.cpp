// Idea: three loops over each row, exactly as the equations read: the mean, the variance about it, the
// output. Changed: this is the first rung. Its sums are doubles, so that rounding is no question yet. Binds:
// the additions. Each waits 3 cycles for the one before it, and so does each product in the second loop.
// Next: a whole vector at a time.
#include <cmath>

#include "rooftile/ops/layer_norm/ladder/ladder.h"

namespace rooftile::ladder {

static void layer_norm_row(const PlainRow& row, std::int64_t n, const float* weight, const float* bias,
                           float eps) {
  const double count = static_cast<double>(n);
  // [sums]
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(row.x[i]);
  const double mean = sum / count;

  double squares = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(row.x[i]) - mean;
    squares += d * d;
  }
  const double rstd = 1 / std::sqrt(squares / count + static_cast<double>(eps));
  // [/sums]

  for (std::int64_t i = 0; i < n; ++i)
    row.y[i] = static_cast<float>((static_cast<double>(row.x[i]) - mean) * rstd) * weight[i] + bias[i];
  if (row.mean) *row.mean = static_cast<float>(mean);
  if (row.rstd) *row.rstd = static_cast<float>(rstd);
}

void launch_scalar(const CpuLaunch&, const LayerNormProblem& p) {
  for (std::int64_t row = 0; row < p.rows.rows; ++row)
    layer_norm_row(plain_row(p, row), p.rows.columns,
                   static_cast<const float*>(p.vectors[LayerNormProblem::kWeight].data),
                   static_cast<const float*>(p.vectors[LayerNormProblem::kBias].data), p.eps());
}

}  // namespace rooftile::ladder
