#pragma once
#include <algorithm>

#include "rooftile/harness/letters.h"
#include "rooftile/ops/gemm_scaled/gemm_scaled.h"
#include "rooftile/ops/gemm_scaled/oracle.h"

namespace rooftile::harness {

/// A case's shape is {…, M, K, N}. "P" and "Q", a's and b's codes: 0 f8e4m3, 1 f8e5m2, 2 i8. "turned": b and
/// its scales are kept by columns, as a weight {N, K} is. "saturated": each code is the largest. "nan",
/// "infinite": one code is that.
inline std::vector<Case> gemm_scaled_cases() {
  std::vector<Case> cases;
  using Parameters = std::map<std::string, double>;
  int next = 0;
  const auto add = [&](Shape shape, Parameters its = {}, Layout layout = Layout::contiguous,
                       Fill fill = Fill::normal, std::int64_t offset = 0) {
    constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};
    its.insert({"bias", double(next / 3 % 2)});
    cases.push_back({std::move(shape), kTypes[next % 3], std::move(its), layout, fill, offset});
    ++next;
  };
  constexpr double kPairs[][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 2}};
  for (const auto& [p, q] : kPairs) {
    const auto with = [p = p, q = q](Parameters more = {}) {
      more.insert({{"P", p}, {"Q", q}});
      return more;
    };
    // Squares, of which scales must not be exchanged; blocks with tails, and of both sides of a GPU's stage.
    for (double block : {128., 32., 64., 100., 7., 1000.}) add({20, 256 + 9, 70}, with({{"block", block}}));
    for (int k = 0; k < 3; ++k) add({24, 200, 24}, with());
    add({128, 256, 128}, with({{"block_n", 128}}));
    add({130, 300, 257}, with({{"block_n", 128}}));
    add({128, 512, 256}, with({{"block", 512}}));
    for (std::int64_t m : {1, 2, 3, 8, 13, 17, 65}) add({m, 256, 80}, with({{"block_n", double(m % 3 + 1)}}));
    for (std::int64_t k : {1, 2, 3, 15, 16, 17, 31, 33, 63, 65, 127, 129, 383}) add({5, k, 37}, with());
    for (const Shape& shape :
         {Shape{1, 1, 1}, Shape{5, 0, 7}, Shape{0, 64, 7}, Shape{5, 64, 0}, Shape{1, 300, 1},
          Shape{2, 3, 64, 40}, Shape{3, 20, 160, 40}, Shape{2, 2, 5, 136, 7}, Shape{2, 0, 64, 4}})
      add(shape, with());
    for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::transposed,
                          Layout::broadcast}) {
      add({3, 17, 140, 33}, with(), layout);
      add({70, 200, 90}, with({{"block", 48}, {"block_n", 40}}), layout);
      add({128, 160, 128}, with({{"block", 200}}), layout);
    }
    // A weight's order; a GPU's large tiles, of many blocks and of one, with each dtype.
    for (double block : {128., 48., 512.})
      for (double block_n : {1., 128., 300.})
        add({129, 160, 257}, with({{"turned", 1}, {"block", block}, {"block_n", block_n}}));
    // More slices than Hopper's ring holds, of several blocks and of one; a tail.
    for (double block : {128., 2000.})
      add({130, 1040, 140}, with({{"turned", 1}, {"block", block}, {"block_n", block < 200 ? 1 : 15}}));
    for (std::int64_t k : {40, 131}) add({2, 17, k, 33}, with({{"turned", 1}}));
    // Few rows: both halves of a fragment, blocks of less than a GPU's stage and of several.
    for (std::int64_t m : {1, 7, 9, 16})
      for (double block : {16., 112., 128., 400.})
        add({m, 304, 20 + m * 3}, with({{"turned", 1}, {"block", block}, {"block_n", double(m)}}));
    add({3, 5, 1056, 40}, with({{"turned", 1}}));
    add({5, 0, 7}, with({{"turned", 1}, {"bias", 1}}));
    for (std::int64_t m : {1, 70}) add({m, 264, 50}, with({{"turned", 1}, {"block", 40}}));
    for (std::int64_t offset : {1, 2, 4, 8}) add({66, 256, 66}, with(), Layout::offset, Fill::normal, offset);
    add({9, 300, 20}, with({{"saturated", 1}}));
    add({9, 304, 20}, with({{"saturated", 1}, {"turned", 1}}));
    if (p == 2) continue;
    for (Fill fill : {Fill::wide, Fill::constant_rows, Fill::zeros, Fill::denormals, Fill::huge,
                      Fill::one_nan, Fill::one_infinity})
      add({6, 200, 40}, with(), Layout::contiguous, fill);
    for (double turned : {0., 1.}) {
      add({6, 256, 40}, with({{"nan", 1}, {"turned", turned}}));
      if (p == 1) add({6, 256, 40}, with({{"infinite", 1}, {"turned", turned}}));
    }
  }
  for (double p : {0., 1., 2.}) add({3, 40, 5}, {{"P", p}, {"Q", p == 2 ? 0. : 2.}});  // refused
  return cases;
}

