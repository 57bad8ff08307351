#pragma once
// How gemm_int4's kernels (rooftile/ops/gemm/gemm.codes.gpu.h) make weights of codes.
#include "rooftile/ops/gemm/gemm.codes.gpu.h"
#include "rooftile/ops/int4/int4.product.h"

namespace rooftile::int4_gpu {
using namespace rooftile::tile;

/// 2^23 + code, whose last bit weighs 1: exact, and so is its difference from 2^23 + zero.
ROOFTILE_TILE float above_2_23(unsigned code) { return __uint_as_float(0x4B000000 | code); }

/// A scale as it is loaded, 16 bits of a half, and as f32.
ROOFTILE_TILE unsigned load_bits(const void* scales, std::int64_t at, DType type) {
  return type == DType::f32 ? static_cast<const unsigned*>(scales)[at]
                            : static_cast<const std::uint16_t*>(scales)[at];
}
ROOFTILE_TILE float scale_of(unsigned bits, DType type) {
  return type == DType::f32    ? __uint_as_float(bits)
         : type == DType::bf16 ? __uint_as_float(bits << 16)
                               : widen<float>(f16{static_cast<std::uint16_t>(bits)});
}

/// What a group's codes are computed with.
struct Int4Factor {
  float scale, zero;  ///< zero: above 2^23
};
/// N weights of a word. Four codes are masked at once; then one instruction puts a code's byte below 2^23. It
/// takes the other bytes from 2^23 + zero, which are the same.
template <int N>
ROOFTILE_TILE Tile<float, N> dequantised(unsigned word, const Int4Factor& its) {
  static_assert(Int4Weight::shift(0) == 0 && Int4Weight::shift(1) == 4);
  const unsigned codes[2] = {word & 0x0F0F0F0F, word >> 4 & 0x0F0F0F0F};
  Tile<float, N> weights;
  ROOFTILE_UNROLL for (int i = 0; i < N; ++i) {
    const unsigned above =
        __byte_perm(codes[i % 2], __float_as_uint(its.zero), 0x7650 + static_cast<unsigned>(i / 2));
    weights.v[i] = (__uint_as_float(above) - its.zero) * its.scale;
  }
  return weights;
}

struct Int4Values {
  using Weight = Int4Weight;
  using Factor = Int4Factor;
  /// Nothing is computed before its first use: the loads are still on their way.
  struct Scale {
    unsigned bits = 0, zero = 0;
  };

  ROOFTILE_TILE explicit Int4Values(const Weight&) {}
  ROOFTILE_TILE Scale scale(const Weight& w, Weight::Line line, std::int64_t group) const {
    return {load_bits(w.scales, w.scale_at(line, group), w.scale_type), w.zero(line, group)};
  }
  ROOFTILE_TILE Factor factor(const Weight& w, const Scale& its) const {
    return {scale_of(its.bits, w.scale_type), above_2_23(its.zero)};
  }
  template <int N>
  ROOFTILE_TILE Tile<float, N> many(const Weight&, unsigned word, const Factor& its) const {
    return dequantised<N>(word, its);
  }
};

}  // namespace rooftile::int4_gpu
