// Idea: one kernel for all results. A block of threads has a block of rows: each thread goes down a column of
// them, writes dx, keeps both of the column's sums and its part of dalpha in registers, and leaves them in
// the workspace. A second kernel adds the blocks' sums in the blocks' order.
// Changed: x and dy are read once, not three times; as many threads as blocks of rows times 256. An atomicAdd
// for each sum would need no second kernel, but their order, and with it the last bits, would change from run
// to run.
// Binds: requests, of 4 bytes a thread.
// Next: 16 bytes.
#include "rooftile/core/row_blocks.h"
#include "rooftile/ops/dyt/ladder/gpu_terms.h"

namespace rooftile::ladder {
namespace {
using namespace dyt_gpu;

__global__ void __launch_bounds__(kThreads)
    dyt_backward_blocks(const __grid_constant__ DytBackwardProblem p) {
  const std::int64_t block = blockIdx.x, begin = row_block_begin(p.rows.rows, p.blocks, block);
  const std::int64_t end = row_block_begin(p.rows.rows, p.blocks, block + 1);
  const float alpha = alpha_of(p);
  float dalpha = 0;
  // [columns]
  for (std::int64_t column = threadIdx.x; column < p.rows.columns; column += kThreads) {
    const float weight = weights_of(p)[column];
    float dweight = 0, dbias = 0;
    for (std::int64_t row = begin; row < end; ++row) {
      const Terms t = terms_of(row_of<const float>(p, kX, row)[column],
                               row_of<const float>(p, kDy, row)[column], weight, alpha);
      row_of<float>(p, kDx, row)[column] = t.dx;
      dalpha += t.dalpha;
      dweight += t.dweight;
      dbias += t.dbias;
    }
    p.block_sums(block, 0)[column] = dweight;
    p.block_sums(block, 1)[column] = dbias;
  }
  // [/columns]
  dalpha = block_sum(dalpha);
  if (threadIdx.x == 0) p.team_sums(0)[block] = dalpha;
}

}  // namespace

Status launch_dyt_backward_blocks(const CudaLaunch& launch, const DytBackwardProblem& p) {
  if (p.blocks > 0) {
    const auto blocks = static_cast<unsigned>(p.blocks);
    const Status status = cuda::launch(launch, "dyt_backward", {blocks, kThreads}, dyt_backward_blocks, p);
    if (!status) return status;
  }
  return launch_add_blocks(launch, p);
}

}  // namespace rooftile::ladder
