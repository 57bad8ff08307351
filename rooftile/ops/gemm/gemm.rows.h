#pragma once
// A product whose B is one matrix, that all rows share.
#include <algorithm>

#include "rooftile/core/view.h"
#include "rooftile/ops/gemm/gemm.problem.h"

namespace rooftile {

/// x {…, M, K}, bias {N} or absent, y {…, M, N}, c as y or absent. Rows of all matrices in one, as far as a
/// stride covers them. What is of b, the caller adds.
inline GemmProblem product_of_rows(const ConstView& x, const ConstView& bias, const ConstView& y,
                                   void* output, const ConstView& given_c = {}) {
  const ConstView& c = given_c.present() ? given_c : y;
  GemmProblem p{};
  p.a = x.data;
  p.c = given_c.present() ? c.data : nullptr;
  p.bias = bias.present() ? bias.data : nullptr;
  p.y = output;
  p.type = x.dtype;
  p.out = y.dtype;
  p.bias_type = bias.present() ? bias.dtype : y.dtype;
  p.bias_stride = bias.present() ? bias.stride[0] : 0;
  p.n = y.shape[y.rank - 1];
  p.k = x.shape[x.rank - 1];
  p.a_column = x.stride[x.rank - 1];
  p.c_column = c.stride[y.rank - 1];
  p.y_column = y.stride[y.rank - 1];
  p.alpha = 1;
  ConstView outer[] = {y, x, c};
  for (ConstView& v : outer) v.shape[v.rank - 1] = v.stride[v.rank - 1] = 1;
  p.batch = rows_of(outer[0], outer[1], outer[1], outer[2]);
  std::fill_n(p.batch.stride[2], kMaxRank, 0);
  p.m = p.batch.rows;
  if (int& rank = p.batch.rank; rank > 0) {
    --rank;
    p.m = p.batch.extent[rank];
    p.y_row = p.batch.stride[0][rank];
    p.a_row = p.batch.stride[1][rank];
    p.c_row = p.batch.stride[3][rank];
  }
  p.batch.rows = p.m == 0 ? 0 : p.batch.rows / p.m;
  return p;
}

}  // namespace rooftile