/// Operands of a case that are kept turned change their last two dimensions, and back for the call.
inline void gemm_scaled_turns(Spec& spec) {
  const auto turns = [](const Case& c, std::string_view name) {
    return c.parameter("turned") != 0 && (name == "b" || name == "scale_b");
  };
  spec.operands = [operands = spec.operands, turns](const Case& c) {
    std::vector<Operand> list = operands(c);
    for (Operand& o : list)
      if (turns(c, o.name)) std::swap(o.shape[o.shape.size() - 1], o.shape[o.shape.size() - 2]);
    return list;
  };
  const auto turned = [turns](const Case& c, const Arguments& given) {
    Arguments arguments = given;
    for (const char* name : {"b", "scale_b"}) {
      View v = given.out(name);
      if (!turns(c, name)) continue;
      std::swap(v.shape[v.rank - 1], v.shape[v.rank - 2]);
      std::swap(v.stride[v.rank - 1], v.stride[v.rank - 2]);
      arguments.add(name, v);
    }
    return arguments;
  };
  spec.call = [call = spec.call, turned](const Queue& queue, const Case& c, const Arguments& given,
                                         const char* variant, Workspace workspace) {
    return call(queue, c, turned(c, given), variant, workspace);
  };
  spec.workspace = [its = spec.workspace, turned](const Queue& queue, const Case& c, const Arguments& given,
                                                  std::size_t& bytes) {
    return its(queue, c, turned(c, given), bytes);
  };
  spec.options.push_back({"turned"});
}

/// Codes that a case names.
inline void gemm_scaled_prepare(const Case& c, Arrays<double>& inputs) {
  constexpr double kLargest[] = {448, 57344, 127};
  if (c.parameter("saturated") != 0) {
    for (double& v : inputs["a"].values()) v = std::copysign(kLargest[int(c.parameter("P"))], v);
    for (double& v : inputs["b"].values()) v = std::copysign(kLargest[int(c.parameter("Q"))], v);
  }
  if (c.parameter("nan") != 0) inputs["a"].values()[3] = inputs["b"].values()[7] = std::nan("");
  if (c.parameter("infinite") != 0) inputs["a"].values()[5] = HUGE_VAL;
}

/// Of i8 a block's sum is exact: it is rounded once, as each total is.
inline double gemm_scaled_chain(const Case& c) {
  const auto k = double(c.shape[c.shape.size() - 2]);
  return (c.parameter("P") == 2 ? std::ceil(k / c.parameter("block", 128)) : k) + 2;
}

/// Hopper's f8 instruction cuts 32 products, the sum before them and its result, each at 2^-13 of the largest
/// at most; no sum of 128 of K, four instructions, is larger than its terms' sizes.
inline double gemm_scaled_cuts(const Case&, std::string_view variant) {
  return variant == "wgmma_f8" ? 4 * 34 * 0x1p-13 : 0;
}

