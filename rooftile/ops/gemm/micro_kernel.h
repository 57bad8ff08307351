#pragma once
// The innermost part of a product on the CPU: a small tile of sums that stays in vector registers while K
// passes.
#include "rooftile/ops/gemm/pack_pairs.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// A tile's rows; it is two vectors wide. A step of K loads two vectors and as many numbers as there are
/// rows, for twice as many multiply-adds: 24 on AVX-512, for which 14 loads suffice. The sums, two vectors of
/// B and one of A take 27 of 32 registers, or 15 of 16.
inline constexpr int kMicroRows = kVectorBytes == 64 ? 12 : kVectorBytes == 32 ? 6 : 4;
template <class S>
inline constexpr int kMicroColumns = 2 * kVecLanes<S>;

/// How much of K is packed at a time, and so how far apart A's packed rows are: known to the compiler, every
/// number of A has an address of one register and a constant.
inline constexpr int kMicroDepth = 128;

/// a·b + c; of integers, which stand for two neighbours in K of 16 bits, a₀·b₀ + a₁·b₁ + c.
template <class S>
ROOFTILE_TILE Vec<S> multiply_add(Vec<S> a, Vec<S> b, Vec<S> c) {
  if constexpr (std::is_integral_v<S>)
    return multiply_pairs(a, b) + c;
  else
    return vfma(a, b, c);
}

/// So many steps of K for each line that is requested ahead: all at once, they would keep the multiply-adds'
/// own loads waiting. Of four in a row GCC 12 keeps two of AVX2's sums on the stack (`rooftile asm`).
inline constexpr int kMicroSteps = 2, kMicroLines = kMicroDepth / kMicroSteps;

/// Bytes that a packed B's lines are requested ahead: one f32 row times a Linear's weight of 4096 x 4096, on
/// AVX2, has 1.05 times the speed of a B that is not packed at 2048, 1.18 times at 4096 and at 8192.
inline constexpr int kStreamAhead = 4096;

/// sums[r][j] += Σ_p a[r][p]·b[p][j], p ascending below `depth`; `first`: from 0 instead. `lines`:
/// kMicroLines to be requested ahead, where a tile has all of its rows. kStream: b comes from memory, maybe
/// in 8 or 16 bits, which are widened here; its own lines are requested ahead instead.
template <int kRows, bool kStream = false, class S, class B = S>
__attribute__((noinline)) void multiply_tile(const S* a, const B* b, std::int64_t b_pitch, std::int64_t depth,
                                             S* sums, std::int64_t pitch, bool first,
                                             const void* const* lines) {
  constexpr int kLanes = kVecLanes<S>;
  Vec<S> sum[kRows][2] = {};
  if (!first) {
    const S* row = sums;
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r, row += pitch) {
      sum[r][0] = load_unaligned<Vec<S>>(row);
      sum[r][1] = load_unaligned<Vec<S>>(row + kLanes);
    }
  }
  const auto step = [&]() ROOFTILE_INLINE {
    if constexpr (kStream)
      for (int at = 0; at < 2 * kLanes * int(sizeof(B)); at += 64)
        __builtin_prefetch(reinterpret_cast<const char*>(b) + kStreamAhead + at);
    Vec<S> b0, b1;
    load_strip<S>(b, b_pitch, b0, b1);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const Vec<S> x = splat<S>(a[r * kMicroDepth]);
      sum[r][0] = multiply_add<S>(x, b0, sum[r][0]);
      sum[r][1] = multiply_add<S>(x, b1, sum[r][1]);
    }
    ++a;
    b += (sizeof(B) == 1 ? 2 : 1) * b_pitch;
  };
  std::int64_t p = 0;
  for (; !kStream && kRows == kMicroRows && p + kMicroSteps <= depth; p += kMicroSteps) {
    __builtin_prefetch(*lines++, 0, 2);
#pragma GCC unroll 2
    for (int q = 0; q < kMicroSteps; ++q) step();
  }
  for (; p < depth; ++p) step();
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r, sums += pitch) {
    store_unaligned(sums, sum[r][0]);
    store_unaligned(sums + kLanes, sum[r][1]);
  }
}

/// Calls f.operator()<kRows>() with as many as a micro-tile may have of `rows`, and says how many that were.
template <class F>
ROOFTILE_TILE int with_rows(std::int64_t rows, F f) {
  const auto run = [&]<int kRows>() ROOFTILE_INLINE {
    f.template operator()<kRows>();
    return kRows;
  };
  if (rows >= kMicroRows) return run.template operator()<kMicroRows>();
  if constexpr (kMicroRows > 8)
    if (rows >= 8) return run.template operator()<8>();
  if constexpr (kMicroRows > 4)
    if (rows >= 4) return run.template operator()<4>();
  if (rows >= 2) return run.template operator()<2>();
  return run.template operator()<1>();
}

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
