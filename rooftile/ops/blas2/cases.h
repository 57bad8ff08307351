#pragma once
#include <algorithm>

#include "rooftile/harness/letters.h"
#include "rooftile/ops/blas2/blas2.h"
#include "rooftile/ops/blas2/oracle.h"

namespace rooftile::harness {

inline DType blas2_accumulator(const Case& c) { return c.dtype == DType::f64 ? DType::f64 : DType::f32; }
inline double blas2_width(const Case& c) { return bits(c.dtype) / 8.0; }
inline double blas2_rows(const Case& c) { return static_cast<double>(c.shape[0]); }
inline double blas2_columns(const Case& c) { return static_cast<double>(c.shape[1]); }

/// The additions behind one another in the longest chain of a sum of n: in a lane, across the lanes and over
/// the chunks. Lanes: the fewest that a kernel has, a chunk the longest.
inline double blas2_chain(const Case& c, double n) {
  const double chunk = std::fmin(std::fmax(n, 1), 16384);
  // 16-bit numbers around the smallest normal one are a handful of values, whose products round alike at each
  // step; and of one value throughout all do.
  const bool alike = c.fill == Fill::constant_rows || (c.fill == Fill::denormals && c.dtype != DType::f64);
  const double lane = std::ceil(chunk / (c.dtype == DType::f64 ? 8 : 16));
  return (alike ? lane * lane : lane) + 8 + std::ceil(n / 1024) * (c.dtype == DType::f64 ? 1 : 0);
}

/// A's shape is {M, N}. Both sides of each vector, of a block of rows, of a chunk; tall, wide, empty.
inline std::vector<Case> blas2_cases(const std::vector<std::map<std::string, double>>& options) {
  using Options = std::map<std::string, double>;
  std::vector<Case> cases;
  for (DType type : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const auto add = [&](Shape shape, Options its = {}, Layout layout = Layout::contiguous,
                         Fill fill = Fill::normal, std::int64_t offset = 0, bool in_place = false) {
      cases.push_back({std::move(shape), type, std::move(its), layout, fill, offset, in_place});
    };
    // By rows, and by columns over two chunks of a GPU: what a quick check tries.
    add({33, 70}, options[0]);
    add({70, 1100}, options[0], Layout::transposed);
    for (const Options& its : options) add({33, 70}, its);
    for (const Options& its : options) add({70, 130}, its, Layout::transposed);
    add({40, 24}, options[0], Layout::contiguous, Fill::normal, 0, true);
    add({40, 24}, options[0], Layout::transposed, Fill::normal, 0, true);
    for (Shape shape : {Shape{1, 1}, Shape{3, 0}, Shape{0, 3}, Shape{1, 130}, Shape{130, 1}, Shape{17, 64},
                        Shape{65, 7}, Shape{7, 1025}, Shape{300, 3}, Shape{4, 2049}}) {
      add(shape, options[0]);
      add(shape, options[0], Layout::transposed);
    }
    // Square: where x and y have changed places, shapes do not tell.
    for (Layout layout : {Layout::contiguous, Layout::transposed}) add({24, 24}, options[0], layout);
    // Very wide and very tall: more than a chunk of a CPU, a round of a GPU; more than a block of rows.
    for (Layout layout : {Layout::contiguous, Layout::transposed}) {
      add({3, 33000}, {}, layout);
      add({33000, 3}, {}, layout);
    }
    for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::broadcast})
      add({37, 81}, options[0], layout);
    for (std::int64_t offset : {1, 3}) add({9, 129}, options[0], Layout::offset, Fill::normal, offset);
    for (Fill fill : {Fill::wide, Fill::positive, Fill::constant_rows, Fill::zeros, Fill::denormals,
                      Fill::one_infinity, Fill::one_nan, Fill::huge}) {
      add({20, 150}, options[0], Layout::contiguous, fill);
      add({20, 150}, options[0], Layout::transposed, fill);
    }
  }
  return cases;
}

inline BenchCases blas2_bench(const std::map<std::string, double>& options) {
  BenchCases b;
  for (DType type : {DType::f32, DType::bf16, DType::f64, DType::f16}) {
    for (Layout layout : {Layout::contiguous, Layout::transposed}) {
      b.cache.push_back({{256, 512}, type, options, layout});
      for (Shape shape : {Shape{16384, 4096}, Shape{64, 1 << 20}, Shape{1 << 20, 64}}) {
        b.memory.push_back({shape, type, options, layout});
        b.gpu.push_back({shape, type, options, layout});
      }
    }
  }
  return b;
}

/// What is common to all four.
inline Spec blas2_spec(const SpecParts& parts) {
  Spec spec = spec_of(parts);
  spec.largest_exponent = 56;  // products of two, and their sums, stay numbers
  return spec;
}

