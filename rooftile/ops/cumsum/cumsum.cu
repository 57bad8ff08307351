// A team takes a row tile by tile: a warp rows of up to kWarpColumns elements, a block of 8 warps longer
// ones. In a tile each thread sums its own lanes, warps their threads by shuffles, and the block its warps
// through shared memory; what came before the tile is added last.
#include <algorithm>

#include "rooftile/ops/cumsum/cumsum.problem.h"
#include "rooftile/tile/cuda/elements.h"

namespace rooftile {
namespace {
using namespace tile;

constexpr int kThreads = 256, kWarps = kThreads / kWarp;
constexpr std::int64_t kWarpColumns = 1024;

/// A thread's running sums, and the sum of its lanes.
template <bool kReverse, int N>
ROOFTILE_TILE float sum_lanes(tile::Tile<float, N>& t, bool exclusive) {
  float sum = 0;
  ROOFTILE_UNROLL for (int k = 0; k < N; ++k) {
    float& its = t.v[kReverse ? N - 1 - k : k];
    const float before = sum;
    sum += its;
    its = exclusive ? before : sum;
  }
  return sum;
}

/// Sums of a warp's threads that come before each one, and of all.
struct WarpSums {
  float before, all;
};
ROOFTILE_TILE WarpSums sum_threads(float mine, bool reverse) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp, place = reverse ? kWarp - 1 - lane : lane;
  const auto from = [&](float value, int far) {
    return reverse ? __shfl_down_sync(kAllLanes, value, static_cast<unsigned>(far))
                   : __shfl_up_sync(kAllLanes, value, static_cast<unsigned>(far));
  };
  for (int far = 1; far < kWarp; far *= 2) {
    const float others = from(mine, far);
    if (place >= far) mine = others + mine;
  }
  const float before = from(mine, 1), all = __shfl_sync(kAllLanes, mine, reverse ? 0 : kWarp - 1);
  return {place > 0 ? before : 0, all};
}

template <class T, Access kAccess, bool kBlock>
__global__ void __launch_bounds__(kThreads) sum_rows(const __grid_constant__ CumsumProblem p) {
  constexpr int N = 16 / int(sizeof(T)), kTeam = kBlock ? kThreads : kWarp;
  using Team = CudaTeam<float, N, 0, kAccess, kBlock ? Scope::block : Scope::warp>;
  ROOFTILE_SHARED(totals, float[2][kWarps]);
  Rounds rounds;
  const Team team(kTeam, rounds);
  const int thread = static_cast<int>(threadIdx.x) % kTeam, warp = static_cast<int>(threadIdx.x) / kWarp;
  const std::int64_t columns = p.rows.columns, step = std::int64_t{kTeam} * N;
  const std::int64_t tiles = (columns + step - 1) / step;
  int turn = 0;
  for (std::int64_t row = std::int64_t{blockIdx.x} * (kThreads / kTeam) + threadIdx.x / kTeam;
       row < p.rows.rows; row += std::int64_t{gridDim.x} * (kThreads / kTeam)) {
    const RowRange range{row, 0, 1, 0, columns};
    auto x = row_of<const T, Team>(p.rows, CumsumProblem::kX, p.x, range, 0);
    if (p.x == p.y) x.begin = x.end = x.data;  // others write beside a thread's own elements
    const auto y = row_of<T, Team>(p.rows, CumsumProblem::kY, p.y, range, 0);
    float base = 0;
    for (std::int64_t i = 0; i < tiles; ++i) {
      const std::int64_t first = (p.reverse ? tiles - 1 - i : i) * step + thread * N;
      const Chunk chunk{0, first, columns - first};
      auto sums = team.load(x, chunk, 0);
      const float mine = p.reverse ? sum_lanes<true>(sums, p.exclusive) : sum_lanes<false>(sums, p.exclusive);
      auto [before, all] = sum_threads(mine, p.reverse);
      if constexpr (kBlock) {
        // Two sets in turn: a tile's is read before the next but one is written, since a barrier is between.
        float* its = totals[turn++ % 2];
        if (thread % kWarp == 0) its[warp] = all;
        __syncthreads();
        float others = 0;
        all = 0;
        ROOFTILE_UNROLL for (int k = 0; k < kWarps; ++k) {
          const int w = p.reverse ? kWarps - 1 - k : k;
          if (w == warp) others = all;
          all += its[w];
        }
        before = others + before;
      }
      ROOFTILE_UNROLL for (int k = 0; k < N; ++k) sums.v[k] = base + (before + sums.v[k]);
      team.store(y, chunk, sums);
      base += all;
    }
  }
}

Status launch_cumsum(const CudaLaunch& launch, const CumsumProblem& p) {
  using P = CumsumProblem;
  if (p.rows.rows == 0 || p.rows.columns == 0) return {};
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
    const bool aligned =
        aligned_rows(p.rows, P::kX, p.x, sizeof(T)) && aligned_rows(p.rows, P::kY, p.y, sizeof(T));
    const auto run = [&]<bool kBlock>() {
      constexpr std::int64_t kRows = kBlock ? 1 : kWarps;
      const std::int64_t blocks = std::min((p.rows.rows + kRows - 1) / kRows, kMaxBlocks);
      return rooftile::cuda::launch(
          launch, "cumsum", {static_cast<unsigned>(blocks), kThreads},
          aligned ? sum_rows<T, Access::aligned, kBlock> : sum_rows<T, Access::any, kBlock>, p);
    };
    return p.rows.columns > kWarpColumns ? run.template operator()<true>() : run.template operator()<false>();
  });
}

}  // namespace

ROOFTILE_CUDA_KERNELS(cumsum) = {
    entry<launch_cumsum>("cumsum", "tile"),
    entry<launch_cumsum>("cumsum_backward", "tile"),
    {},
};

}  // namespace rooftile
