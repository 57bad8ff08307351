// The forward on tensor cores: of f16 and bf16, any heads, masks and strides.
#include "rooftile/ops/attention/attention.mma.h"
#include "rooftile/tile/cuda/row_range.h"

namespace rooftile::attention_gpu {
namespace {

template <class T, class Shape, bool kPlain>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    attention_mma(const __grid_constant__ AttentionProblem all) {
  const QueryTile tile(all, Shape::kQueries);
  if (tile.any) forward_mma<T, Shape, kPlain>(tile.p, WholeHead<T>(tile.p, tile.place));
}

}  // namespace

Status launch_mma(const CudaLaunch& launch, const AttentionProblem& problem) {
  if (problem.b * problem.h * problem.s == 0) return {};
  AttentionProblem p = problem;
  p.together = heads_together(p);
  p.words = in_words(p.q, p.d) && in_words(p.k, p.d) && in_words(p.v, p.e) && in_words(p.y, p.e);
  return tile::with_type<f16, bf16>(p.dtype, [&]<class T>() {
    return with_size(p, [&]<int kSize>() {
      // Which of the two it is changes no bit.
      if (p.words && p.d == kSize && p.e == kSize && p.plain())
        return launch_mma<PlainShape<kSize>>(launch, "attention", p, p.h, p.s,
                                             attention_mma<T, PlainShape<kSize>, true>);
      return launch_mma<AnyShape<kSize>>(launch, "attention", p, p.h, p.s,
                                         attention_mma<T, AnyShape<kSize>, false>);
    });
  });
}

}  // namespace rooftile::attention_gpu
