#pragma once
#include <numeric>

#include "rooftile/harness/check/fill.h"
#include "rooftile/harness/letters.h"
#include "rooftile/harness/tensor.h"
#include "rooftile/ops/attention/attention.h"
#include "rooftile/ops/attention/oracle.h"

namespace rooftile::harness {

/// Lengths of queries and of keys that a case with cu_seqlens names by "lengths", from 1 on; rows before the
/// first sequence, and room past the last.
struct AttentionLengths {
  std::vector<std::int64_t> q, k;
  std::int64_t before = 0, after = 0;
  Shape shape(std::int64_t h, std::int64_t g, std::int64_t d, std::int64_t e) const {
    const auto rows = [&](const std::vector<std::int64_t>& lengths) {
      return std::accumulate(lengths.begin(), lengths.end(), before + after);
    };
    return {1, rows(q), h, d, rows(k), g, e, static_cast<std::int64_t>(q.size()) + 1};
  }
};
inline const std::vector<AttentionLengths>& attention_lengths() {
  static const std::vector<AttentionLengths> all = {
      // Around a tile's, none of either side, one key for all queries.
      {{0, 1, 63, 64, 65, 5, 34, 0}, {3, 64, 65, 0, 63, 130, 1, 7}},
      {{76, 34, 146}, {1, 1, 1}},
      {{17, 40, 1}, {30, 20, 2}, 3, 10},
      {{}, {}, 5, 2}};
  return all;
}
/// What cu_seqlens holds.
inline std::vector<double> attention_bounds(const Case& c, bool keys) {
  const std::int64_t rows = c.shape[keys ? 4 : 1], count = c.shape[7];
  auto which = static_cast<std::size_t>(c.parameter("lengths"));
  if (which > 0)  // for a shape of its own, not for the harness's
    if (const Shape its = attention_lengths()[which - 1].shape(1, 1, 1, 1);
        its[1] != c.shape[1] || its[4] != c.shape[4] || its[7] != count)
      which = 0;
  std::vector<double> bounds;
  for (std::int64_t n = 0; n < count; ++n) {
    if (which == 0) {  // of any shape: uneven, from the first row to the last
      const double share = double(n) / double(std::max<std::int64_t>(count - 1, 1));
      bounds.push_back(std::floor(double(rows) * (keys ? share : share * share)));
      continue;
    }
    const AttentionLengths& its = attention_lengths()[which - 1];
    const std::vector<std::int64_t>& lengths = keys ? its.k : its.q;
    bounds.push_back(double(std::accumulate(lengths.begin(), lengths.begin() + n, its.before)));
  }
  return bounds;
}
inline bool attention_is_cut(const Case& c) {
  return c.parameter("cu_seqlens_q") != 0 && c.parameter("cu_seqlens_k") != 0 && c.shape.size() > 7;
}
/// Its sequences; itself where it is not cut.
inline std::vector<AttentionCase> attention_sequences(const Case& c) {
  const AttentionCase all(c);
  return attention_is_cut(c) ? all.cut(attention_bounds(c, false), attention_bounds(c, true))
                             : std::vector<AttentionCase>{all};
}

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
    const auto drop = [](Options more, double p = 0.3) {
      more.insert({{"dropout", p}, {"seed", 1}});
      return more;
    };
    // Of a quick check: the diagonal by itself, past several chunks of a GPU's; beside biases and dropout.
    add(1, 65, 1100, 2, 1, 16, 24, causal);
    add(2, 100, 65, 4, 2, 40, 40, drop({{"causal", 1}, {"bias", 1}, {"A", 1}, {"alibi", 1}}));
    add(2, 65, 100, 2, 1, 16, 24);
    add(2, 100, 65, 4, 2, 40, 40, {{"causal", 1}, {"bias", 1}, {"A", 1}});
    add(2, 64, 130, 2, 2, 64, 64, {{"window_left", 3}, {"window_right", 1}, {"softcap", 2}, {"bias", 1}});
    add(2, 63, 63, 2, 2, 8, 16, {{"causal", 1}, {"window_left", 30}, {"scale", 0.25}});
    // Reported elsewhere: flashinfer 4452, one key and many queries; flash-attention 2470, no key at all;
    // 334, lengths 1; native-sparse-attention 27, heads of v that differ; TileOPs 1633, a window with a right
    // end alone. 443 and 2421, keys or queries that a sequence lacks, are among attention_lengths.
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
    // Alibi: whole tiles by groups, more queries than keys and fewer; beside a bias, a cap, dropout and a
    // window.
    add(2, 65, 100, 4, 2, 64, 64, {{"alibi", 1}, {"causal", 1}});
    add(1, 100, 65, 2, 1, 128, 128, {{"alibi", 1}});
    add(1, 40, 67, 2, 2, 256, 256, {{"alibi", 1}, {"causal", 1}});
    add(2, 40, 67, 2, 1, 24, 16, sink(drop({{"alibi", 1}, {"bias", 1}, {"softcap", 2}})));
    add(1, 50, 70, 3, 1, 24, 16, {{"alibi", 1}, {"window_left", 20}, {"window_right", 9}},
        Layout::strided_columns);
    // Dropout, whose backward draws the forward's mask (flash-attention 2439): whole tiles; none and all
    // dropped; a seed's 64 bits and a counter that wraps; windows and caps.
    add(2, 130, 130, 4, 2, 64, 64, drop(causal, 0.1));
    add(1, 70, 129, 1, 1, 128, 128, drop({{"offset", 1}, {"seed_is", -1}, {"offset_is", -7}}, 0.5));
    add(1, 40, 67, 2, 1, 256, 256, drop({{"offset", 1}, {"seed_is", 0x1p40 + 3}}, 0.9));
    add(1, 40, 67, 2, 2, 16, 24, drop({}, 1));
    add(1, 40, 67, 2, 2, 16, 24, drop({{"S", 1}}, 0));
    add(1, 50, 70, 2, 1, 24, 16, drop({{"window_left", 20}, {"window_right", 9}, {"softcap", 2}, {"S", 1}}));
    add(1, 19, 70, 2, 1, 24, 16, sink(drop({{"bias", 1}})));
    add(1, 5, 0, 2, 2, 16, 8, sink(drop({})));
    for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::transposed,
                          Layout::broadcast})
      add(2, 20, 100, 2, 1, 24, 24, {{"causal", 1}, {"bias", 1}, {"A", 1}}, layout);
    add(2, 50, 70, 2, 2, 64, 64, window, Layout::offset, Fill::normal, 3);
    // On tensor cores: more tiles than are in flight, of queries and of keys, also where a warpgroup has no
    // rows; heads that a pipeline brings by threads.
    if (type != DType::f32) {
      add(1, 40, 1300, 1, 1, 64, 64);
      add(1, 900, 30, 1, 1, 128, 128);
      add(1, 310, 450, 2, 1, 64, 64, causal);
      add(1, 400, 330, 1, 1, 128, 128, {{"window_left", 140}, {"window_right", 9}});
      for (Layout layout : {Layout::strided_columns, Layout::transposed, Layout::broadcast})
        add(2, 70, 100, 4, 2, 64, 64, causal, layout);
      add(1, 70, 130, 2, 1, 128, 128, causal, Layout::padded_rows);
    }
    // Sequences of a length each: whole words and others; masks; sinks; begins apart in memory.
    const auto cut = [&](std::size_t which, std::int64_t h, std::int64_t g, std::int64_t d, std::int64_t e,
                         Options options = {}, Layout layout = Layout::contiguous) {
      options.insert({{"cu_seqlens_q", 1}, {"cu_seqlens_k", 1}, {"lengths", double(which)}});
      cases.push_back({attention_lengths()[which - 1].shape(h, g, d, e), type, options, layout});
    };
    cut(1, 2, 2, 24, 16, sink({{"causal", 1}}), Layout::strided_columns);
    cut(3, 4, 2, 64, 64, sink({{"causal", 1}}));
    cut(4, 2, 2, 8, 8);
    if (type != DType::f16) {
      cut(1, 2, 1, 64, 64, window);
      cut(1, 4, 2, 64, 64, drop({{"causal", 1}, {"alibi", 1}}));
      cut(2, 1, 1, 128, 128, causal);
      cut(3, 2, 1, 256, 256, {{"softcap", 2}}, Layout::reversed);
    }
    add(2, 65, 100, 2, 1, 16, 24, causal);
    // Chunks of a GPU's keys: whole tiles of each size; some that a row does not see, before and after those
    // that it sees; with all that a chunk's sums carry.
    for (std::int64_t size : {64, 128, 256})
      add(1, 33, size == 128 ? 1537 : 1024, 1, 1, size, size, size == 64 ? causal : Options{});
    add(1, 200, 1300, 2, 1, 16, 16, {{"window_left", 600}, {"window_right", 0}});
    add(1, 1100, 1100, 1, 1, 8, 8, causal);
    add(1, 20, 1500, 2, 1, 24, 16, sink(drop({{"causal", 1}, {"bias", 1}, {"alibi", 1}, {"softcap", 2}})));
    add(1, 3, 1100, 2, 2, 16, 16, sink({}));
    add(1, 4, 1100, 2, 1, 16, 16, {{"bias", 1}}, Layout::contiguous, Fill::minus_infinities);
  }
  return cases;
}

