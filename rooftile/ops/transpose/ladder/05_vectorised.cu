// Idea: a thread takes 4x4 elements: four words of 16 bytes come in, and turned in its registers, which
//   costs nothing, four words go out. Elements never move alone.
// Changed: a block of 16x16 threads takes 64x64 elements. Padding cannot part words of four banks whose
//   rows' numbers are multiples of 4: slot b of a row lies at b ^ (row / 4) % 8 instead, a swizzle.
// Binds: bytes. 64 of each thread are on their way at once, 16 KiB of a block.
// Next: elements of any width, any shape, strides, a batch.
#include "rooftile/backend/cuda/launch.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/transpose/ladder/ladder.h"

namespace rooftile::ladder {
namespace {

__global__ void transpose_vectorised(const float4* x, float4* y, int m, int n) {
  ROOFTILE_SHARED(turned, float4[64][16]);  // a row for each column of x
  const int first_i = static_cast<int>(blockIdx.y * 64), first_j = static_cast<int>(blockIdx.x * 64);
  const int a = static_cast<int>(threadIdx.x), b = static_cast<int>(threadIdx.y);

  float4 word[4] = {};
  const int j = first_j + 4 * a;
  for (int k = 0; k < 4; ++k) {
    const int i = first_i + 4 * b + k;
    if (i < m && j < n) word[k] = x[(std::int64_t{i} * n + j) / 4];  // [load]
  }
  const float4 column[4] = {{word[0].x, word[1].x, word[2].x, word[3].x},
                            {word[0].y, word[1].y, word[2].y, word[3].y},
                            {word[0].z, word[1].z, word[2].z, word[3].z},
                            {word[0].w, word[1].w, word[2].w, word[3].w}};
  for (int k = 0; k < 4; ++k) turned[4 * a + k][b ^ (a % 8)] = column[k];  // [in]
  __syncthreads();

  float4 row[4];  // all of them before the first store, or each waits for the one before
  for (int k = 0; k < 4; ++k) row[k] = turned[16 * k + b][a ^ ((16 * k + b) / 4 % 8)];  // [out]
  const int i = first_i + 4 * a;
  for (int k = 0; k < 4; ++k) {
    const int to = first_j + 16 * k + b;
    if (to < n && i < m) y[(std::int64_t{to} * m + i) / 4] = row[k];  // [store]
  }
}

}  // namespace

Status launch_vectorised(const CudaLaunch& launch, const TransposeProblem& p) {
  if (p.size() == 0) return {};
  const auto blocks = [](std::int64_t size) { return static_cast<unsigned>((size + 63) / 64); };
  return cuda::launch(launch, "transpose", {{blocks(p.n), blocks(p.m)}, {16, 16}}, transpose_vectorised,
                      static_cast<const float4*>(p.x), static_cast<float4*>(p.y), static_cast<int>(p.m),
                      static_cast<int>(p.n));
}

}  // namespace rooftile::ladder
