// Idea: a row gets a team of 1 to 32 threads of a warp where it is short, so that all lanes of a request
// read; shuffles alone add it up. Changed: 128 threads for as many rows as they hold; rows beyond 512
// elements have their block, as before. Binds: bytes, at every length. Next: the library's kernel, which is
// this one for any dtype, stride and length, with a residual, and reads unaligned rows by words, too.
#include <cmath>

#include "rooftile/backend/cuda/launch.h"
#include "rooftile/ops/layer_norm/ladder/gpu_row.h"

namespace rooftile::ladder {
using namespace layer_norm_gpu;
namespace {

constexpr int kWords = kItemsPerThread / 4, kThreads = 128;

// [team]
/// Threads of a row: as few as hold it, but eight where there is work for them, which read a 128-byte line
/// together. A power of two within a warp; beyond, whole warps.
int team_of(std::int64_t columns) {
  const std::int64_t words = (columns + 3) / 4, least = (words + kWords - 1) / kWords;
  if (least > 32) return static_cast<int>((least + 31) / 32 * 32);
  int team = 1;
  while (team < least || (team < 8 && team < words)) team *= 2;
  return team;
}
// [/team]

template <int kSum>
__device__ float sum_of_team(float mine, int team) {
  return team <= 32 ? sum_of_lanes(mine, team) : sum_of_block<kSum>(mine);
}

template <bool kAligned>
__global__ void __launch_bounds__(kMaxThreads)
    layer_norm_teams(const __grid_constant__ LayerNormProblem p, int team) {
  const int teams = static_cast<int>(blockDim.x) / team, place = static_cast<int>(threadIdx.x) % team;
  const std::int64_t index = std::int64_t{blockIdx.x} * teams + static_cast<int>(threadIdx.x) / team;
  // Past the last row a team has none, but its threads take part in the shuffles of their warp.
  const bool there = index < p.rows.rows;
  const GpuRow at(p, there ? index : 0);
  const int n = there ? static_cast<int>(at.n) : 0, first = 4 * place, step = 4 * team;
  const float count = static_cast<float>(at.n);

  float4 row[kWords];
  ROOFTILE_UNROLL for (int k = 0; k < kWords; ++k) row[k] = load_word<kAligned>(at.x, k * step + first, n);

  float sum = 0;
  ROOFTILE_UNROLL for (int k = 0; k < kWords; ++k) sum += sum_of_word(row[k]);
  const float mean = sum_of_team<0>(sum, team) / count;

  float square = 0;
  ROOFTILE_UNROLL for (int k = 0; k < kWords; ++k) square +=
      sum_of_word(squares(row[k], k * step + first, n, mean));
  const float rstd = 1 / sqrtf(sum_of_team<1>(square, team) / count + p.eps());

  ROOFTILE_UNROLL for (int k = 0; k < kWords; ++k) {
    const int i = k * step + first;
    const float4 w = load_word<kAligned>(at.weight, i, n), b = load_word<kAligned>(at.bias, i, n);
    store_word<kAligned>(at.y, i, n, normalised(row[k], mean, rstd, w, b));
  }
  if (there && place == 0) at.store_statistics(mean, rstd);
}

}  // namespace

Status launch_layer_norm_teams(const CudaLaunch& launch, const LayerNormProblem& p) {
  if (p.rows.rows <= 0) return {};
  const int team = team_of(p.rows.columns), threads = team <= 32 ? kThreads : team, teams = threads / team;
  const auto blocks = static_cast<unsigned>((p.rows.rows + teams - 1) / teams);
  return cuda::launch(launch, "layer_norm", {blocks, static_cast<unsigned>(threads)},
                      aligned(p) ? layer_norm_teams<true> : layer_norm_teams<false>, p, team);
}

}  // namespace rooftile::ladder