/// Of -infinities the bias keeps its own; seeds and offsets that a case names; a backward gets what its
/// forward gives.
inline void prepare_attention(const Case& c, Arrays<double>& inputs) {
  if (c.fill == Fill::wide)  // so far that weights are 0 and 1, not so far that a score has no digit left
    for (const char* name : {"q", "k", "sink", "alibi"})
      if (inputs.has(name))
        for (double& v : inputs[name].values()) v = std::fmax(-8, std::fmin(8, v));
  for (bool keys : {false, true})
    if (const char* name = keys ? "cu_seqlens_k" : "cu_seqlens_q"; inputs.has(name))
      inputs[name].values() = attention_bounds(c, keys);
  for (auto& [name, array] : inputs.all())
    if (name != "bias" && name != "sink")
      for (double& v : array.values())
        if (std::isinf(v)) v = 0.5;
  if (inputs.has("alibi"))  // as steep as those that are used: its keys are hundreds away
    for (double& v : inputs["alibi"].values()) v /= 16;
  for (const char* name : {"seed", "offset"})
    if (const auto its = c.parameters.find(name + std::string("_is")); its != c.parameters.end())
      if (Array<double>* number = inputs.find(name)) number->values()[0] = its->second;
  if (!inputs.has("dy")) return;
  AttentionOracle::run(c, inputs);
}

