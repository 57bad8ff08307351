#include "rooftile/ops/ema/ema.problem.h"
#include "rooftile/tile/lists.h"

namespace rooftile {
namespace kernels {
using namespace tile;

// [ema]
struct Ema {
  using Numbers = EmaNumbers;
  struct Shared {
    bool skips;
    float decay, share;
  };
  static constexpr int kValues = 2;
  static constexpr bool kMaster = false;
  static constexpr unsigned kWritten = 1;
  /// 1 - decay in f64: of an f32 0.9999 it would be off by 2^-25 / 1e-4 = 3e-4.
  ROOFTILE_TILE static Shared begin(const Numbers& n) {
    return {n.decay == 1, static_cast<float>(n.decay), static_cast<float>(1 - n.decay)};
  }
  /// A step from the nearer one: it rests where average = parameter, however decay is rounded.
  template <class X>
  ROOFTILE_TILE static void element(const Shared& s, unsigned, X (&x)[kValues]) {
    x[0] = s.share < 0.5f ? fma(x[1] - x[0], s.share, x[0]) : fma(x[0] - x[1], s.decay, x[1]);
  }
};
// [/ema]

}  // namespace kernels
namespace {
using namespace tile;

Status launch_ema(const Launch& launch, const EmaProblem& p) {
  return for_lists<kernels::Ema>(launch, "ema", p);
}

}  // namespace

ROOFTILE_KERNELS(ema) = {entry<launch_ema>("ema", "tile"), {}};

}  // namespace rooftile
