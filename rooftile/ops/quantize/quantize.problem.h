#pragma once
// What passes from validation (quantize.cpp) to the launches (quantize.cpu.cpp, quantize.cu).
#include "rooftile/core/philox.h"
#include "rooftile/core/reduction.h"

namespace rooftile {

/// Codes of 8 bits, as numbers: what rounds to them, and what they stand for.
struct CodeFormat {
  bool integer;  ///< i8; then only the next two are used
  float largest;
  float last_within;      ///< the largest f32 that rounds to it by itself
  int shift;              ///< mantissa bits that an f32 has more
  int rebias;             ///< what its exponent, there, is larger by
  float smallest_normal;  ///< below it codes are multiples of 2^-9, or 2^-16;
  float magic;            ///< and of that an f32 of this size is a multiple, too
  int special;            ///< codes without their sign from here on are no numbers
  float unit;             ///< what an f32 with a code's bits `shift` further up is to be multiplied by
  float even_to;          ///< up to here codes are evenly spaced,
  float per_step;         ///< 1 / this apart
};
constexpr CodeFormat code_format(DType type) {
  if (type == DType::f8e4m3)
    return {false, 448, 464, 20, 120 << 3, 0x1p-6f, 0x1p14f, 0x7F, 0x1p120f, 0x1p-6f, 0x1p9f};
  if (type == DType::f8e5m2)
    return {false, 57344, 0x1.dffffep15f, 21, 112 << 2, 0x1p-14f, 0x1p7f, 0x7C, 0x1p112f, 0x1p-14f, 0x1p16f};
  return {true, 127, 0x1.fdfffep6f, 0, 0, 0, 0, 0, 0, 127, 1};
}

/// A row's blocks are programs by themselves: `blocks` of each row, the last shorter.
struct QuantizeBlocks {
  std::int64_t columns, block, blocks;

  constexpr QuantizeBlocks(std::int64_t its_columns, std::int64_t its_block)
      : columns(its_columns),
        block(its_block < its_columns ? its_block
              : its_columns < 1       ? 1
                                      : its_columns),
        blocks((columns + block - 1) / block) {}
  /// One block: where it is, and of how many elements.
  struct Place {
    std::int64_t row, block, first, size;
  };
  constexpr Place place(std::int64_t program) const {
    const bool narrow = (program | blocks) >> 32 == 0;  // of 32 bits: a fifth of a GPU's instructions
    const std::int64_t row = blocks == 1 ? program
                             : narrow
                                 ? static_cast<std::uint32_t>(program) / static_cast<std::uint32_t>(blocks)
                                 : program / blocks;
    const std::int64_t its = program - row * blocks, first = its * block, rest = columns - first;
    return {row, its, first, rest < block ? rest : block};
  }
};

struct QuantizeProblem {
  enum { kValues, kCodes, kScale, kGiven };
  Rows<4> rows;  ///< of kScale and kGiven a column is a block's
  QuantizeBlocks blocks;
  void* values;         ///< x; dequantising, y
  std::uint8_t* codes;  ///< null: fake quantising,
  void* fake;           ///< to here, by kCodes' strides
  float* scale;         ///< null: nobody wants it; dequantising, 1
  const float* given;   ///< null: computed
  DType dtype;          ///< of values
  CodeFormat format;
  PhiloxNumbers random;  ///< no seed: to nearest
};

/// One scale for a whole tensor: `codes` takes it from where `x` has its result.
struct QuantizeTensorProblem {
  ReductionProblem<1> x;
  QuantizeProblem codes;

  float* scale() const { return static_cast<float*>(x.result); }
};

struct FakeQuantizeBackwardProblem {
  enum { kDx, kX, kDy, kGiven };
  Rows<4> rows;
  QuantizeBlocks blocks;
  void* dx;
  const void *x, *dy;
  const float* given;
  DType dtype;
  CodeFormat format;
};

}  // namespace rooftile
