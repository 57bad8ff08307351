#pragma once
#include "rooftile/harness/signature_spec.h"
#include "rooftile/harness/tensor.h"
#include "rooftile/ops/attention/attention.h"
#include "rooftile/ops/attention/oracle.h"

namespace rooftile::harness {

/// bias: 0 none, 1 in q's dtype, 2 in f32.
inline std::vector<Operand> attention_operands(const Case& c, bool backward) {
  using Kind = Operand::Kind;
  const std::int64_t b = c.shape[0], s = c.shape[1], h = c.shape[2], d = c.shape[3], t = c.shape[4],
                     g = c.shape[5], e = c.shape[6];
  std::vector<Operand> list{{"q", Kind::input, c.dtype, {b, s, h, d}},
                            {"k", Kind::input, c.dtype, {b, t, g, d}},
                            {"v", Kind::input, c.dtype, {b, t, g, e}}};
  const double bias = c.parameter("bias");
  Operand added{"bias", Kind::input, bias == 2 ? DType::f32 : c.dtype, {b, h, s, t}};
  added.optional = true;
  if (bias != 0) list.push_back(added);
  Operand lse{"lse", backward ? Kind::input : Kind::output, DType::f32, {b, h, s}};
  lse.optional = !backward;
  list.push_back({"y", backward ? Kind::input : Kind::output, c.dtype, {b, s, h, e}});
  if (!backward) {
    if (c.parameter("lse", 1) != 0) list.push_back(lse);
    return list;
  }
  list.push_back({"dy", Kind::input, c.dtype, {b, s, h, e}});
  list.push_back(lse);
  list.push_back({"dq", Kind::output, c.dtype, {b, s, h, d}});
  list.push_back({"dk", Kind::output, c.dtype, {b, t, g, d}});
  list.push_back({"dv", Kind::output, c.dtype, {b, t, g, e}});
  return list;
}

/// What both directions try. The first sets of options are those that bits, refusals, edges and gradients are
/// checked with.
inline std::vector<Case> attention_cases() {
  using Options = std::map<std::string, double>;
  const Options causal{{"causal", 1}}, window{{"window_left", 20}, {"window_right", 9}};
  std::vector<Case> cases;
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    const auto add = [&](std::int64_t b, std::int64_t s, std::int64_t t, std::int64_t h, std::int64_t g,
                         std::int64_t d, std::int64_t e, const Options& options = {},
                         Layout layout = Layout::contiguous, Fill fill = Fill::normal, std::int64_t offset = 0) {
      cases.push_back({{b, s, h, d, t, g, e}, type, options, layout, fill, offset});
    };
    add(2, 65, 100, 2, 1, 16, 24);
    add(2, 100, 65, 4, 2, 40, 40, {{"causal", 1}, {"bias", 1}});
    add(2, 64, 130, 2, 2, 64, 64, {{"window_left", 3}, {"window_right", 1}, {"softcap", 2}, {"bias", 2}});
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
    add(1, 19, 70, 2, 1, 16, 16, {{"bias", 2}}, Layout::contiguous, Fill::minus_infinities);
    add(1, 40, 70, 2, 1, 16, 16, causal, Layout::contiguous, Fill::wide);
    add(1, 9, 100, 1, 1, 64, 16, {}, Layout::contiguous, Fill::zeros);
    add(1, 40, 70, 2, 1, 16, 16, {{"softcap", 30}, {"scale", 4}});
    for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::transposed,
                          Layout::broadcast})
      add(2, 20, 100, 2, 1, 24, 24, {{"causal", 1}, {"bias", 1}}, layout);
    add(2, 50, 70, 2, 2, 64, 64, window, Layout::offset, Fill::normal, 3);
  }
  return cases;
}

/// Of -infinities the bias keeps its own; a backward gets what its forward gives.
inline void prepare_attention(const Case& c, Arrays<double>& inputs) {
  if (c.fill == Fill::wide)  // so far that weights are 0 and 1, not so far that a score has no digit left
    for (const char* name : {"q", "k"})
      for (double& v : inputs[name].values()) v = std::fmax(-8, std::fmin(8, v));
  for (auto& [name, array] : inputs.all())
    if (name != "bias")
      for (double& v : array.values())
        if (std::isinf(v)) v = 0.5;
  if (!inputs.has("dy")) return;
  AttentionOracle::run(c, inputs);
}

