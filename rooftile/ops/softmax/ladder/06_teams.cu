// Idea: a row gets a team of 1 to 32 threads of a warp where it is short, so that all lanes of a request
// read; shuffles alone add it up. Changed: 128 threads for as many rows as they hold; rows beyond 1024
// elements have their block, as before. Binds: bytes, at every length; beside them, the eight instructions
// that expf takes for each element. Next: an exponential of five.
#include <cmath>

#include "rooftile/backend/cuda/launch.h"
#include "rooftile/ops/softmax/ladder/gpu_row.h"

namespace rooftile::ladder {
using namespace softmax_gpu;
namespace {

constexpr int kWords = kItemsPerThread / 4, kThreads = 128;

/// Threads of a row: as few as hold it, but eight where there is work for them, which read a 128-byte line
/// together. A power of two within a warp; beyond, whole warps.
int team_of(std::int64_t columns) {
  const std::int64_t words = (columns + 3) / 4, least = (words + kWords - 1) / kWords;
  if (least > 32) return static_cast<int>((least + 31) / 32 * 32);
  int team = 1;
  while (team < least || (team < 8 && team < words)) team *= 2;
  return team;
}

template <class Operation>
__device__ float over_team(float mine, int team, Operation operation) {
  return team <= 32 ? over_lanes(mine, team, operation) : over_block(mine, operation);
}

template <bool kAligned>
__global__ void __launch_bounds__(kMaxThreads)
    softmax_teams(const __grid_constant__ SoftmaxProblem p, int team) {
  const int teams = static_cast<int>(blockDim.x) / team, place = static_cast<int>(threadIdx.x) % team;
  const std::int64_t at = std::int64_t{blockIdx.x} * teams + static_cast<int>(threadIdx.x) / team;
  // Past the last row a team has none, but its threads take part in the shuffles of their warp.
  const bool there = at < p.rows.rows;
  const int n = there ? static_cast<int>(p.rows.columns) : 0, first = 4 * place, step = 4 * team;
  const float* x = static_cast<const float*>(p.x) + p.rows.offset(0, there ? at : 0);
  float* y = static_cast<float*>(p.y) + p.rows.offset(1, there ? at : 0);

  const tile::SplitScale s(p.scale);
  float4 row[kWords];
  ROOFTILE_UNROLL for (int k = 0; k < kWords; ++k) row[k] = load_word<kAligned>(x, k * step + first, n);

  float row_max = -HUGE_VALF;
  ROOFTILE_UNROLL for (int k = 0; k < kWords; ++k) {
    row[k] = scaled(row[k], k * step + first, n, s.unit);
    row_max = fmaxf(row_max, fmaxf(fmaxf(row[k].x, row[k].y), fmaxf(row[k].z, row[k].w)));
  }
  row_max = over_team(row_max, team, Larger{});

  float sum = 0;
  ROOFTILE_UNROLL for (int k = 0; k < kWords; ++k) {
    row[k] = {expf((row[k].x - row_max) * s.rest), expf((row[k].y - row_max) * s.rest),
              expf((row[k].z - row_max) * s.rest), expf((row[k].w - row_max) * s.rest)};
    sum += (row[k].x + row[k].y) + (row[k].z + row[k].w);
  }
  const float inverse = 1 / over_team(sum, team, Add{});

  ROOFTILE_UNROLL for (int k = 0; k < kWords; ++k) {
    const float4 e = row[k];
    store_word<kAligned>(y, k * step + first, n,
                         {e.x * inverse, e.y * inverse, e.z * inverse, e.w * inverse});
  }
}

}  // namespace

Status launch_softmax_teams(const CudaLaunch& launch, const SoftmaxProblem& p) {
  if (p.rows.rows <= 0 || p.rows.columns <= 0) return {};
  const int team = team_of(p.rows.columns), threads = team <= 32 ? kThreads : team, teams = threads / team;
  const auto blocks = static_cast<unsigned>((p.rows.rows + teams - 1) / teams);
  return cuda::launch(launch, "softmax", {blocks, static_cast<unsigned>(threads)},
                      aligned(p) ? softmax_teams<true> : softmax_teams<false>, p, team);
}

}  // namespace rooftile::ladder
