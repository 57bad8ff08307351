#pragma once
// How gemm_nf4's kernels (rooftile/ops/gemm/gemm.codes.gpu.h) make weights of codes.
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/gemm/gemm.codes.gpu.h"
#include "rooftile/ops/nf4/nf4.product.h"

namespace rooftile::nf4_gpu {
using namespace rooftile::tile;

/// The levels are in shared memory, a bank for each.
struct Nf4Values {
  using Weight = Nf4Weight;
  using Scale = float;
  const float* levels;

  ROOFTILE_TILE explicit Nf4Values(const Nf4Weight& w) {
    ROOFTILE_SHARED(table, float[16]);
    if (threadIdx.x < 16) table[threadIdx.x] = w.levels.at[threadIdx.x];
    __syncthreads();
    levels = table;
  }
  ROOFTILE_TILE float scale(const Nf4Weight& w, Nf4Weight::Line line, std::int64_t k) const {
    return w.scale(line, k);
  }
  template <int N>
  ROOFTILE_TILE Tile<float, N> many(const Nf4Weight&, unsigned word, float scale) const {
    Tile<float, N> weights;
    ROOFTILE_UNROLL for (int i = 0; i < N; ++i) {
      weights.v[i] = levels[word >> Nf4Weight::shift(i) & 15] * scale;
    }
    return weights;
  }
};

}  // namespace rooftile::nf4_gpu
