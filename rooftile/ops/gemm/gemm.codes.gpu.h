#pragma once
// What the GPU's kernels of a product with codes get (gemm.codes.h), and how codes become weights. A struct
// of values, which a folder defines, has
//   Weight                the weight's struct
//   Scale                 what a run of weights shares, as it is loaded; Scale{} with codes of 0 are zeros
//   Values(w)             by all threads of a block, which may put a table into its shared memory
//   scale(w, line, group)  loads
//   Factor, factor(w, scale)  what a Scale is computed into
//   many<N>(w, word, factor)  N weights of a word, the first in its lowest byte
#include "rooftile/ops/gemm/gemm.codes.h"
#include "rooftile/ops/gemm/gemm.gpu.h"
#include "rooftile/tile/cuda/elements.h"

namespace rooftile::codes_gpu {
using namespace rooftile::tile;
using gemm_gpu::GpuProduct;
using gemm_gpu::GpuTile;
using gemm_gpu::GpuTiles;

template <class W>
W weight_of(const GemmCodes<W>& p) {
  W w = p.w;
  w.runs = w.in_runs(16);
  return w;
}
/// No operands change places, b is not in memory.
template <class W>
GpuProduct product_of(const GemmCodes<W>& p, int size) {
  gemm_gpu::GpuOperand b{};
  b.k_first = true;
  return gemm_gpu::product_in_order(p.product, gemm_gpu::a_of(p.product, size), b);
}

/// 32 weights at an aligned place of a row.
template <class W, class Line>
ROOFTILE_TILE uint4 run_at(const W& w, const Line& line, std::int64_t k) {
  return *reinterpret_cast<const uint4*>(w.code(line, k));
}
/// Weights at a place in K and the next ones, `live` of them, which may begin anywhere: the slow way.
template <int N, class V, class W>
ROOFTILE_TILE Tile<float, N> weights_at(const V& values, const W& w, std::int64_t row, std::int64_t k,
                                        int live) {
  Tile<float, N> weights;
  const auto line = w.line(row);
  ROOFTILE_UNROLL for (int i = 0; i < N; ++i) {
    weights.v[i] = 0;
    if (i >= live) continue;
    const unsigned byte = *w.code(line, k + i), code = w.high(line, k + i) ? byte >> 4 : byte & 15;
    weights.v[i] = values
                       .template many<1>(w, code << W::shift(0),
                                         values.factor(w, values.scale(w, line, w.group_of(k + i))))
                       .v[0];
  }
  return weights;
}

/// Each instantiated in a folder's sources of these names.
template <class V>
Status launch_few(const CudaLaunch&, const GemmCodes<typename V::Weight>&);  // gemm.codes.few.h
template <class V>
Status launch_mma(const CudaLaunch&, const GemmCodes<typename V::Weight>&);  // gemm.codes.mma.h
template <class V>
Status launch_simt(const CudaLaunch&, const GemmCodes<typename V::Weight>&);  // gemm.codes.simt.h

}  // namespace rooftile::codes_gpu
