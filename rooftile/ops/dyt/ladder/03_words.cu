// Idea: a thread goes down four neighbouring columns, and reads and writes 16 bytes at a time.
// Changed: a quarter of the requests, each for four times the bytes.
// Binds: waiting: a thread requests one row's word, and computes when it is there.
// Next: rows that come while others are computed, of any dtype and stride: the library's kernel.
#include "rooftile/core/row_blocks.h"
#include "rooftile/ops/dyt/ladder/gpu_terms.h"

namespace rooftile::ladder {
namespace {
using namespace dyt_gpu;

constexpr int kWide = 4;
struct alignas(16) Word {
  float v[kWide];
};
__device__ __forceinline__ Word load(const float* from) {
  const float4 w = *reinterpret_cast<const float4*>(from);
  return {{w.x, w.y, w.z, w.w}};
}
__device__ __forceinline__ void store(float* to, const Word& w) {
  const float4 word{w.v[0], w.v[1], w.v[2], w.v[3]};
  *reinterpret_cast<float4*>(to) = word;
}

__global__ void __launch_bounds__(kThreads) dyt_backward_words(const __grid_constant__ DytBackwardProblem p) {
  const std::int64_t block = blockIdx.x, begin = row_block_begin(p.rows.rows, p.blocks, block);
  const std::int64_t end = row_block_begin(p.rows.rows, p.blocks, block + 1);
  const float alpha = alpha_of(p);
  float dalpha = 0;
  // [columns]
  for (std::int64_t c = kWide * threadIdx.x; c < p.rows.columns; c += kWide * kThreads) {
    const Word weight = load(weights_of(p) + c);
    Word dweight{}, dbias{};
    for (std::int64_t row = begin; row < end; ++row) {
      const Word x = load(row_of<const float>(p, kX, row) + c);
      const Word dy = load(row_of<const float>(p, kDy, row) + c);
      Word dx;
      for (int i = 0; i < kWide; ++i) {
        const Terms t = terms_of(x.v[i], dy.v[i], weight.v[i], alpha);
        dx.v[i] = t.dx;
        dalpha += t.dalpha;
        dweight.v[i] += t.dweight;
        dbias.v[i] += t.dbias;
      }
      store(row_of<float>(p, kDx, row) + c, dx);
    }
    store(p.block_sums(block, 0) + c, dweight);
    store(p.block_sums(block, 1) + c, dbias);
  }
  // [/columns]
  dalpha = block_sum(dalpha);
  if (threadIdx.x == 0) p.team_sums(0)[block] = dalpha;
}

}  // namespace

Status launch_dyt_backward_words(const CudaLaunch& launch, const DytBackwardProblem& p) {
  if (p.blocks > 0) {
    const auto blocks = static_cast<unsigned>(p.blocks);
    const Status status = cuda::launch(launch, "dyt_backward", {blocks, kThreads}, dyt_backward_words, p);
    if (!status) return status;
  }
  return launch_add_blocks(launch, p);
}

}  // namespace rooftile::ladder
