// Idea: a tile of y, 12 rows by two vectors (AVX-512), stays in registers while all of K passes.
// Changed: a vector of B serves 12 rows, a number of A two vectors: 14 loads for 24 multiply-adds, no store
//   until the end.
// Binds: where the operands come from. A strip of B is two lines of each row, 4·N bytes from the next. Rows a
//   power of two apart share few sets of L1, and each is on a page of its own; so are 12 rows of A.
// Next: copy what is read often to where it is contiguous.
#include <algorithm>

#include "rooftile/ops/gemm/ladder/ladder.h"
#include "rooftile/ops/gemm/micro_kernel.h"

namespace rooftile::ladder {
using namespace tile;

namespace {
// [register_tile]
/// kRows rows of y, two vectors wide.
template <int kRows>
void multiply(const float* a, const float* b, float* y, std::int64_t n, std::int64_t depth) {
  constexpr int kLanes = kVecLanes<float>;
  Vec<float> sum[kRows][2] = {};
  for (std::int64_t k = 0; k < depth; ++k) {
    const auto b0 = load_unaligned<Vec<float>>(b + k * n),
               b1 = load_unaligned<Vec<float>>(b + k * n + kLanes);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      sum[r][0] = vfma(splat(a[r * depth + k]), b0, sum[r][0]);
      sum[r][1] = vfma(splat(a[r * depth + k]), b1, sum[r][1]);
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
    store_unaligned(y + r * n, sum[r][0]);
    store_unaligned(y + r * n + kLanes, sum[r][1]);
  }
}
// [/register_tile]
}  // namespace

void launch_register_tile(const CpuLaunch&, const GemmProblem& p) {
  const auto *a = static_cast<const float*>(p.a), *b = static_cast<const float*>(p.b);
  auto* y = static_cast<float*>(p.y);
  constexpr std::int64_t kColumns = kMicroColumns<float>;
  const std::int64_t whole = p.n / kColumns * kColumns;
  for (std::int64_t j = 0; j < whole; j += kColumns) {
    std::int64_t i = 0;
    for (; i + kMicroRows <= p.m; i += kMicroRows)
      multiply<kMicroRows>(a + i * p.k, b + j, y + i * p.n + j, p.n, p.k);
    for (; i < p.m; ++i) multiply<1>(a + i * p.k, b + j, y + i * p.n + j, p.n, p.k);
  }
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = whole; j < p.n; ++j) {
      float sum = 0;
      for (std::int64_t k = 0; k < p.k; ++k) sum = multiply_add(a[i * p.k + k], b[k * p.n + j], sum);
      y[i * p.n + j] = sum;
    }
}

}  // namespace rooftile::ladder
