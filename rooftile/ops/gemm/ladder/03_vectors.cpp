// Idea: a vector of neighbours in a row at once.
// Changed: the inner loop's step is a vector: 4 floats (baseline), 8 (AVX2), 16 (AVX-512).
// Binds: two loads and a store for each multiply-add, now of vectors: 12 bytes from L2 for 2 flops. A core
// does
//   two multiply-adds per cycle, but one store.
// Next: keep the sums where they need neither load nor store, in registers.
#include <algorithm>

#include "rooftile/ops/gemm/ladder/ladder.h"
#include "rooftile/tile/cpu/vector.h"

namespace rooftile::ladder {
using namespace tile;

void launch_vectors(const CpuLaunch&, const GemmProblem& p) {
  const auto *a = static_cast<const float*>(p.a), *b = static_cast<const float*>(p.b);
  auto* y = static_cast<float*>(p.y);
  std::fill(y, y + p.m * p.n, 0.0f);
  constexpr std::int64_t kLanes = kVecLanes<float>;
  const std::int64_t whole = p.n / kLanes * kLanes;
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t k = 0; k < p.k; ++k) {
      const float left = a[i * p.k + k];
      const float* right = b + k * p.n;
      float* row = y + i * p.n;
      // [vectors]
      for (std::int64_t j = 0; j < whole; j += kLanes) {
        const auto sum = load_unaligned<Vec<float>>(row + j), x = load_unaligned<Vec<float>>(right + j);
        store_unaligned(row + j, vfma(splat(left), x, sum));
      }
      // [/vectors]
      for (std::int64_t j = whole; j < p.n; ++j) row[j] = multiply_add(left, right[j], row[j]);
    }
}

}  // namespace rooftile::ladder