/// Each operand's elements once, but for queries that see no key, keys that no query sees, and the pairs of a
/// bias that are not seen.
inline double attention_bytes(const Spec& spec, const Case& c) {
  const AttentionCase a(c);
  double bytes = 0, pairs = 0, seeing = 0, seen = 0;
  for (const AttentionCase& its : attention_sequences(c))
    pairs += its.pairs(), seeing += its.seeing(), seen += its.seen();
  for (const Operand& o : spec.operands(c)) {
    const std::string_view name = o.name;
    double count = double(count_of(o.shape));
    if (name == "bias") count = pairs;
    if (name == "q") count = seeing * double(a.b * a.h * a.d);
    if (name == "k") count = seen * double(a.b * a.g * a.d);
    if (name == "v") count = seen * double(a.b * a.g * a.e);
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
  return {rows, 1 + columns % 4, 2, 3 + columns % 6, columns, 1, 2 + columns % 7, 3};
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

/// Heads a multiple of their groups, and of a length that the library takes; sequences of a length each in
/// one batch, without a bias; dropout with a seed.
inline void adjust_attention(Case& c) {
  const bool cut = attention_is_cut(c);
  for (const char* name : {"cu_seqlens_q", "cu_seqlens_k"})
    if (c.parameters.count(name)) c.parameters[name] = cut;
  if (cut) {
    c.shape[0] = 1;
    c.shape[7] = std::max<std::int64_t>(c.shape[7], 1);
    c.parameters["bias"] = 0;
  }
  if (c.parameter("dropout") != 0) c.parameters["seed"] = 1;
  std::int64_t &h = c.shape[2], &d = c.shape[3], &g = c.shape[5], &e = c.shape[6];
  g %= 4;
  h = g * (1 + h % 3);
  for (std::int64_t* size : {&d, &e}) *size = *size < 1 ? 1 : *size % 257 == 0 ? 256 : *size % 257;
}

inline Spec attention_spec(const char* function, const OracleFunctions& oracle, const char* reason) {
  Spec spec = spec_of(
      {.function = function,
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
       .absent = {"bias", "sink", "dsink", "cu_seqlens_q", "cu_seqlens_k", "seed", "offset", "alibi"}});
  // A row's place in the call decides what of its weights is dropped.
  spec.operands = [operands = spec.operands](const Case& c) {
    std::vector<Operand> list = operands(c);
    if (c.parameter("dropout") != 0)
      for (Operand& operand : list) operand.batched = false;
    return list;
  };
  spec.cases = attention_cases;
  spec.bench = attention_bench;
  spec.standard_shape = attention_shape;
  spec.prepare = prepare_attention;
  spec.adjust = adjust_attention;
  spec.bench_index = [](const Case& c, std::string_view name, std::int64_t i) {
    return static_cast<std::int64_t>(
        attention_bounds(c, name == "cu_seqlens_k")[static_cast<std::size_t>(i)]);
  };
  spec.largest_exponent = 3;  // scores stay where an exponential has digits
  // Scores of 1e30 have none left, and an lse of f32 is off by 1e22.
  // What is masked must be finite (attention.h): its weight of 0 times infinity is a NaN. Scores of a million
  // and more have no digit left behind the point in f32, and an exponential of them none at all. Below 1e-30
  // q times the scale leaves the normal numbers, and its digits.
  spec.suits = [its = spec.suits](const Case& c) {
    const double scale = c.parameter("scale");
    const bool cut = c.parameter("cu_seqlens_q") != 0 || c.parameter("cu_seqlens_k") != 0,
               may_be = attention_is_cut(c) && c.shape[0] == 1 && c.shape[7] > 0 && c.parameter("bias") == 0;
    return its(c) && (!cut || may_be) && (c.parameter("dropout") == 0 || c.parameter("seed") != 0) &&
           scale < 100 && (scale == 0 || scale >= 1e-30) && finite(c.fill) && c.fill != Fill::large_offset &&
           c.fill != Fill::huge && c.fill != Fill::huge_rows;
  };
  spec.bytes = [its = spec](const Case& c) { return attention_bytes(its, c); };
  return spec;
}

inline std::vector<Spec> attention_specs() {
  const auto flops_of_score = [](const AttentionCase& a, const Case& c) {
    return 2 * double(a.d) + 1 + (a.cap != 0 ? 6 : 0) + (c.parameter("bias") != 0 ? 1 : 0) +
           (c.parameter("alibi") != 0 ? 2 : 0);
  };
  const auto pairs = [](const Case& c) {
    double n = 0;
    for (const AttentionCase& a : attention_sequences(c)) n += a.pairs();
    return n;
  };
  Spec forward =
      attention_spec("attention", oracles<AttentionOracle>(),
                     "two sums of products, an exponential, and the rescaling of a row's sums when "
                     "its maximum grows");
  forward.tolerance.factor_rounding = rounding_of_weights;
  // A maximum, e^(s - m) and its sum; E times two.
  forward.flops = [=](const Case& c) {
    const AttentionCase a(c);
    return pairs(c) * (flops_of_score(a, c) + 4 + 2 * double(a.e) + (a.dropout != 0 ? 1 : 0)) +
           double(a.b * a.h * a.s) * double(a.e);
  };
  forward.cases = [] {
    std::vector<Case> cases = attention_cases();
    cases.push_back({{2, 16, 1, 8, 16, 1, 8}, DType::f32, {{"lse", 0}}});
    return cases;
  };
  Spec backward = attention_spec("attention_backward", oracles<AttentionBackwardOracle>(),
                                 "five sums of products, and an exponential");
  backward.tolerance.factor_rounding = rounding_of_weights;
  backward.repeats = false;  // y and lse belong to q, k, v and bias
  backward.flops = [=](const Case& c) {
    const AttentionCase a(c);
    return pairs(c) *
               (flops_of_score(a, c) + 5 + 4 * double(a.d) + 4 * double(a.e) + (a.dropout != 0 ? 2 : 0)) +
           double(a.b * a.h * a.s) * 2 * double(a.e);
  };
  return {forward, backward};
}

}  // namespace rooftile::harness
