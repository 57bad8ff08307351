#pragma once
#include <algorithm>

#include "rooftile/harness/letters.h"
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

/// A case's last size is the number of scales.
inline Spec nf4_scales_spec(bool quantizes) {
  static const auto count = [](const Case& c) { return c.shape.back(); };
  static const auto blocks = [](const Case& c) { return (count(c) + kScaleBlock - 1) / kScaleBlock; };
  Spec spec{
      .function = quantizes ? "quantize_scales" : "dequantize_scales",
      .axes = "scales",
      .dtypes = {DType::f32},
      .operands = [quantizes](const Case& c) -> std::vector<Operand> {
        const Operand offset{"offset", Operand::Kind::input, DType::f32, {}, false};
        const auto of = [&](const char* name, bool input, DType type, std::int64_t size) {
          return Operand{name, input ? Operand::Kind::input : Operand::Kind::output, type, {size}, false};
        };
        if (quantizes)
          return {of("scales", true, c.dtype, count(c)), offset, of("codes", false, DType::u8, count(c)),
                  of("absmax", false, DType::f32, blocks(c))};
        return {of("codes", true, DType::u8, count(c)), of("absmax", true, DType::f32, blocks(c)), offset,
                of("scales", false, c.dtype, count(c))};
      },
      .call =
          [quantizes](const Queue& q, const Case&, const Arguments& a, const char* variant, Workspace) {
            if (quantizes)
              return quantize_scales(q, a.in("scales"), a.in("offset"), a.out("codes"), a.out("absmax"),
                                     {variant});
            return dequantize_scales(q, a.in("codes"), a.in("absmax"), a.in("offset"), a.out("scales"),
                                     {variant});
          },
      .oracle = quantizes ? oracles<QuantizeScalesOracle>() : oracles<DequantizeScalesOracle>(),
      .flops = [](const Case&) { return 0.; },
      .bytes = [](const Case& c) { return static_cast<double>(5 * count(c) + 4 * blocks(c) + 4); },
      .tolerance = {.exact = true, .reason = "each operation is rounded as IEEE says"},
      .excuses = {},
      .cases =
          [] {
            std::vector<Case> cases;
            for (std::int64_t n : {1, 2, 255, 256, 257, 1000, 5 * 256})
              for (Fill fill : {Fill::normal, Fill::positive, Fill::wide, Fill::one_nan, Fill::constant_rows})
                cases.push_back({{n}, DType::f32, {}, Layout::contiguous, fill});
            for (Layout layout : {Layout::strided_columns, Layout::reversed})
              cases.push_back({{700}, DType::f32, {}, layout});
            return cases;
          },
      .bench =
          [] {
            BenchCases b;
            b.cache.push_back({{1 << 16}, DType::f32, {}});
            b.memory.push_back({{1 << 26}, DType::f32, {}});
            b.gpu.push_back({{1 << 26}, DType::f32, {}});
            return b;
          },
      .standard_shape = [](const Shape& rows_columns) { return Shape{rows_columns.back()}; },
  };
  return spec;
}

/// A case's shape is {…, M, K, N}. Both sides of each tile and of few rows; blocks as long as rows, longer,
/// and shorter; rows that begin within a block or a byte.
inline std::vector<Case> gemm_nf4_cases() {
  std::vector<Case> cases;
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    const auto add = [&](Shape shape, std::map<std::string, double> its = {},
                         Layout layout = Layout::contiguous, Fill fill = Fill::normal) {
      cases.push_back({std::move(shape), type, std::move(its), layout, fill});
    };
    add({5, 192, 70});
    add({20, 41, 33}, {{"block", 32}});
    for (std::int64_t m : {1, 2, 4, 8, 9, 16, 17, 64, 65, 130}) add({m, 256, 80}, {{"bias", double(m % 2)}});
    add({70, 32, 33});  // small, of more than few rows
    // A GPU's large tiles; few rows over several slabs of K.
    for (std::int64_t k : {96, 130}) add({104, k, 200});
    for (std::int64_t m : {3, 33})
      for (std::int64_t k : {512, 544, 1536}) add({m, k, 70});
    for (std::int64_t k : {1, 2, 31, 32, 33, 63, 64, 65, 96, 130, 160, 1056})
      for (std::int64_t m : {3, 18}) add({m, k, 37});
    for (double block : {32., 128., 1024., 4096.})
      for (std::int64_t m : {2, 70}) add({m, 320, 51}, {{"block", block}});
    for (const Shape& shape :
         {Shape{1, 1, 1}, Shape{5, 0, 7}, Shape{0, 64, 7}, Shape{5, 64, 0}, Shape{1, 64, 1},
          Shape{2, 3, 64, 40}, Shape{3, 20, 128, 40}, Shape{2, 2, 5, 6, 7}, Shape{2, 0, 64, 4}})
      add(shape);
    for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::transposed,
                          Layout::broadcast}) {
      add({3, 17, 64, 33}, {{"bias", 1}, {"B", 1}}, layout);
      add({19, 50, 60}, {}, layout);
    }
    for (Fill fill : {Fill::wide, Fill::constant_rows, Fill::zeros, Fill::denormals, Fill::huge,
                      Fill::one_nan, Fill::one_infinity})
      add({6, 128, 40}, {}, Layout::contiguous, fill);
  }
  return cases;
}

inline Spec gemm_nf4_spec() {
  Spec spec = spec_of(
      {.function = "gemm_nf4",
       .oracle = oracles<GemmNf4Oracle, true>(),
       .tolerance = {
           .c = 2,
           .chain = [](const Case& c, std::string_view) { return double(c.shape[c.shape.size() - 2]) + 1; },
           .accumulator = [](const Case&) { return DType::f32; },
           .reason = "one chain of K fused multiply-adds; on an ISA without them each rounds twice"},
       .independent = "M"});
  spec.largest_exponent = 56;  // products of two stay numbers
  spec.flops = [](const Case& c) {
    Case y = c;
    y.shape.erase(y.shape.end() - 2);
    return double(nf4_size(y)) * (2 * double(c.shape[c.shape.size() - 2]) + c.parameter("bias", 1));
  };
  spec.cases = gemm_nf4_cases;
  spec.adjust = [](Case& c) {  // of random numbers the power of two below
    const double block = std::clamp(c.parameter("block", 64), 32., 4096.);
    c.parameters["block"] = std::isfinite(block) ? std::exp2(std::floor(std::log2(block))) : 64;
  };
  spec.bench = [] {
    BenchCases b;
    for (DType type : {DType::bf16, DType::f32})
      for (std::int64_t m : {1, 4, 16, 128}) b.cache.push_back({{m, 4096, 4096}, type, {{"bias", 0}}});
    for (DType type : {DType::bf16, DType::f16, DType::f32})
      for (std::int64_t m : {1, 4, 16, 64, 512})
        for (const Shape& w : {Shape{4096, 4096}, Shape{8192, 8192}, Shape{4096, 14336}})
          if (type == DType::bf16 || w[1] == 8192) b.gpu.push_back({{m, w[0], w[1]}, type, {{"bias", 0}}});
    return b;
  };
  spec.huge_case = [] { return Case{{1048577, 2112, 5}, DType::bf16, {{"bias", 0}}}; };
  return spec;
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
  return {quantize, dequantize, nf4_scales_spec(true), nf4_scales_spec(false), gemm_nf4_spec()};
}

}  // namespace rooftile::harness
