#pragma once
#include <algorithm>
#include <cmath>

#include "rooftile/harness/letters.h"
#include "rooftile/ops/int4/int4.h"
#include "rooftile/ops/int4/oracle.h"

namespace rooftile::harness {

/// A case's shape is {…, K}. "S": the scales' dtype; "zeros": 1 where they are there.
inline std::vector<Case> int4_cases() {
  std::vector<Case> cases;
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    int next = 0;
    const auto add = [&](Shape shape, std::map<std::string, double> its = {},
                         Layout layout = Layout::contiguous, Fill fill = Fill::normal) {
      its.insert({{"S", double(next % 3)}, {"zeros", double(next / 3 % 2)}});
      cases.push_back({std::move(shape), type, std::move(its), layout, fill});
      ++next;
    };
    // Groups of AWQ and GPTQ, of a whole row, longer, with tails; rows that end within a byte.
    for (double group : {32., 64., 128., 1024., 2., 6., 50.})
      for (const Shape& shape : {Shape{3, 256}, Shape{2, 3, 200}, Shape{5, 131}})
        for (double zeros : {0., 1.}) add(shape, {{"group", group}, {"zeros", zeros}});
    for (std::int64_t k : {1, 2, 3, 7, 8, 9, 31, 33, 127, 128, 129, 4095, 4097, 9000})
      for (double zeros : {0., 1.}) add({2, k}, {{"group", k > 4000 ? 8192. : 128.}, {"zeros", zeros}});
    for (const Shape& shape : {Shape{256}, Shape{0, 64}, Shape{3, 0}, Shape{2, 0, 5}, Shape{1, 1}})
      add(shape);
    for (Layout layout : {Layout::transposed, Layout::reversed, Layout::padded_rows, Layout::strided_columns})
      for (double zeros : {0., 1.}) add({3, 7, 130}, {{"group", 32}, {"zeros", zeros}}, layout);
    // A group of zeros; of one sign, as after an activation; of numbers that f16 scales lose.
    for (Fill fill : {Fill::zeros, Fill::positive, Fill::wide, Fill::denormals, Fill::huge,
                      Fill::constant_rows, Fill::one_nan, Fill::one_infinity})
      for (double scales : {0., 1., 2.})
        for (double zeros : {0., 1.})
          add({5, 64}, {{"group", 32}, {"S", scales}, {"zeros", zeros}}, Layout::contiguous, fill);
  }
  return cases;
}

inline BenchCases int4_bench() {
  BenchCases b;
  for (DType type : {DType::bf16, DType::f32}) {
    b.cache.push_back({{256, 512}, type, {{"zeros", 1}}});
    b.memory.push_back({{16384, 4096}, type, {{"zeros", 1}}});
    b.gpu.push_back({{16384, 8192}, type, {{"zeros", 1}}});
  }
  return b;
}

/// Of random groups, which are 2 to 5, those of all kinds; even ones of others.
inline void int4_adjust(Case& c) {
  const double its = c.parameter("group", 128);
  c.parameters["group"] = its == 3 ? 32 : its == 4 ? 64 : its == 5 ? 4096 : 2 * std::floor(its / 2);
}

inline Spec int4_rows_spec(bool quantizes) {
  Spec spec =
      spec_of({.function = quantizes ? "quantize_int4" : "dequantize_int4",
               .oracle = quantizes ? oracles<QuantizeInt4Oracle>() : oracles<DequantizeInt4Oracle>(),
               .tolerance = {.exact = true,
                             .reason = quantizes ? "each operation is rounded as IEEE says, and then compared"
                                                 : "one exact difference, one product, each rounded once"},
               .independent = "",
               .absent = {"zeros"}});
  spec.flops = [](const Case&) { return 0.; };
  spec.adjust = int4_adjust;
  spec.cases = int4_cases;
  spec.bench = int4_bench;
  return spec;
}

