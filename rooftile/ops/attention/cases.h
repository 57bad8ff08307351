#pragma once
#include "rooftile/harness/check/fill.h"
#include "rooftile/harness/letters.h"
#include "rooftile/harness/tensor.h"
#include "rooftile/ops/attention/attention.h"
#include "rooftile/ops/attention/oracle.h"

namespace rooftile::harness {

/// What both directions try. bias: 1 where there is one; A: 0 in q's dtype, 1 in f32. The first sets of
/// options are those that bits, refusals, edges and gradients are checked with.
inline std::vector<Case> attention_cases() {
  using Options = std::map<std::string, double>;
  const Options causal{{"causal", 1}}, window{{"window_left", 20}, {"window_right", 9}};
  std::vector<Case> cases;
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    const auto add = [&](std::int64_t b, std::int64_t s, std::int64_t t, std::int64_t h, std::int64_t g,
                         std::int64_t d, std::int64_t e, const Options& options = {},
                         Layout layout = Layout::contiguous, Fill fill = Fill::normal,
                         std::int64_t offset = 0) {
      cases.push_back({{b, s, h, d, t, g, e}, type, options, layout, fill, offset});
    };
    add(2, 65, 100, 2, 1, 16, 24);
    add(2, 100, 65, 4, 2, 40, 40, {{"causal", 1}, {"bias", 1}, {"A", 1}});
    add(2, 64, 130, 2, 2, 64, 64, {{"window_left", 3}, {"window_right", 1}, {"softcap", 2}, {"bias", 1}});
    add(2, 63, 63, 2, 2, 8, 16, {{"causal", 1}, {"window_left", 30}, {"scale", 0.25}});
    // Reported elsewhere: one key and many queries; no key at all; lengths 1; heads of v that differ; a
    // window with a right end alone; few queries of many keys.
    add(2, 34, 1, 2, 1, 64, 64, causal);
    add(2, 5, 0, 2, 2, 64, 64);
    add(1, 5, 0, 2, 2, 16, 8, causal);
    add(1, 1, 1, 1, 1, 16, 16, {}, Layout::contiguous, Fill::wide);
    add(1, 76, 1, 2, 2, 32, 32, causal);
    add(1, 40, 90, 2, 2, 72, 24, {{"window_right", 7}});
    add(1, 0, 33, 2, 1, 16, 16);
    add(0, 3, 3, 2, 1, 16, 16);
    // Lengths around a tile's, more than two tiles of keys, groups of three, one key head for all.
    add(1, 17, 300, 3, 1, 80, 80, causal);
    add(1, 130, 130, 6, 2, 64, 64, causal);
    add(1, 129, 97, 2, 2, 128, 128);
    add(1, 33, 50, 1, 1, 256, 256, causal);
    add(1, 20, 49, 1, 1, 200, 136, window);
    add(1, 7, 9, 1, 1, 1, 1);
    add(1, 9, 31, 1, 1, 3, 5, window);
    add(1, 1, 257, 4, 2, 64, 64, causal);
    add(1, 48, 96, 1, 1, 64, 256);
    add(1, 48, 96, 1, 1, 256, 8);
    // Whole rows masked by -inf of the bias alone; scores far from 0 on both sides; all alike.
    add(1, 19, 70, 2, 1, 16, 16, {{"bias", 1}}, Layout::contiguous, Fill::minus_infinities);
    add(1, 40, 70, 2, 1, 16, 16, causal, Layout::contiguous, Fill::wide);
    add(1, 9, 100, 1, 1, 64, 16, {}, Layout::contiguous, Fill::zeros);
    add(1, 40, 70, 2, 1, 16, 16, {{"softcap", 30}, {"scale", 4}});
    // Sinks: with groups and queries that see nothing; without keys; beside a cap; none of -inf.
    const auto sink = [](Options more) {
      more.insert({{"sink", 1}, {"dsink", 1}});
      return more;
    };
    add(2, 100, 65, 4, 2, 64, 64, sink({{"causal", 1}}));
    add(1, 5, 0, 2, 2, 16, 8, sink({{"P", 1}}));
    add(1, 19, 70, 2, 1, 24, 16, sink({{"bias", 1}, {"softcap", 2}, {"P", 1}}));
    add(1, 19, 70, 2, 1, 16, 16, sink({{"bias", 1}}), Layout::contiguous, Fill::minus_infinities);
    for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::transposed,
                          Layout::broadcast})
      add(2, 20, 100, 2, 1, 24, 24, {{"causal", 1}, {"bias", 1}, {"A", 1}}, layout);
    add(2, 50, 70, 2, 2, 64, 64, window, Layout::offset, Fill::normal, 3);
  }
  return cases;
}