inline Spec gemv_spec() {
  Spec spec = blas2_spec(
      {.function = "gemv",
       .oracle = oracles<GemvOracle, true>(),
       .tolerance = {.c = 3,
                     .chain = [](const Case& c,
                                 std::string_view) { return blas2_chain(c, blas2_columns(c)); },
                     .accumulator = blas2_accumulator,
                     .reason = "sums of lanes and of chunks, fused where the ISA has that; two factors"},
       .independent = "M",
       .absent = {"c"}});
  spec.flops = [](const Case& c) {
    return blas2_rows(c) * (2 * blas2_columns(c) + 1 + (blas2_beta(c) != 0 ? 2 : 0));
  };
  spec.bytes = [its = spec.bytes](const Case& c) {
    const bool unread = c.parameter("c") != 0 && blas2_beta(c) == 0;
    return its(c) - (unread ? blas2_rows(c) * blas2_width(c) : 0);
  };
  spec.cases = [] {
    std::vector<Case> cases = blas2_cases({{{"alpha", 0.7}, {"beta", -0.3}, {"c", 1}},
                                           {},
                                           // flashinfer 4724: beta = 0, C full of NaN, every layout.
                                           {{"beta", 0}, {"c", 1}},
                                           {{"beta", 1e-60}, {"c", 1}}});
    for (DType type : {DType::f32, DType::f64, DType::f16, DType::bf16})
      for (Layout layout :
           {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::broadcast})
        cases.push_back({{30, 41}, type, {{"c", 1}}, layout});
    return cases;
  };
  // c that is not read holds NaN.
  spec.prepare = [](const Case& c, Arrays<double>& inputs) {
    if (blas2_beta(c) == 0 && inputs.has("c"))
      for (double& value : inputs["c"].values()) value = std::nan("");
  };
  spec.refuses = [](const Case& c) -> const char* {
    return blas2_beta(c) != 0 && c.parameter("c") == 0 ? "c is absent" : nullptr;
  };
  spec.bench = [] { return blas2_bench({}); };
  spec.huge_case = [] { return Case{{40000, 53700}, DType::bf16, {}}; };
  return spec;
}

inline Spec geru_spec() {
  Spec spec = blas2_spec(
      {.function = "geru",
       .oracle = oracles<GeruOracle, true>(),
       .tolerance = {.c = 3,
                     .chain = [](const Case&, std::string_view) { return 1.; },
                     .accumulator = blas2_accumulator,
                     .reason = "x·y, alpha times that, the sum where there are no fused multiply-adds"},
       .independent = "MN"});
  spec.flops = [](const Case& c) {
    return blas2_rows(c) * blas2_columns(c) * (c.parameter("c", 1) != 0 ? 3 : 2);
  };
  spec.cases = [] { return blas2_cases({{{"alpha", 0.7}}, {}, {{"c", 0}, {"alpha", -3}}, {{"alpha", 0}}}); };
  spec.bench = [] { return blas2_bench({}); };
  return spec;
}

inline Spec gemv_backward_spec() {
  Spec spec = blas2_spec(
      {.function = "gemv_backward",
       .oracle = oracles<GemvBackwardOracle, true>(),
       .tolerance = {.c = 3,
                     .chain = [](const Case& c, std::string_view) { return blas2_chain(c, blas2_rows(c)); },
                     .accumulator = blas2_accumulator,
                     .reason = "as gemv of A's transpose; a product of three"}});
  spec.flops = [](const Case& c) {
    const double all = blas2_rows(c) * blas2_columns(c);
    return (c.parameter("da", 1) != 0 ? 2 * all : 0) + (2 * all + blas2_columns(c)) +
           (c.parameter("dc", 1) != 0 && blas2_beta(c) != 0 ? blas2_rows(c) : 0);
  };
  spec.bytes = [its = spec.bytes](const Case& c) {  // x is read for da
    return its(c) - (c.parameter("da", 1) != 0 ? 0 : blas2_columns(c) * blas2_width(c));
  };
  spec.cases = [] {
    return blas2_cases({{{"alpha", 0.7}, {"beta", -0.3}, {"c", 1}},  // "c": the forward has one
                        {{"beta", 1}},
                        {{"da", 0}, {"dc", 0}},
                        {{"dc", 0}, {"alpha", -3}}});
  };
  spec.bench = [] { return blas2_bench({{"dc", 0}}); };
  return spec;
}

inline Spec geru_backward_spec() {
  Spec spec =
      blas2_spec({.function = "geru_backward",
                  .oracle = oracles<GeruBackwardOracle, true>(),
                  .tolerance = {.c = 3,
                                .chain =
                                    [](const Case& c, std::string_view) {
                                      return blas2_chain(c, std::fmax(blas2_rows(c), blas2_columns(c)));
                                    },
                                .accumulator = blas2_accumulator,
                                .reason = "as gemv of dA and of its transpose"}});
  spec.flops = [](const Case& c) {
    const double all = 2 * blas2_rows(c) * blas2_columns(c);
    return all + blas2_rows(c) + (c.parameter("dy", 1) != 0 ? all + blas2_columns(c) : 0);
  };
  spec.bytes = [its = spec.bytes](const Case& c) {  // x is read for dy
    return its(c) - (c.parameter("dy", 1) != 0 ? 0 : blas2_rows(c) * blas2_width(c));
  };
  spec.cases = [] { return blas2_cases({{{"alpha", 0.7}, {"dc", 0}}, {}, {{"dy", 0}, {"dc", 0}}}); };
  spec.excuses = {{"input da", "dc is dA", nullptr, "dc"}, {"lower_precision", "dc is dA", nullptr, "dc"}};
  spec.bench = [] { return blas2_bench({{"dc", 0}}); };
  return spec;
}

inline std::vector<Spec> blas2_specs() {
  return {gemv_spec(), gemv_backward_spec(), geru_spec(), geru_backward_spec()};
}

}  // namespace rooftile::harness
