// Idea: K in blocks. The blocks of A and B that are being multiplied are copied into the order in which they
//   are read: A's in L2, a strip of B in L1. A copy costs one pass over a block and serves a hundred.
// Changed: the micro-kernel reads contiguous memory. Sums go on from block to block in a tile that stays in
//   L2, so the chain of each element is what it was.
// Binds: multiply-adds. Packing moves one number of A per 192 multiply-adds and one of B per 168.
// Next: threads, thin shapes, all dtypes and strides, the epilogue: the library's, gemm.cpu.cpp.
#include <algorithm>

#include "rooftile/ops/gemm/ladder/ladder.h"
#include "rooftile/ops/gemm/micro_kernel.h"
#include "rooftile/ops/gemm/pack.h"

namespace rooftile::ladder {
using namespace tile;

void launch_packed(const CpuLaunch& launch, const GemmProblem& p) {
  const auto *a = static_cast<const float*>(p.a), *b = static_cast<const float*>(p.b);
  auto* y = static_cast<float*>(p.y);
  constexpr std::int64_t kHigh = 168, kWide = 192, kDepth = kMicroDepth, kStrip = kMicroColumns<float>;
  auto* sums = reinterpret_cast<float*>(launch.scratch);
  float *packed_a = sums + kHigh * kWide, *packed_b = packed_a + kHigh * kDepth;
  for (std::int64_t top = 0; top < p.m; top += kHigh)
    for (std::int64_t left = 0; left < p.n; left += kWide) {
      const std::int64_t rows = std::min(kHigh, p.m - top), columns = std::min(kWide, p.n - left);
      std::fill(sums, sums + kHigh * kWide, 0.0f);
      const void* const nothing_ahead[kDepth] = {};
      // [packed]
      for (std::int64_t k = 0; k < p.k; k += kDepth) {
        const std::int64_t depth = std::min(kDepth, p.k - k);
        pack(Block<float>{a + top * p.k + k, p.k, 1, rows, depth}, packed_a, kDepth, 0);
        for (std::int64_t j = 0; j < columns; j += kStrip) {
          const std::int64_t width = std::min(kStrip, columns - j);
          pack(Block<float>{b + k * p.n + left + j, p.n, 1, depth, width}, packed_b, kStrip, kStrip);
          for (std::int64_t i = 0; i < rows;)
            i += with_rows(rows - i, [&]<int kRows>() {
              multiply_tile<kRows>(packed_a + i * kDepth, packed_b, kStrip, depth, sums + i * kWide + j,
                                   kWide, false, nothing_ahead);
            });
        }
      }
      // [/packed]
      for (std::int64_t i = 0; i < rows; ++i)
        std::copy_n(sums + i * kWide, columns, y + (top + i) * p.n + left);
    }
}

}  // namespace rooftile::ladder
