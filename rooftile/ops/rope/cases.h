#pragma once
#include "rooftile/harness/letters.h"
#include "rooftile/harness/tensor.h"
#include "rooftile/ops/rope/oracle.h"
#include "rooftile/ops/rope/rope.h"

namespace rooftile::harness {

inline std::vector<Case> rope_cases() {
  using Options = std::map<std::string, double>;
  std::vector<Case> cases;
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    const auto add = [&](Shape shape, Options options = {}, Layout layout = Layout::contiguous,
                         Fill fill = Fill::normal, std::int64_t offset = 0, bool in_place = false) {
      cases.push_back({std::move(shape), type, std::move(options), layout, fill, offset, in_place});
    };
    // The first sets are those that bits, refusals, edges and gradients are checked with.
    add({2, 5, 3, 64, 1, 32}, {});
    add({2, 9, 2, 32, 2, 16}, {{"interleaved", 1}, {"positions", 1}});
    add({2, 3, 4, 96, 2, 32}, {{"rotary", 64}, {"attention_factor", 1.25}});
    add({2, 3, 2, 40, 1, 12}, {{"inv_freq", 1}, {"positions", 1}, {"I", 1}, {"interleaved", 1}});
    add({3, 4, 5, 24, 0, 12}, {{"offset", 131072}});
    // Reported elsewhere: position 15962 in bf16, whose angles must not be (candle 3520); D = 128 with 64
    // rotated, the rest untouched (vllm 43676).
    add({1, 3, 2, 128, 1, 64}, {{"offset", 15962}});
    add({1, 3, 2, 128, 1, 64}, {{"rotary", 64}, {"interleaved", 1}}, Layout::contiguous, Fill::normal, 0,
        true);
    // Where f32 has no digit of an angle left.
    for (double offset : {1000003., 16777217., 2147483000.})
      for (double interleaved : {0., 1.})
        add({1, 2, 1, 64, 1, 32}, {{"offset", offset}, {"interleaved", interleaved}, {"base", 500000}});
    // Tails of each vector, odd heads, no pair, nothing at all.
    for (std::int64_t d : {1, 2, 3, 6, 7, 8, 16, 18, 30, 48, 66, 80, 130, 256, 514})
      for (double interleaved : {0., 1.}) add({1, 3, 2, d, 1, d / 2}, {{"interleaved", interleaved}});
    for (Shape shape : {Shape{0, 3, 2, 8, 1, 4}, Shape{2, 0, 2, 8, 1, 4}, Shape{2, 3, 0, 8, 1, 4},
                        Shape{2, 3, 2, 0, 1, 0}, Shape{2, 3, 2, 8, 0, 4}, Shape{1, 1, 1, 8, 1, 0}})
      add(shape, {{"inv_freq", 1}});
    add({1, 2, 1, 9000, 1, 4400}, {{"inv_freq", 1}});  // more pairs than go at once
    add({1, 2, 1, 9000, 1, 4500}, {{"interleaved", 1}});
    // A block's tokens: many, and in a GPU's several parts of the multiprocessors.
    add({3, 2500, 1, 8, 1, 4}, {{"positions", 1}});
    add({1, 40, 3, 96, 1, 48}, {}, Layout::contiguous, Fill::wide);
    for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::transposed,
                          Layout::broadcast})
      for (double interleaved : {0., 1.})
        add({2, 6, 4, 48, 2, 20}, {{"interleaved", interleaved}, {"rotary", 40}, {"positions", 1}}, layout);
    for (Layout layout : {Layout::contiguous, Layout::transposed})
      for (double interleaved : {0., 1.})
        add({2, 6, 4, 48, 2, 24}, {{"interleaved", interleaved}}, layout, Fill::normal, 0, true);
    for (std::int64_t offset : {1, 3, 8})
      add({2, 3, 4, 64, 2, 32}, {{"interleaved", double(offset % 2)}}, Layout::offset, Fill::normal, offset);
    for (Fill fill : {Fill::one_infinity, Fill::one_nan, Fill::denormals, Fill::huge, Fill::zeros})
      add({2, 3, 2, 48, 1, 20}, {{"rotary", 40}, {"positions", 1}}, Layout::contiguous, fill);
    for (double factor : {0., 0.3, 1e-40, 1024.})
      add({1, 3, 2, 32, 1, 16}, {{"attention_factor", factor}, {"base", 1}});
  }
  return cases;
}

