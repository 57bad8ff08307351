// Idea: blocks of 16x16 elements, a cache line wide on both sides: 32 lines, used whole while they are near.
// Changed: the same two loops, within blocks, and two more around them.
// Binds: instructions: a load and a store for each element. At powers of two the caches' sets, too: rows
//   4 KiB apart share one set, which holds 8 or 12 lines, not 16.
// Next: vectors.
#include <algorithm>

#include "rooftile/ops/transpose/ladder/ladder.h"

namespace rooftile::ladder {

void launch_blocked(const CpuLaunch&, const TransposeProblem& p) {
  constexpr std::int64_t kBlock = 16;
  const auto* x = static_cast<const std::uint32_t*>(p.x);
  auto* y = static_cast<std::uint32_t*>(p.y);
  for (std::int64_t top = 0; top < p.m; top += kBlock)
    for (std::int64_t left = 0; left < p.n; left += kBlock)
      for (std::int64_t j = left; j < std::min(p.n, left + kBlock); ++j)
        for (std::int64_t i = top; i < std::min(p.m, top + kBlock); ++i) y[j * p.m + i] = x[i * p.n + j];
}

}  // namespace rooftile::ladder
