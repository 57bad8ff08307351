// expect: this team's sums are of team.accumulator
// A warp that does the work of four has a tile of sums for each of them.
#include "rooftile/tile/cuda/launch.h"

using namespace rooftile::tile;
using Team = CudaTeam<float, 4, 16, Access::aligned, Scope::block, 0, 0, 4>;

float caller(const Team& team) {
#ifdef ROOFTILE_FIXED
  return team.sum(team.accumulator());
#else
  return team.sum(team.fill(1));
#endif
}
