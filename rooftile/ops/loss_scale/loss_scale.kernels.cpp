#include "rooftile/ops/loss_scale/loss_scale.problem.h"
#include "rooftile/tile/lists.h"

namespace rooftile {
namespace kernels {
using namespace tile;

// [loss_scale]
struct Unscale {
  using Numbers = UnscaleNumbers;
  struct Shared {
    bool skips;
    float factor;
    float* found;
  };
  static constexpr int kValues = 1;
  static constexpr bool kMaster = false;
  static constexpr unsigned kWritten = 1;
  ROOFTILE_TILE static Shared begin(const Numbers& n) {
    *n.found_inf = 0;
    return {false, static_cast<float>(1 / static_cast<double>(*n.scale)), n.found_inf};
  }
  template <class X>
  ROOFTILE_TILE static void element(const Shared& s, unsigned, X (&x)[kValues]) {
    x[0] = x[0] * s.factor;
  }
};

/// Nothing but its begin.
struct UpdateLossScale {
  using Numbers = UpdateLossScaleNumbers;
  struct Shared {
    bool skips;
  };
  ROOFTILE_TILE static Shared begin(const Numbers& n) {
    const double scale = static_cast<double>(*n.scale);
    const std::int64_t steps = std::int64_t{*n.growth_tracker} + 1;
    if (*n.found_inf != 0) {
      *n.scale = static_cast<float>(scale * n.backoff_factor);
      *n.growth_tracker = 0;
    } else if (steps < n.growth_interval) {
      *n.growth_tracker = static_cast<std::int32_t>(steps);
    } else {
      const auto larger = static_cast<float>(scale * n.growth_factor);
      if (larger - larger == 0) *n.scale = larger;
      *n.growth_tracker = 0;
    }
    return {};
  }
};
// [/loss_scale]

}  // namespace kernels
namespace {
using namespace tile;

Status launch_unscale(const Launch& launch, const UnscaleProblem& p) {
  return for_lists<kernels::Unscale>(launch, "unscale", p);
}
Status launch_update(const Launch& launch, const UpdateLossScaleNumbers& n) {
  return begin_only<kernels::UpdateLossScale>(launch, "update_loss_scale", n);
}

}  // namespace

ROOFTILE_KERNELS(loss_scale) = {
    entry<launch_unscale>("unscale", "tile"), entry<launch_update>("update_loss_scale", "tile"), {}};

}  // namespace rooftile
