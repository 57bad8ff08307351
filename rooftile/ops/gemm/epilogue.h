#pragma once
// What follows the products on the CPU, for a tile of y.
#include "rooftile/ops/activation/activation.tile.h"
#include "rooftile/ops/gemm/epilogue_rows.h"
#include "rooftile/ops/gemm/gemm.problem.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

inline __attribute__((noinline)) void activate(int which, float* row, std::int64_t columns) {
  using T = Tile<float>;
  const auto each = [&](auto f) ROOFTILE_INLINE {
    in_place(row, columns, [&](const T& x, std::int64_t) ROOFTILE_INLINE { return f(x); });
  };
  switch (which) {
    case 1:
      return each([](const T& x) ROOFTILE_INLINE { return kernels::relu(x); });
    case 2:
      return each([](const T& x) ROOFTILE_INLINE { return kernels::gelu_erf(x); });
    case 3:
      return each([](const T& x) ROOFTILE_INLINE { return kernels::gelu_tanh(x); });
    case 4:
      return each([](const T& x) ROOFTILE_INLINE { return kernels::silu(x, 1); });
    case 5:
      return each([](const T& x) ROOFTILE_INLINE { return kernels::sigmoid(x); });
    case 6:
      return each([](const T& x) ROOFTILE_INLINE { return kernels::tanh(x); });
    default:
      return;
  }
}
inline void activate(int which, double* row, std::int64_t columns) {
  using T = Tile<double>;
  if (which == 1)
    in_place(row, columns, [](const T& x, std::int64_t) { return select(x <= 0, fill<double>(0), x); });
}

/// A product as the CPU computes it: y, or its transpose, by rows. The bias then belongs to rows. `packed`: b
/// is gemm_pack's, of which b_column is the stride.
struct OrientedProduct : GemmProblem {
  std::int64_t bias_row = 0, bias_column = 0;
  bool packed = false;
};

/// A tile of y, whose sums lie in rows `pitch` apart. `buffered`: these have no room to their ends for a tile
/// of lanes more, so each is copied before it is changed.
template <class S>
struct EpilogueTile {
  S* sums;
  std::int64_t pitch, matrix, i, j, rows, columns;
  bool buffered;
};

template <class T, bool kRound, class S>
void finish_rows(const OrientedProduct& p, const EpilogueTile<S>& tile, const S* bias, S* buffer) {
  const S alpha = static_cast<S>(p.alpha), beta = static_cast<S>(p.beta);
  const bool by_row = p.bias && p.bias_column == 0;
  const T* c = p.reads_c() ? static_cast<const T*>(p.c) + p.batch.offset(3, tile.matrix) + tile.j * p.c_column
                           : nullptr;
  T* y = static_cast<T*>(p.y) + p.batch.offset(0, tile.matrix) + tile.j * p.y_column;
  for (std::int64_t r = 0; r < tile.rows; ++r) {
    S* row = tile.sums + r * tile.pitch;
    if (tile.buffered) row = std::copy_n(row, tile.columns, buffer) - tile.columns;
    const std::int64_t i = tile.i + r;
    const S one = by_row ? number_at<S>(p.bias, p.bias_type, i * p.bias_row) : S(0);
    if (p.bias || alpha != 1) scale_row(row, tile.columns, alpha, bias, by_row, one);
    if constexpr (!std::is_integral_v<S>)
      if (p.activation != 0) activate(p.activation, row, tile.columns);
    store_row<T, kRound>(row, tile.columns, beta, p.gate, c ? c + i * p.c_row : nullptr, p.c_column,
                         y + i * p.y_row, p.y_column);
  }
}

/// `bias`, `buffer`: room for as many numbers as a tile has columns, and a tile of lanes more.
template <class S>
void finish(const OrientedProduct& p, const EpilogueTile<S>& tile, S* bias, S* buffer) {
  const bool by_column = p.bias && p.bias_column != 0;
  for (std::int64_t k = 0; by_column && k < tile.columns; ++k)
    bias[k] = number_at<S>(p.bias, p.bias_type, (tile.j + k) * p.bias_column);
  const S* const columns = by_column ? bias : nullptr;
  if constexpr (std::is_same_v<S, float>) {
    if (p.out == DType::f32) return finish_rows<float, false>(p, tile, columns, buffer);
    if (p.out == DType::tf32) return finish_rows<float, true>(p, tile, columns, buffer);
    if (p.out == DType::f16) return finish_rows<f16, false>(p, tile, columns, buffer);
    return finish_rows<bf16, false>(p, tile, columns, buffer);
  } else {
    finish_rows<S, false>(p, tile, columns, buffer);
  }
}

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