/// Positions as they are, and where no digit of f32 is left; frequencies of any sign up to 1.
inline void prepare_rope(const Case& c, Arrays<double>& inputs) {
  if (inputs.has("positions"))
    for (double& v : inputs["positions"].values()) v = std::fmod(v, v > 0 ? 0x1p31 : 5000);
  if (inputs.has("inv_freq")) {
    const RopeCase r(c);
    auto& values = inputs["inv_freq"].values();
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = std::pow(10000, -double(i) / double(std::max<std::int64_t>(r.pairs, 1))) *
                  (1 + 0x1p-6 * std::fmod(values[i], 8));
    for (double& v : values)
      if (!std::isfinite(v)) v = 0.5;
  }
}

inline Spec rope_spec(const char* function, const OracleFunctions& oracle) {
  Spec spec =
      spec_of({.function = function,
               .oracle = oracle,
               .tolerance = {.c = 4,
                             .chain = nullptr,
                             .accumulator = [](const Case&) { return DType::f32; },
                             .reason = "of a·cos - b·sin a cosine and a sine, each of half an ulp and a "
                                       "factor, and one rounding for each product and their sum"},
               .independent = "B",
               .absent = {"positions", "inv_freq"}});
  spec.cases = rope_cases;
  spec.flops = [](const Case& c) {
    const RopeCase r(c);
    return r.tokens() * double(r.pairs) * (3 + 6 * double(r.h + r.g));
  };
  spec.bench = [] {
    using Options = std::map<std::string, double>;
    BenchCases b;
    for (DType type : {DType::f32, DType::bf16}) {
      b.cache.push_back({{4, 8, 8, 64, 2, 32}, type, {}});
      for (double interleaved : {0., 1.}) {
        const Options options{{"interleaved", interleaved}};
        b.memory.push_back({{1, 8192, 32, 128, 8, 64}, type, options});
        b.gpu.push_back({{4, 4096, 32, 128, 8, 64}, type, options});
      }
      b.gpu.push_back({{1, 65536, 8, 128, 8, 64}, type, {}});
      b.gpu.push_back({{8, 4096, 32, 64, 32, 32}, type, {}});
    }
    return b;
  };
  spec.standard_shape = [](const Shape& rows_columns) {
    const std::int64_t rows = rows_columns[0], columns = rows_columns[1];
    return Shape{rows, 1 + columns % 3, 2, columns, 1 + columns % 2, columns / 2};
  };
  spec.prepare = prepare_rope;
  spec.largest_exponent = 116;  // times 1024 twice
  spec.suits = [](const Case& c) {
    const auto rotary = static_cast<std::int64_t>(c.parameter("rotary"));
    const std::int64_t d = c.shape[3], r = c.shape[5];
    if (rotary % 2 != 0 || rotary > d) return false;
    return c.parameter("inv_freq") == 0 || (2 * r <= d && (rotary == 0 || rotary == 2 * r));
  };
  // Most random cases make sense.
  spec.adjust = [](Case& c) {
    std::int64_t &d = c.shape[3], &r = c.shape[5];
    r = std::min(r, d / 2);
    double& rotary = c.parameters["rotary"];
    rotary = c.parameter("inv_freq") != 0 && rotary != 0 ? double(2 * r)
             : rotary != 0                               ? double(d / 2 / 2 * 2)
                                                         : 0;
  };
  return spec;
}

inline std::vector<Spec> rope_specs() {
  return {rope_spec("rope", oracles<RopeOracle<false>>()),
          rope_spec("rope_backward", oracles<RopeOracle<true>>())};
}

}  // namespace rooftile::harness
