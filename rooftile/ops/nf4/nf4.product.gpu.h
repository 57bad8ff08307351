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
  using Factor = float;
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
  ROOFTILE_TILE float factor(const Nf4Weight&, float scale) const { return scale; }
  /// A level's place in bytes, 4 times its code: of four codes by one shift and mask.
  template <int N>
  ROOFTILE_TILE Tile<float, N> many(const Nf4Weight&, unsigned word, float scale) const {
    static_assert(Nf4Weight::shift(0) == 4 && Nf4Weight::shift(1) == 0);
    const unsigned places[2] = {word >> 2 & 0x3C3C3C3C, word << 2 & 0x3C3C3C3C};
    Tile<float, N> weights;
    ROOFTILE_UNROLL for (int i = 0; i < N; ++i) {
      const unsigned place = __byte_perm(places[i % 2], 0, 0x4440 + static_cast<unsigned>(i / 2));
      weights.v[i] = *reinterpret_cast<const float*>(reinterpret_cast<const char*>(levels) + place) * scale;
    }
    return weights;
  }
};

}  // namespace rooftile::nf4_gpu
