// Idea: one operation on 4, 8 or 16 pixels: reds in one vector, greens in another, blues in a third.
// Changed: the loop is the block language's `each`, load_planes takes the triples apart, and the division is
//   written out, since no CPU divides integers in vectors: v / 125 = v·33555 / 2^22 for all v that occur.
// Binds: four products of 32 bits for numbers that need 16: two operations each on Intel, six on SSE2.
// Next: multiply in pairs of 16 bits.
#include "rooftile/ops/image/ladder/ladder.h"
#include "rooftile/tile/tile.h"

namespace rooftile::ladder {
using namespace tile;

// [row]
template <class Team>
ROOFTILE_TILE void gray_row(Team team, Row<const std::uint8_t> rgb, Row<std::uint8_t> gray,
                            const int (&weight)[3]) {
  team.each(gray.size, [&](auto chunk) {
    typename Team::Integers color[3];
    team.template load_planes<3>(rgb, chunk, color);
    const auto sum = color[0] * weight[0] + color[1] * weight[1] + color[2] * weight[2];
    team.store(gray, chunk, ((sum + 500) >> 3) * 33555 >> 22);
  });
}
// [/row]

ROOFTILE_FLATTEN void launch_vectors(const CpuLaunch& launch, const GrayProblem& p) {
  for (std::int64_t row = 0; row < p.rows.rows; ++row)
    gray_row(CpuTeam<float, Access::cached>(launch.scratch),
             Row<const std::uint8_t>{p.rgb + p.rows.offset(1, row), p.rows.columns, 3},
             Row<std::uint8_t>{p.gray + p.rows.offset(0, row), p.rows.columns}, p.weight);
}

}  // namespace rooftile::ladder
