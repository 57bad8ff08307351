#pragma once
// The norm of many tensors is nrm2's of their chunks, one after the other; clipping is one factor for all.
#include "rooftile/ops/blas1/blas1.tile.h"
#include "rooftile/ops/grad_norm/grad_norm.problem.h"
#include "rooftile/tile/lists.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

// [coefficient]
/// By how much gradients of this norm are scaled. A NaN stays one: a minimum would drop it.
ROOFTILE_TILE double clip_coefficient(double norm, double max_norm) {
  const double ratio = max_norm / (norm + 1e-6);
  return ratio >= 1 ? 1 : ratio;
}

/// A chunk's partial is finite where all its elements are: the scaled squares of 2^40 of them fit an f32.
ROOFTILE_TILE void grad_norm_finish(const GradNormNumbers& n, const Nrm2::Partial& all) {
  const double scale = n.gradient_scale ? static_cast<double>(*n.gradient_scale) : 1;
  const double norm = Nrm2::finish(all) * (scale < 0 ? -scale : scale);
  *n.norm = static_cast<float>(norm);
  if (n.coefficient) *n.coefficient = static_cast<float>(scale * clip_coefficient(norm, n.max_norm));
  if (n.found_inf) *n.found_inf = all.sum - all.sum == 0 ? 0.f : 1.f;
}
// [/coefficient]

struct ClipByNorm {
  using Numbers = ClipByNormNumbers;
  struct Shared {
    bool skips;
    float factor;
  };
  static constexpr int kValues = 1;
  static constexpr bool kMaster = false;
  static constexpr unsigned kWritten = 1;
  ROOFTILE_TILE static Shared begin(const Numbers& n) {
    const double scale = n.gradient_scale ? static_cast<double>(*n.gradient_scale) : 1;
    const double norm = static_cast<double>(*n.norm);
    const auto factor = static_cast<float>(scale * clip_coefficient(norm, n.max_norm));
    return {factor == 1, factor};
  }
  template <class X>
  ROOFTILE_TILE static void element(const Shared& s, unsigned, X (&x)[kValues]) {
    x[0] = x[0] * s.factor;
  }
};

}  // namespace rooftile::kernels
