#pragma once
// What passes from validation (gemm.cpp) to the launches (gemm.cpu.cpp, gemm.cu, the ladders).
#include "rooftile/core/rows.h"

namespace rooftile {

/// y[i, j] = activation(alpha · Σ_p a[i, p]·b[p, j] + bias[j]) + beta · c[i, j], or … · c[i, j] where c is a
/// gate; i below m, j below n, p below k. Strides in elements; pointers are of the first matrix.
struct GemmProblem {
  const void *a, *b, *c, *bias;  ///< bias: null where absent; c: as it was given, see reads_c()
  void* y;
  DType type, out, bias_type;  ///< of a and b; of y and c; of bias, `out` where absent
  std::int64_t m, n, k;
  std::int64_t a_row, a_column;  ///< a[i, p] = a[i·a_row + p·a_column]
  std::int64_t b_row, b_column;
  std::int64_t c_row, c_column;
  std::int64_t y_row, y_column;
  std::int64_t bias_stride;
  /// The other matrices: row r's begin at y + batch.offset(0, r), a + batch.offset(1, r), b + …(2, r),
  /// c + …(3, r). Columns are 1.
  Rows<4> batch;
  double alpha, beta;
  int activation;  ///< a GemmActivation
  bool gate;

  bool reads_c() const { return c != nullptr && (beta != 0 || gate); }
  bool empty() const { return batch.rows == 0 || m == 0 || n == 0; }
};

}  // namespace rooftile