/// Each operand's elements once, but for queries that see no key, keys that no query sees, and the pairs of a
/// bias that are not seen.
inline double attention_bytes(const Case& c, bool backward) {
  const AttentionCase a(c);
  double bytes = 0;
  for (const Operand& o : attention_operands(c, backward)) {
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

/// Those that the harness tries by itself; a window's are whole numbers, which it does not know of.
inline std::vector<Option> attention_options(const char* function) {
  std::vector<Option> options = options_of(find_op(function)->signature);
  std::erase_if(options, [](const Option& o) { return std::string_view(o.name).substr(0, 6) == "window"; });
  return options;
}

/// For the harness's own shapes: keys are its columns.
inline Shape attention_shape(const Shape& rows_columns) {
  const std::int64_t columns = rows_columns[1];
  return {rows_columns[0], 1 + columns % 4, 2, 3 + columns % 6, columns, 1, 2 + columns % 7};
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
    for (std::int64_t d : {64, 128})
      for (const Options& options : {Options{}, causal})
        b.gpu.push_back(self(16384 / length, length, 2048 / d, 2048 / d, d, DType::bf16, options));
  return b;
}

inline std::vector<Spec> attention_specs() {
  Spec forward{};
  forward.function = "attention";
  forward.axes = "batch x queries x heads x head size x keys x key heads x value's head size";
  forward.dtypes = {DType::f32, DType::f16, DType::bf16};
  forward.operands = [](const Case& c) { return attention_operands(c, false); };
  forward.options = attention_options("attention");
  forward.oracle = oracles<AttentionOracle>();
  // Each pair: a product of D, its scale, cap and bias, a maximum, e^(s - m), the sum; and E times two.
  forward.flops = [](const Case& c) {
    const AttentionCase a(c);
    const double score = 2 * double(a.d) + 1 + (a.cap != 0 ? 6 : 0) + (c.parameter("bias") != 0 ? 1 : 0);
    return a.pairs() * (score + 4 + 2 * double(a.e)) + double(a.b * a.h * a.s) * (double(a.e) + 1);
  };
  forward.bytes = [](const Case& c) { return attention_bytes(c, false); };
  forward.tolerance = {.c = 1,
                       .chain = [](const Case& c, std::string_view) {
                         return double(std::max(c.shape[3], c.shape[4]));
                       },
                       .accumulator = [](const Case&) { return DType::f32; },
                       .reason = "two sums of products, an exponential of 2 roundings, and the rescaling of a "
                                 "row's sums when its maximum grows"};
  forward.cases = [] {
    std::vector<Case> cases = attention_cases();
    cases.push_back({{2, 16, 1, 8, 16, 1, 8}, DType::f32, {{"lse", 0}}});
    return cases;
  };
  forward.bench = attention_bench;
  forward.standard = false;
  forward.least_rank = 7;
  forward.largest_exponent = 3;  // scores stay where an exponential has digits
  forward.standard_shape = attention_shape;
  // Scores of 1e30 have no digit left for an exponential, and an lse of f32 is off by 1e22.
  forward.suits = [](const Case& c) { return c.parameter("scale") < 100; };
  forward.prepare = prepare_attention;
  forward.call = [](const Queue& q, const Case& c, const Arguments& a, const char* variant, Workspace) {
    const Op* op = find_op("attention");
    return with_call(op->signature, options_of(op->signature), c, a, [&](Call its) {
      its.variant = variant;
      return call(q, *op, its);
    });
  };

  Spec backward = forward;
  backward.function = "attention_backward";
  backward.gradient_of = "attention";
  backward.operands = [](const Case& c) { return attention_operands(c, true); };
  backward.options = attention_options("attention_backward");
  backward.oracle = oracles<AttentionBackwardOracle>();
  backward.flops = [](const Case& c) {
    const AttentionCase a(c);
    const double score = 2 * double(a.d) + 1 + (a.cap != 0 ? 6 : 0) + (c.parameter("bias") != 0 ? 1 : 0);
    return a.pairs() * (score + 5 + 4 * double(a.d) + 4 * double(a.e)) +
           double(a.b * a.h * a.s) * 2 * double(a.e);
  };
  backward.bytes = [](const Case& c) { return attention_bytes(c, true); };


  backward.cases = attention_cases;
  backward.tolerance.chain = [](const Case& c, std::string_view) {
    return double(std::max({c.shape[3], c.shape[4], c.shape[6],
                            c.shape[1] * (c.shape[5] ? c.shape[2] / c.shape[5] : 1)}));
  };
  backward.tolerance.reason = "five sums of products, and an exponential of 2 roundings";
  backward.call = [](const Queue& q, const Case& c, const Arguments& a, const char* variant, Workspace) {
    const Op* op = find_op("attention_backward");
    return with_call(op->signature, options_of(op->signature), c, a, [&](Call its) {
      its.variant = variant;
      return call(q, *op, its);
    });
  };
  return {forward, backward};
}

}  // namespace rooftile::harness
