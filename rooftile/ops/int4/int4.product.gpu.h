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

struct Int4Values {
  using Weight = Int4Weight;
  /// Nothing is computed before its first use: the loads are still on their way.
  struct Scale {
    unsigned bits = 0, zero = 0;
  };

  ROOFTILE_TILE explicit Int4Values(const Weight&) {}
  ROOFTILE_TILE Scale scale(const Weight& w, Weight::Line line, std::int64_t k) const {
    return {load_bits(w.scales, w.scale_at(line, k), w.scale_type), w.zero(line, k)};
  }
  template <int N>
  ROOFTILE_TILE Tile<float, N> many(const Weight& w, unsigned word, const Scale& its) const {
    const float scale = scale_of(its.bits, w.scale_type), zero = above_2_23(its.zero);
    Tile<float, N> weights;
    ROOFTILE_UNROLL for (int i = 0; i < N; ++i) {
      weights.v[i] = (above_2_23(word >> Weight::shift(i) & 15) - zero) * scale;
    }
    return weights;
  }
};

}  // namespace rooftile::int4_gpu
