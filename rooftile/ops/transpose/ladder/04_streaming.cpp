// Idea: a panel is turned into a buffer, and from there whole lines of y go past the caches.
// Changed: y's lines are not read first; four of each row go to memory together, where they lie together. x
// is
//   asked for three lines ahead.
// Binds: one core's share of the memory bandwidth. In the caches this rung loses: y leaves for memory.
// Next: all threads, any width, shape and stride; streaming only where a call moves more than caches hold.
#include "rooftile/ops/transpose/ladder/ladder.h"
#include "rooftile/ops/transpose/panel.h"

namespace rooftile::ladder {
using namespace tile;

void launch_streaming(const CpuLaunch& launch, const TransposeProblem& p) {
  using Panel = TransposePanel<std::uint32_t>;
  const auto* x = static_cast<const std::uint32_t*>(p.x);
  auto* y = static_cast<std::uint32_t*>(p.y);
  Panel panel(launch.scratch, true);
  for (std::int64_t i = 0; i < p.m; i += Panel::kDown)
    for (std::int64_t j = 0; j < p.n; j += Panel::kAcross)
      panel.turn(x + i * p.n + j, p.n, y + j * p.m + i, p.m, std::min(Panel::kDown, p.m - i),
                 std::min(Panel::kAcross, p.n - j));
  stream_fence();
}

}  // namespace rooftile::ladder