inline std::vector<Spec> gemm_scaled_specs() {
  Spec spec = spec_of(
      {.function = "gemm_scaled",
       .oracle = oracles<GemmScaledOracle>(),
       .tolerance = {.c = 2,
                     .chain = [](const Case& c, std::string_view) { return gemm_scaled_chain(c); },
                     .accumulator = [](const Case&) { return DType::f32; },
                     .factor_rounding = gemm_scaled_cuts,
                     .reason =
                         "chains of fused multiply-adds, K of them, which of i8 are exact, and one for each "
                         "block; on an ISA without them each rounds twice"},
       .independent = "M"});
  gemm_scaled_turns(spec);
  spec.largest_exponent = 28;  // products of four stay numbers
  spec.flops = [](const Case& c) {
    const std::size_t rank = c.shape.size();
    const auto k = double(c.shape[rank - 2]);
    double y = double(c.shape[rank - 1]);
    for (std::size_t d = 0; d + 2 < rank; ++d) y *= double(c.shape[d]);
    return y * (2 * k + 2 * std::ceil(k / c.parameter("block", 128)) + c.parameter("bias", 1));
  };
  spec.multiplies = [](const Case& c) { return c.parameter("P") == 2 ? DType::i8 : DType::f8e4m3; };
  spec.cases = gemm_scaled_cases;
  spec.prepare = gemm_scaled_prepare;
  spec.refuses = [](const Case& c) {
    return (c.parameter("P") == 2) != (c.parameter("Q") == 2) ? "neither" : nullptr;
  };
  // Of random formats those that fit; blocks, of which random ones are 1 to 4, of all lengths.
  spec.adjust = [](Case& c) {
    if ((c.parameter("P") == 2) != (c.parameter("Q") == 2)) c.parameters["Q"] = c.parameter("P");
    const auto longer = [&](const char* name, double otherwise, double two, double three) {
      const double its = c.parameter(name, otherwise);
      c.parameters[name] = its == 2 ? two : its == 3 ? three : its == 4 ? 4096 : its;
    };
    longer("block", 128, 32, 100);
    longer("block_n", 1, 16, 48);
  };
  spec.bench = [] {
    BenchCases b;
    for (const Shape& shape :
         {Shape{128, 4096, 4096}, Shape{1, 4096, 4096}, Shape{16, 4096, 4096}, Shape{1024, 1024, 1024}})
      b.cache.push_back({shape, DType::bf16, {{"bias", 0}, {"turned", 1}}});
    b.cache.push_back({{128, 4096, 4096}, DType::bf16, {{"bias", 0}, {"turned", 1}, {"P", 2}, {"Q", 2}}});
    for (std::int64_t m : {1, 16, 64, 512, 4096})
      for (const Shape& w : {Shape{4096, 4096}, Shape{8192, 8192}})
        for (double block : {128., 8192.})
          b.gpu.push_back({{m, w[0], w[1]}, DType::bf16, {{"bias", 0}, {"block", block}, {"turned", 1}}});
    for (const std::int64_t n : {4096, 8192})  // DeepSeek's squares
      b.gpu.push_back(
          {{4096, n, n}, DType::bf16, {{"bias", 0}, {"block", 128}, {"block_n", 128}, {"turned", 1}}});
    for (std::int64_t m : {1, 16, 64, 512, 4096})
      for (double block : {128., 4096.})
        b.gpu.push_back({{m, 4096, 4096},
                         DType::bf16,
                         {{"bias", 0}, {"turned", 1}, {"block", block}, {"P", 2}, {"Q", 2}}});
    return b;
  };
  spec.huge_case = [] { return Case{{1048577, 2112, 5}, DType::bf16, {{"bias", 0}}}; };
  return {spec};
}

}  // namespace rooftile::harness
