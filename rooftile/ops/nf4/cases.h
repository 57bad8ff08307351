#pragma once
#include "rooftile/ops/nf4/nf4.h"
#include "rooftile/ops/nf4/oracle.h"

namespace rooftile::harness {

inline std::int64_t nf4_size(const Case& c) {
  std::int64_t n = 1;
  for (std::int64_t s : c.shape) n *= s;
  return n;
}
/// Bytes and scales of a case: dequantising, so many more than are read as "more" says.
inline Shape nf4_bytes(const Case& c) {
  return {(nf4_first(c) + nf4_size(c) + 1) / 2 + static_cast<std::int64_t>(c.parameter("more"))};
}
inline Shape nf4_scales(const Case& c) {
  return {(nf4_first(c) + nf4_size(c) + nf4_block(c) - 1) / nf4_block(c) +
          static_cast<std::int64_t>(c.parameter("more"))};
}

/// Tails of each kind, each block, elements that lie apart, rows of a tensor by themselves.
inline std::vector<Case> nf4_cases(bool quantizes) {
  std::vector<Case> cases;
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    for (std::int64_t block : {32, 64, 128, 256, 512, 1024, 2048, 4096})
      for (Shape shape : {Shape{4096}, Shape{3, 1367}, Shape{2, 4099}})
        cases.push_back({shape, type, {{"block", double(block)}}});
    // No multiple of 64 (bitsandbytes 1884), no multiple of 8 blocks (2043), strided (1996).
    for (Shape shape :
         {Shape{1}, Shape{2}, Shape{63}, Shape{65}, Shape{7 * 64 + 1}, Shape{9 * 64}, Shape{11, 13}})
      cases.push_back({shape, type, {}});
    for (Layout layout : {Layout::transposed, Layout::reversed, Layout::padded_rows, Layout::strided_columns})
      cases.push_back({{3, 70, 130}, type, {}, layout});
    for (Fill fill : {Fill::one_nan, Fill::one_infinity, Fill::denormals, Fill::huge, Fill::constant_rows})
      cases.push_back({{5, 64}, type, {}, Layout::contiguous, fill});
    if (quantizes) continue;
    for (double first : {1., 2., 3., 5., 9.}) cases.push_back({{1}, type, {{"first", first}}});
    for (double first : {1., 2., 7., 8., 64., 130., 4096.})
      for (double more : {0., 3.}) cases.push_back({{5, 130}, type, {{"first", first}, {"more", more}}});
    cases.push_back({{5, 130}, type, {{"first", 77}, {"block", 32}}, Layout::transposed});
  }
  return cases;
}

inline BenchCases nf4_bench() {
  BenchCases b;
  for (DType type : {DType::f32, DType::bf16, DType::f16}) {
    b.cache.push_back({{256, 512}, type, {}});
    b.memory.push_back({{16384, 4096}, type, {}});
    b.gpu.push_back({{16384, 8192}, type, {}});
    b.gpu.push_back({{28672, 8192}, type, {}});
  }
  return b;
}

inline std::vector<Spec> nf4_specs() {
  const auto bytes = [](const Case& c) { return static_cast<double>(nf4_size(c)) * bits(c.dtype) / 8; };
  static const auto of_tensor = bytes;
  Spec quantize{
      .function = "quantize_nf4",
      .axes = "any shape, as one row of elements",
      .dtypes = {DType::f32, DType::f16, DType::bf16},
      .operands = [](const Case& c) -> std::vector<Operand> {
        return {{"x", Operand::Kind::input, c.dtype, c.shape, false},
                {"packed", Operand::Kind::output, DType::u8, nf4_bytes(c), false},
                {"absmax", Operand::Kind::output, DType::f32, nf4_scales(c), false}};
      },
      .call =
          [](const Queue& q, const Case& c, const Arguments& a, const char* variant, Workspace) {
            return quantize_nf4(q, a.in("x"), a.out("packed"), a.out("absmax"), {nf4_block(c), variant});
          },
      .oracle = oracles<QuantizeNf4Oracle>(),
      .flops = [](const Case&) { return 0.; },
      .bytes =
          [](const Case& c) {
            return of_tensor(c) + static_cast<double>(nf4_bytes(c)[0] + 4 * nf4_scales(c)[0]);
          },
      .tolerance = {.exact = true, .reason = "each operation is rounded as IEEE says, and then compared"},
      .excuses = {},
      .cases = [] { return nf4_cases(true); },
      .bench = nf4_bench,
  };
  Spec dequantize{
      .function = "dequantize_nf4",
      .axes = quantize.axes,
      .dtypes = quantize.dtypes,
      .operands = [](const Case& c) -> std::vector<Operand> {
        return {{"packed", Operand::Kind::input, DType::u8, nf4_bytes(c), false},
                {"absmax", Operand::Kind::input, DType::f32, nf4_scales(c), false},
                {"y", Operand::Kind::output, c.dtype, c.shape, false}};
      },
      .call =
          [](const Queue& q, const Case& c, const Arguments& a, const char* variant, Workspace) {
            return dequantize_nf4(q, a.in("packed"), a.in("absmax"), a.out("y"),
                                  {nf4_block(c), nf4_first(c), variant});
          },
      .oracle = oracles<DequantizeNf4Oracle>(),
      .flops = [](const Case&) { return 0.; },
      .bytes =
          [](const Case& c) {
            const std::int64_t first = nf4_first(c), end = first + nf4_size(c), block = nf4_block(c);
            return of_tensor(c) + static_cast<double>((end + 1) / 2 - first / 2 +
                                                      4 * ((end + block - 1) / block - first / block));
          },
      .tolerance = {.exact = true, .reason = "one product, rounded once"},
      .excuses = {},
      .cases = [] { return nf4_cases(false); },
      .bench = nf4_bench,
  };
  return {quantize, dequantize};
}

}  // namespace rooftile::harness