/// Of -infinities the bias keeps its own; a backward gets what its forward gives.
inline void prepare_attention(const Case& c, Arrays<double>& inputs) {
  if (c.fill == Fill::wide)  // so far that weights are 0 and 1, not so far that a score has no digit left
    for (const char* name : {"q", "k", "sink"})
      if (inputs.has(name))
        for (double& v : inputs[name].values()) v = std::fmax(-8, std::fmin(8, v));
  for (auto& [name, array] : inputs.all())
    if (name != "bias" && name != "sink")
      for (double& v : array.values())
        if (std::isinf(v)) v = 0.5;
  if (!inputs.has("dy")) return;
  AttentionOracle::run(c, inputs);
}

/// Each operand's elements once, but for queries that see no key, keys that no query sees, and the pairs of a
/// bias that are not seen.
inline double attention_bytes(const Spec& spec, const Case& c) {
  const AttentionCase a(c);
  double bytes = 0;
  for (const Operand& o : spec.operands(c)) {
    const std::string_view name = o.name;
    double count = double(count_of(o.shape));
    if (name == "bias") count = a.pairs();
    if (name == "q") count = a.seeing() * double(a.b * a.h * a.d);
    if (name == "k") count = a.seen() * double(a.b * a.g * a.d);
    if (name == "v") count = a.seen() * double(a.b * a.g * a.e);
    bytes += count * bits(o.dtype) / 8;
  }
  return bytes;
}

/// For the harness's own shapes: keys are its columns.
inline Shape attention_shape(const Shape& rows_columns) {
  // Of many rows and of long ones as many as there are blocks in a sequence, and threads: pairs are their
  // product.
  const std::int64_t rows = rows_columns[0] > 16 ? 9 + rows_columns[0] % 8 : rows_columns[0],
                     columns = rows_columns[1] > 300 ? 130 + rows_columns[1] % 64 : rows_columns[1];
  return {rows, 1 + columns % 4, 2, 3 + columns % 6, columns, 1, 2 + columns % 7};
}

inline BenchCases attention_bench() {
  using Options = std::map<std::string, double>;
  BenchCases b;
  const auto self = [](std::int64_t batch, std::int64_t length, std::int64_t heads, std::int64_t keys,
                       std::int64_t d, DType type, const Options& options = {}) {
    return Case{{batch, length, heads, d, length, keys, d}, type, options};
  };
  const Options causal{{"causal", 1}};
  for (DType type : {DType::f32, DType::bf16}) {
    b.cache.push_back(self(1, 512, 2, 2, 64, type));
    b.memory.push_back(self(1, 2048, 8, 8, 64, type));
    b.memory.push_back(self(1, 2048, 8, 8, 128, type));
    b.memory.push_back(self(1, 2048, 8, 2, 128, type, causal));
  }
  for (std::int64_t length : {2048, 4096, 8192, 16384})
    for (std::int64_t d : {64, 128, 256})
      for (const Options& options : {Options{}, causal})
        b.gpu.push_back(self(16384 / length, length, 2048 / d, 2048 / d, d, DType::bf16, options));
  // Many short sequences: flops grow as bytes do.
  for (std::int64_t batch = 1; batch <= 2048; batch *= 2)
    b.sweep.push_back(self(batch, 30, 1, 1, 64, DType::f32));
  return b;
}

