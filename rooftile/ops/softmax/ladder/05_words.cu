// Idea: a thread reads and writes four neighbours as one 16-byte word; a warp's request brings 512 bytes.
// Changed: a quarter of 04_registers' requests. Rows that are no whole number of aligned words go element by
// element, to the same threads, so that no bit depends on where a row lies. Binds: bytes, where rows are
// long; a short one leaves most of its warp idle. Next: several rows to a warp.
#include <cmath>

#include "rooftile/backend/cuda/launch.h"
#include "rooftile/ops/softmax/ladder/gpu_row.h"

namespace rooftile::ladder {
using namespace softmax_gpu;
namespace {

constexpr int kWords = kItemsPerThread / 4;

template <bool kAligned>
__global__ void __launch_bounds__(kMaxThreads) softmax_words(const __grid_constant__ SoftmaxProblem p) {
  const int n = static_cast<int>(p.rows.columns);
  const int first = 4 * static_cast<int>(threadIdx.x), step = 4 * static_cast<int>(blockDim.x);
  const float* x = static_cast<const float*>(p.x) + p.rows.offset(0, blockIdx.x);
  float* y = static_cast<float*>(p.y) + p.rows.offset(1, blockIdx.x);

  const tile::SplitScale s(p.scale);
  // [load]
  float4 row[kWords];
  ROOFTILE_UNROLL for (int k = 0; k < kWords; ++k) row[k] = load_word<kAligned>(x, k * step + first, n);
  // [/load]

  float row_max = -HUGE_VALF;
  ROOFTILE_UNROLL for (int k = 0; k < kWords; ++k) {
    row[k] = scaled(row[k], k * step + first, n, s.unit);
    row_max = fmaxf(row_max, fmaxf(fmaxf(row[k].x, row[k].y), fmaxf(row[k].z, row[k].w)));
  }
  row_max = over_block(row_max, Larger{});

  float sum = 0;
  ROOFTILE_UNROLL for (int k = 0; k < kWords; ++k) {
    row[k] = {expf((row[k].x - row_max) * s.rest), expf((row[k].y - row_max) * s.rest),
              expf((row[k].z - row_max) * s.rest), expf((row[k].w - row_max) * s.rest)};
    sum += (row[k].x + row[k].y) + (row[k].z + row[k].w);
  }
  const float inverse = 1 / over_block(sum, Add{});

  ROOFTILE_UNROLL for (int k = 0; k < kWords; ++k) {
    const float4 e = row[k];
    store_word<kAligned>(y, k * step + first, n,
                         {e.x * inverse, e.y * inverse, e.z * inverse, e.w * inverse});
  }
}

}  // namespace

Status launch_softmax_words(const CudaLaunch& launch, const SoftmaxProblem& p) {
  if (p.rows.rows <= 0 || p.rows.columns <= 0) return {};
  const auto blocks = static_cast<unsigned>(p.rows.rows);
  const auto warps =
      static_cast<unsigned>((p.rows.columns + 32 * kItemsPerThread - 1) / (32 * kItemsPerThread));
  return cuda::launch(launch, "softmax", {blocks, 32 * warps},
                      aligned(p) ? softmax_words<true> : softmax_words<false>, p);
}

}  // namespace rooftile::ladder
