#pragma once
// The arithmetic of a Hopper tensor core, bit for bit, as measured on an H200. One step adds a block of
// products to an accumulator. Products are exact. All of them, and the accumulator, are cut toward zero at a
// fixed number of bits below the largest exponent, where a product's exponent is the sum of its factors'.
// They are added exactly, and the sum is cut to fp32; of f8 to as many fraction bits as the products.
#include <cstdint>

#include "rooftile/backend/emulated/device/calls.h"

namespace rooftile::emulated::tensor_core {

using device::MatrixType;

struct Model {
  int block;          // products of one step
  int fraction_bits;  // that are kept below the largest exponent
  int result_bits;    // of the sum's fraction
};
constexpr int element_bytes(MatrixType t) {
  return t == MatrixType::kTf32 ? 4 : t == MatrixType::kBf16 || t == MatrixType::kF16 ? 2 : 1;
}
constexpr Model model(MatrixType type) {
  if (element_bytes(type) == 1) return {32, 13, 13};
  return {type == MatrixType::kTf32 ? 8 : 16, 25, 23};
}
constexpr int kDepth = 32;  // most products of one step
/// One element of a register: of 8 or 16 bits, or of 32 that the instruction reads 19 of.
float to_float(MatrixType, std::uint32_t bits);

/// One result of one step, as the definition reads; for any values.
float step(const float* a, const float* b, float c, Model);

/// The same for 16 rows of `a` and 8 rows of `b` (columns of the product): d[i][j] = step(a[i], b[j],
/// c[i][j]).
void multiply(const float (&a)[16][kDepth], const float (&b)[8][kDepth], float (&d)[16][8], Model);
/// And for up to 64 rows of `a` and up to 256 of `b`, a multiple of 8: d[rows][columns].
void multiply(const float (*a)[kDepth], int rows, const float (*b)[kDepth], int columns, float* d, Model);
/// Of signed bytes; without a sign, as sums wrap.
void multiply(const std::int8_t (*a)[kDepth], int rows, const std::int8_t (*b)[kDepth], int columns,
              std::uint32_t* d);

}  // namespace rooftile::emulated::tensor_core
