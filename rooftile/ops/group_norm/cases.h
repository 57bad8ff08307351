#pragma once
#include "rooftile/harness/letters.h"
#include "rooftile/ops/group_norm/group_norm.h"
#include "rooftile/ops/group_norm/oracle.h"

namespace rooftile::harness {

/// Letters N, C, S.
inline std::vector<Case> group_norm_cases(bool forward) {
  using Options = std::map<std::string, double>;
  std::vector<Case> cases;
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    const auto add = [&](Shape shape, double groups, Options options = {}, Layout layout = Layout::contiguous,
                         Fill fill = Fill::normal, std::int64_t offset = 0) {
      options["groups"] = groups;
      if (!forward)
        std::erase_if(options, [](const auto& o) { return o.first == "mean" || o.first == "rstd"; });
      cases.push_back({std::move(shape), type, std::move(options), layout, fill, offset});
    };
    // The first few sets of parameters are those that the harness varies everything else with.
    add({3, 20, 49}, 4);
    add({3, 20, 49}, 1, {{"weight", 0}, {"bias", 0}, {"W", 1}});
    add({3, 6, 49}, 2, {{"W", 1}, {"eps", 1e-3}, {"mean", 0}, {"D", 1}});
    add({4, 6, 196}, 2, {{"weight", 0}, {"dbias", 0}, {"rstd", 0}, {"W", 1}});
    add({4, 6, 196}, 6, {{"bias", 0}, {"dweight", 0}});  // instance normalisation
    for (Shape s :
         {Shape{2, 4, 2049}, Shape{1, 2, 12545}, Shape{40, 4, 3}, Shape{9, 64, 1}, Shape{2, 130, 16},
          Shape{1, 2, 1}, Shape{2, 64, 127}, Shape{0, 4, 4}, Shape{3, 0, 4}, Shape{3, 4, 0}})
      add(s, 2);
    for (Shape s : {Shape{2, 64, 200}, Shape{3, 33, 70}, Shape{30, 8, 9}})
      add(s, static_cast<double>(s[1]) / (s[1] == 33 ? 3 : 4), {}, Layout::transposed);
    for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::broadcast})
      add({3, 6, 70}, 3, {}, layout);
    for (std::int64_t offset : {1, 8}) add({2, 6, 300}, 2, {}, Layout::offset, Fill::normal, offset);
    for (Fill fill : {Fill::large_offset, Fill::constant_rows, Fill::wide, Fill::zeros, Fill::one_nan,
                      Fill::one_infinity})
      add({3, 4, 700}, 2, {}, Layout::contiguous, fill);
  }
  return cases;
}

inline BenchCases group_norm_bench() {
  BenchCases b;
  for (DType type : {DType::f32, DType::bf16, DType::f16}) {
    b.cache.push_back({{16, 8, 256}, type, {{"groups", 2}}});
    b.memory.push_back({{64, 256, 3136}, type, {{"groups", 32}}});
    b.gpu.push_back({{64, 256, 3136}, type, {{"groups", 32}}});
    b.gpu.push_back({{64, 256, 3136}, type, {{"groups", 32}}, Layout::transposed});
    b.gpu.push_back({{64, 256, 3136}, type, {{"groups", 256}}});
  }
  return b;
}

/// A segment's, 16 lanes of a CPU, and the lanes in halves.
inline double group_norm_chain(const Case& c, std::string_view) {
  return static_cast<double>((GroupCase(c).segments().part + 15) / 16 + 4);
}

inline Spec group_norm_spec(const char* function, const OracleFunctions& oracle, const char* reason,
                            bool forward) {
  Spec spec = spec_of({.function = function,
                       .oracle = oracle,
                       .tolerance = {.c = 4,
                                     .chain = group_norm_chain,
                                     .accumulator = [](const Case&) { return DType::f32; },
                                     .reason = reason},
                       .independent = "N"});
  spec.standard_shape = [](const Shape& s) { return Shape{s[0], 4, std::max<std::int64_t>(s[1] / 4, 1)}; };
  // groups divide C.
  spec.adjust = [](Case& c) {
    const auto groups =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(std::fmin(c.parameter("groups", 1), 9.)), 1, 9);
    c.parameters["groups"] = static_cast<double>(groups);
    c.shape[1] = c.shape[1] / groups * groups;
  };
  spec.bench = group_norm_bench;
  spec.cases = [=] { return group_norm_cases(forward); };
  spec.repeats = false;
  return spec;
}

inline std::vector<Spec> group_norm_specs() {
  static const auto elements = [](const Case& c) { return NormCase(c).elements(); };
  static const auto sets = [](const Case& c) {
    return static_cast<double>(GroupCase(c).n * GroupCase(c).groups);
  };
  static const auto given = [](const Case& c, const char* name) { return c.parameter(name, 1) != 0; };

  Spec forward =
      group_norm_spec("group_norm", oracles<GroupNormOracle>(),
                      "two sums of a segment; the shifted variance, its root and two products", true);
  forward.flops = [](const Case& c) {
    return elements(c) * (6 + given(c, "weight") + given(c, "bias")) + sets(c) * 5;
  };
  forward.largest_exponent = 50;
  forward.suits = [its = forward.suits](const Case& c) {
    return its(c) && (c.fill != Fill::denormals || c.parameter("eps", 1e-5) > 1e-30);
  };

  Spec backward = group_norm_spec("group_norm_backward", oracles<GroupNormBackwardOracle>(),
                                  "two sums of a segment, and three products", false);
  backward.flops = [](const Case& c) {
    return elements(c) * (9 + 2 * given(c, "weight") + 3 * given(c, "dweight") + given(c, "dbias")) +
           sets(c) * 4;
  };
  backward.largest_exponent = 16;
  // Of an infinity times a difference of 0 it is chance where the NaN begins.
  backward.suits = [its = backward.suits](const Case& c) {
    return its(c) && c.fill != Fill::masked && c.fill != Fill::one_infinity &&
           c.fill != Fill::minus_infinities;
  };
  return {forward, backward};
}

}  // namespace rooftile::harness
