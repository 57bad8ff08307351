// Idea: squares turned in registers. Rows go in, vectors are interleaved with each other, columns come out.
// Changed: a block's inner loops are turn_square of rooftile/tile/cpu/turn.h; the edges stay scalar.
// Binds: in the caches, loads of 16 bytes and as much shuffling. From memory a third of the traffic is waste:
//   lines of y are read before they are overwritten.
// Next: write past the caches.
#include "rooftile/ops/transpose/ladder/ladder.h"
#include "rooftile/tile/cpu/turn.h"

namespace rooftile::ladder {
using namespace tile;

void launch_vectors(const CpuLaunch&, const TransposeProblem& p) {
  constexpr std::int64_t kSquare = kLineSquare<std::uint32_t>;
  const auto* x = static_cast<const std::uint32_t*>(p.x);
  auto* y = static_cast<std::uint32_t*>(p.y);
  const std::int64_t whole_m = p.m / kSquare * kSquare, whole_n = p.n / kSquare * kSquare;
  for (std::int64_t i = 0; i < whole_m; i += kSquare)
    for (std::int64_t j = 0; j < whole_n; j += kSquare)
      turn_square(x + i * p.n + j, p.n, y + j * p.m + i, p.m);
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = i < whole_m ? whole_n : 0; j < p.n; ++j) y[j * p.m + i] = x[i * p.n + j];
}

}  // namespace rooftile::ladder