/// Heads a multiple of their groups, and of a length that the library takes.
inline void adjust_attention(Case& c) {
  std::int64_t &h = c.shape[2], &d = c.shape[3], &g = c.shape[5], &e = c.shape[6];
  g %= 4;
  h = g * (1 + h % 3);
  for (std::int64_t* size : {&d, &e}) *size = *size < 1 ? 1 : *size % 257 == 0 ? 256 : *size % 257;
}

inline Spec attention_spec(const char* function, const OracleFunctions& oracle, const char* reason) {
  Spec spec =
      spec_of({.function = function,
               .oracle = oracle,
               // Beside sums of products an exponential of 2 roundings, each a share of what the oracle
               // carries along.
               .tolerance = {.c = 1,
                             .chain =
                                 [](const Case& c, std::string_view) {
                                   return double(std::max({c.shape[1], c.shape[3], c.shape[4], c.shape[6]}));
                                 },
                             .accumulator = [](const Case&) { return DType::f32; },
                             .reason = reason},
               .independent = "B",
               .absent = {"bias", "sink", "dsink"}});
  spec.cases = attention_cases;
  spec.bench = attention_bench;
  spec.standard_shape = attention_shape;
  spec.prepare = prepare_attention;
  spec.adjust = adjust_attention;
  spec.largest_exponent = 3;  // scores stay where an exponential has digits
  // Scores of 1e30 have none left, and an lse of f32 is off by 1e22.
  // What is masked must be finite (attention.h): its weight of 0 times infinity is a NaN. Scores of a million
  // and more have no digit left behind the point in f32, and an exponential of them none at all. Below 1e-30
  // q times the scale leaves the normal numbers, and its digits.
  spec.suits = [its = spec.suits](const Case& c) {
    const double scale = c.parameter("scale");
    return its(c) && scale < 100 && (scale == 0 || scale >= 1e-30) && finite(c.fill) &&
           c.fill != Fill::large_offset && c.fill != Fill::huge && c.fill != Fill::huge_rows;
  };
  spec.bytes = [its = spec](const Case& c) { return attention_bytes(its, c); };
  return spec;
}

inline std::vector<Spec> attention_specs() {
  const auto flops_of_score = [](const AttentionCase& a, const Case& c) {
    return 2 * double(a.d) + 1 + (a.cap != 0 ? 6 : 0) + (c.parameter("bias") != 0 ? 1 : 0);
  };
  Spec forward =
      attention_spec("attention", oracles<AttentionOracle>(),
                     "two sums of products, an exponential, and the rescaling of a row's sums when "
                     "its maximum grows");
  forward.tolerance.factor_rounding = rounding_of_weights;
  // A maximum, e^(s - m) and its sum; E times two.
  forward.flops = [=](const Case& c) {
    const AttentionCase a(c);
    return a.pairs() * (flops_of_score(a, c) + 4 + 2 * double(a.e)) + double(a.b * a.h * a.s) * double(a.e);
  };
  forward.cases = [] {
    std::vector<Case> cases = attention_cases();
    cases.push_back({{2, 16, 1, 8, 16, 1, 8}, DType::f32, {{"lse", 0}}});
    return cases;
  };
  Spec backward = attention_spec("attention_backward", oracles<AttentionBackwardOracle>(),
                                 "five sums of products, and an exponential");
  backward.repeats = false;  // y and lse belong to q, k, v and bias
  backward.flops = [=](const Case& c) {
    const AttentionCase a(c);
    return a.pairs() * (flops_of_score(a, c) + 5 + 4 * double(a.d) + 4 * double(a.e)) +
           double(a.b * a.h * a.s) * 2 * double(a.e);
  };
  return {forward, backward};
}

}  // namespace rooftile::harness