/// A case's shape is {…, M, K, N}. Both sides of each tile and of few rows; groups as long as rows, longer,
/// and shorter than a run; rows that end within a byte.
inline std::vector<Case> gemm_int4_cases() {
  std::vector<Case> cases;
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    int next = 0;
    const auto add = [&](Shape shape, std::map<std::string, double> its = {},
                         Layout layout = Layout::contiguous, Fill fill = Fill::normal) {
      its.insert({{"S", double(next % 3)}, {"zeros", double(next / 3 % 2)}, {"bias", double(next / 2 % 2)}});
      cases.push_back({std::move(shape), type, std::move(its), layout, fill});
      ++next;
    };
    for (std::int64_t m : {1, 2, 4, 8, 9, 16, 17, 64, 65, 130}) add({m, 256, 80});
    add({70, 32, 33});  // small, of more than few rows
    // A GPU's large tiles; few rows over several slabs of K.
    for (std::int64_t k : {96, 130}) add({104, k, 200});
    for (std::int64_t m : {3, 33})
      for (std::int64_t k : {512, 544, 1536}) add({m, k, 70}, {{"group", 64}});
    for (std::int64_t k : {1, 2, 31, 32, 33, 63, 64, 65, 96, 130, 160, 1056})
      for (std::int64_t m : {3, 18}) add({m, k, 37}, {{"group", 32}});
    // In runs: 32, 96 (no power of two), rows; groups that end within a run.
    for (double group : {32., 96., 128., 320., 4096., 16., 50.})
      for (std::int64_t m : {2, 70})
        for (double zeros : {0., 1.}) add({m, 320, 51}, {{"group", group}, {"zeros", zeros}});
    for (const Shape& shape :
         {Shape{1, 1, 1}, Shape{5, 0, 7}, Shape{0, 64, 7}, Shape{5, 64, 0}, Shape{1, 64, 1},
          Shape{2, 3, 64, 40}, Shape{3, 20, 128, 40}, Shape{2, 2, 5, 6, 7}, Shape{2, 0, 64, 4}})
      add(shape);
    for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::transposed,
                          Layout::broadcast})
      for (double zeros : {0., 1.}) {
        add({3, 17, 64, 33}, {{"group", 32}, {"zeros", zeros}}, layout);
        add({19, 50, 60}, {{"zeros", zeros}}, layout);
      }
    // No constant rows: zeros of u8 give all terms one sign, and equal ones round alike.
    for (Fill fill :
         {Fill::wide, Fill::zeros, Fill::denormals, Fill::huge, Fill::one_nan, Fill::one_infinity})
      add({6, 128, 40}, {{"group", 32}}, Layout::contiguous, fill);
  }
  return cases;
}

inline Spec gemm_int4_spec() {
  Spec spec = spec_of(
      {.function = "gemm_int4",
       .oracle = oracles<GemmInt4Oracle, true>(),
       .tolerance = {
           .c = 2,
           .chain = [](const Case& c, std::string_view) { return double(c.shape[c.shape.size() - 2]) + 1; },
           .accumulator = [](const Case&) { return DType::f32; },
           .reason = "one chain of K fused multiply-adds; on an ISA without them each rounds twice"},
       .independent = "M",
       .absent = {"zeros"}});
  spec.suits = [suits = spec.suits](const Case& c) { return c.shape.size() > 2 && suits(c); };  // there is N
  spec.largest_exponent = 52;  // products of two, one of them times a code, stay numbers
  spec.flops = [](const Case& c) {
    const std::size_t rank = c.shape.size();
    double y = double(c.shape[rank - 1]);
    for (std::size_t d = 0; d + 2 < rank; ++d) y *= double(c.shape[d]);
    return y * (2 * double(c.shape[rank - 2]) + c.parameter("bias", 1));
  };
  spec.adjust = int4_adjust;
  spec.cases = gemm_int4_cases;
  // Half of the cases' zeros are those of checkpoints, at most 16, the rest any number of u8.
  spec.prepare = [](const Case& c, Arrays<double>& inputs) {
    if (Array<double>* zeros = inputs.find("zeros"); zeros && c.shape.back() % 2 == 0)
      for (double& v : zeros->values()) v = std::fmod(v, 17);
  };
  spec.bench = [] {
    BenchCases b;
    const std::map<std::string, double> its = {{"bias", 0}, {"zeros", 1}, {"S", 1}};
    for (DType type : {DType::bf16, DType::f32})
      for (std::int64_t m : {1, 4, 16, 128}) b.cache.push_back({{m, 4096, 4096}, type, its});
    for (DType type : {DType::bf16, DType::f16, DType::f32})
      for (std::int64_t m : {1, 4, 16, 64, 512})
        for (const Shape& w : {Shape{4096, 4096}, Shape{8192, 8192}, Shape{4096, 14336}})
          if (type != DType::f32 || w[1] == 8192) b.gpu.push_back({{m, w[0], w[1]}, type, its});
    return b;
  };
  spec.huge_case = [] { return Case{{1048577, 2112, 5}, DType::bf16, {{"bias", 0}}}; };
  return spec;
}

inline std::vector<Spec> int4_specs() {
  return {int4_rows_spec(true), int4_rows_spec(false), gemm_int4_spec()};
}

}  // namespace rooftile::harness
