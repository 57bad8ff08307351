// Idea: squares turned in registers. Rows go in, vectors are interleaved with each other, columns come out.
// Changed: lines are moved together first, in an order that misses none twice, and turned from there
// (panel.h,
//   and turn_square of rooftile/tile/cpu/turn.h).
// Binds: in the caches, loads of 16 bytes and the shuffling. From memory a third of the traffic is waste:
// lines
//   of y are read before they are overwritten.
// Next: write past the caches.
#include "rooftile/ops/transpose/ladder/ladder.h"
#include "rooftile/ops/transpose/panel.h"

namespace rooftile::ladder {
using namespace tile;

void launch_vectors(const CpuLaunch& launch, const TransposeProblem& p) {
  using Panel = TransposePanel<std::uint32_t>;
  const auto* x = static_cast<const std::uint32_t*>(p.x);
  auto* y = static_cast<std::uint32_t*>(p.y);
  Panel panel(launch.scratch, false);
  for (std::int64_t i = 0; i < p.m; i += Panel::kDown)
    for (std::int64_t j = 0; j < p.n; j += Panel::kAcross)
      panel.turn(x + i * p.n + j, p.n, y + j * p.m + i, p.m, std::min(Panel::kDown, p.m - i),
                 std::min(Panel::kAcross, p.n - j));
}

}  // namespace rooftile::ladder
