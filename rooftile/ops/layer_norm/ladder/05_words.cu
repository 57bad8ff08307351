// Idea: a thread reads and writes four neighbours as one 16-byte word; a warp's request brings 512 bytes.
// Changed: a quarter of 04_registers' requests. Rows that are no whole number of aligned words go element by
// element, to the same threads, so that no bit depends on where a row lies. Binds: bytes, where rows are
// long; a short one leaves most of its warp idle. Next: several rows to a warp.
#include <cmath>

#include "rooftile/backend/cuda/launch.h"
#include "rooftile/ops/layer_norm/ladder/gpu_row.h"

namespace rooftile::ladder {
using namespace layer_norm_gpu;
namespace {

constexpr int kWords = kItemsPerThread / 4;

template <bool kAligned>
__global__ void __launch_bounds__(kMaxThreads) layer_norm_words(const __grid_constant__ LayerNormProblem p) {
  const GpuRow at(p, blockIdx.x);
  const int n = static_cast<int>(at.n);
  const int first = 4 * static_cast<int>(threadIdx.x), step = 4 * static_cast<int>(blockDim.x);
  const float count = static_cast<float>(n);

  // [words]
  float4 row[kWords];
  ROOFTILE_UNROLL for (int k = 0; k < kWords; ++k) row[k] = load_word<kAligned>(at.x, k * step + first, n);

  float sum = 0;
  ROOFTILE_UNROLL for (int k = 0; k < kWords; ++k) sum += sum_of_word(row[k]);
  // [/words]
  const float mean = sum_of_block<0>(sum) / count;

  float square = 0;
  ROOFTILE_UNROLL for (int k = 0; k < kWords; ++k) square +=
      sum_of_word(squares(row[k], k * step + first, n, mean));
  const float rstd = 1 / sqrtf(sum_of_block<1>(square) / count + p.eps());

  ROOFTILE_UNROLL for (int k = 0; k < kWords; ++k) {
    const int i = k * step + first;
    const float4 w = load_word<kAligned>(at.weight, i, n), b = load_word<kAligned>(at.bias, i, n);
    store_word<kAligned>(at.y, i, n, normalised(row[k], mean, rstd, w, b));
  }
  if (threadIdx.x == 0) at.store_statistics(mean, rstd);
}

}  // namespace

Status launch_layer_norm_words(const CudaLaunch& launch, const LayerNormProblem& p) {
  if (p.rows.rows <= 0) return {};
  const auto blocks = static_cast<unsigned>(p.rows.rows);
  const auto warps =
      static_cast<unsigned>((p.rows.columns + 32 * kItemsPerThread - 1) / (32 * kItemsPerThread));
  return cuda::launch(launch, "layer_norm", {blocks, 32 * (warps > 0 ? warps : 1)},
                      aligned(p) ? layer_norm_words<true> : layer_norm_words<false>, p);
}

}  // namespace rooftile::ladder
