// Idea: a thread for each element of y. What it reads beside its element may stay in the cache for others.
// Changed: a warp's 32 lanes are neighbours in a row of y, so in a column of x: i and j change places.
// Binds: sectors read, 32 a request; the seven eighths of each that other warps want come from L1, if it
//   still has them. A store has no such luck in 01_naive: each sector is written in eight pieces.
// Next: both sides in rows, with on-chip memory between them.
#include "rooftile/backend/cuda/launch.h"
#include "rooftile/ops/transpose/ladder/ladder.h"

namespace rooftile::ladder {
namespace {

__global__ void transpose_coalesced_writes(const float* x, float* y, int m, int n) {
  const int i = static_cast<int>(blockIdx.x * 32 + threadIdx.x);
  const int j = static_cast<int>(blockIdx.y * 32 + threadIdx.y);
  if (i >= m || j >= n) return;
  const float value = x[std::int64_t{i} * n + j];  // [load]
  y[std::int64_t{j} * m + i] = value;              // [store]
}

}  // namespace

Status launch_coalesced_writes(const CudaLaunch& launch, const TransposeProblem& p) {
  if (p.size() == 0) return {};
  const auto blocks = [](std::int64_t size) { return static_cast<unsigned>((size + 31) / 32); };
  return cuda::launch(launch, "transpose", {{blocks(p.m), blocks(p.n)}, {32, 32}}, transpose_coalesced_writes,
                      static_cast<const float*>(p.x), static_cast<float*>(p.y), static_cast<int>(p.m),
                      static_cast<int>(p.n));
}

}  // namespace rooftile::ladder
