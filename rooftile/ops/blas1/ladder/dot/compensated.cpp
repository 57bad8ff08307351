// Idea: what an addition rounds away is computed exactly, and summed beside the sum (Ogita et al. 2005).
// Changed: 04_chunks' chunk has a second tile of sums, for the errors of its products and additions.
// Binds: in cache, 12 flops an element instead of 2; from memory, memory as before: there it costs nothing.
// Next: nothing; it is the solution of the lesson's exercise.
#include "rooftile/ops/blas1/blas1.tile.h"
#include "rooftile/ops/blas1/ladder/dot/dot.h"
#include "rooftile/ops/blas1/ladder/ladder.h"

namespace rooftile::ladder {
using namespace tile;

// [compensated]
template <class Team>
ROOFTILE_TILE double compensated_dot(Team team, Row<const float> x, Row<const float> y) {
  auto sums = team.fill(0), errors = team.fill(0);
  team.each(x.size, [&](auto chunk) {
    const auto a = team.load(x, chunk), b = team.load(y, chunk);
    const auto product = a * b;
    errors += fma(a, b, -product);  // exact with a fused multiply-add; 0 without one
    const auto sum = sums + product;
    const auto added = sum - sums;  // what of `product` arrived
    errors += (sums - (sum - added)) + (product - added);
    sums = sum;
  });
  double total = 0, error = 0;  // f64 adds lanes of f32 as good as exactly
  ROOFTILE_EACH_VECTOR(for (int k = 0; k < kVecLanes<float>; ++k) {
    total += static_cast<double>(sums.v[i][k]);
    error += static_cast<double>(errors.v[i][k]);
  });
  // Beside an infinity the error is inf - inf.
  return total - total == 0 ? total + error : total;
}
// [/compensated]

void launch_dot_compensated(const CpuLaunch&, const DotProblem& p) {
  write_dot(p, [](const float* x, const float* y, std::int64_t n) {
    const CpuTeam<float, Access::cached> team(nullptr);
    Pairwise<Sum> sum;
    for (std::int64_t first = 0; first < n; first += kReductionChunk) {
      const std::int64_t count = n - first < kReductionChunk ? n - first : kReductionChunk;
      sum.add(compensated_dot(team, Row<const float>{x + first, count}, Row<const float>{y + first, count}));
    }
    return sum.total();
  });
}

}  // namespace rooftile::ladder
