#pragma once
#include "rooftile/ops/attention/cases.h"
#include "rooftile/ops/attention_scaled/attention_scaled.h"
#include "rooftile/ops/attention_scaled/oracle.h"

namespace rooftile::harness {

/// A case's shape is attention's: {B, S, H, D, T, G, E, N}; its dtype y's. "C": 0 f8e4m3, 1 f8e5m2.
inline std::vector<Case> attention_scaled_cases() {
  using Options = std::map<std::string, double>;
  std::vector<Case> cases;
  const Options causal{{"causal", 1}}, window{{"window_left", 20}, {"window_right", 9}};
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    int next = 0;  // formats by turns
    const auto add = [&](Shape shape, Options options = {}, Layout layout = Layout::contiguous,
                         Fill fill = Fill::normal, std::int64_t offset = 0) {
      for (const char* scale : {"q_scale", "k_scale", "v_scale"}) options.insert({scale, 1});
      options.insert({"C", double(next++ % 2)});
      cases.push_back({std::move(shape), type, std::move(options), layout, fill, offset});
    };
    // Of a quick check: a scale for each batch and head; past several chunks of a GPU's keys; each scale
    // alone.
    add({2, 100, 4, 64, 65, 2, 64}, causal);
    add({1, 65, 2, 16, 1100, 1, 24}, causal);
    add({3, 20, 4, 24, 40, 2, 24});
    for (const char* alone : {"q_scale", "k_scale", "v_scale", ""}) {
      Options one{{"q_scale", 0}, {"k_scale", 0}, {"v_scale", 0}};
      if (*alone) one[alone] = 1;
      add({2, 9, 4, 32, 50, 2, 16}, one);
    }
    // Values of keys' sizes, so that neither may be the other; no key, one, and more queries than keys.
    add({2, 63, 2, 16, 63, 2, 16}, {{"causal", 1}, {"window_left", 30}, {"scale", 0.25}});
    add({2, 64, 2, 64, 130, 2, 64}, {{"window_left", 3}, {"window_right", 1}, {"softcap", 2}});
    add({2, 34, 2, 64, 1, 1, 64}, causal);
    for (const Shape& shape : {Shape{2, 5, 2, 64, 0, 2, 64}, Shape{1, 0, 2, 16, 33, 1, 16},
                               Shape{0, 3, 2, 16, 3, 1, 16}, Shape{1, 1, 1, 1, 1, 1, 1}})
      add(shape);
    // Each bucket of channels, whole vectors and not, groups of three, one key head for all.
    add({1, 17, 3, 80, 300, 1, 80}, causal);
    add({1, 130, 6, 64, 130, 2, 64}, causal);
    add({2, 129, 4, 128, 97, 2, 128});
    add({1, 33, 1, 256, 50, 1, 256}, causal);
    add({1, 20, 1, 200, 49, 1, 136}, window);
    add({1, 9, 1, 3, 31, 1, 5}, window);
    add({1, 1, 4, 64, 257, 2, 64}, causal);
    add({1, 310, 2, 64, 450, 1, 64}, causal);
    add({1, 40, 1, 128, 1300, 1, 128}, {{"softcap", 30}});
    for (Fill fill : {Fill::wide, Fill::zeros, Fill::denormals})
      add({1, 40, 2, 16, 70, 1, 16}, causal, Layout::contiguous, fill);
    for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::transposed,
                          Layout::broadcast})
      add({2, 20, 4, 24, 100, 2, 24}, causal, layout);
    add({2, 50, 2, 64, 70, 2, 64}, window, Layout::offset, Fill::normal, 3);
    // wgmma_f8's: f8e4m3, heads in 16s. Several tiles of each side, more keys than its ring holds; masks that
    // leave out whole tiles, before and after; rows that see none; one key; weights of 1 among small ones.
    const auto f8 = [&](Shape shape, Options options = {}, Fill fill = Fill::normal) {
      options.insert({"C", 0});
      add(std::move(shape), options, Layout::contiguous, fill);
    };
    for (std::int64_t keys : {1, 15, 16, 127, 128, 129, 300}) f8({1, 40, 2, 64, keys, 1, 64});
    f8({1, 260, 2, 128, 1000, 1, 128}, causal);
    f8({2, 300, 2, 96, 130, 1, 40}, causal);
    f8({1, 400, 2, 16, 700, 2, 7}, {{"window_left", 140}, {"window_right", 9}});
    f8({3, 129, 3, 80, 257, 3, 128}, {{"q_scale", 0}, {"v_scale", 0}});
    f8({1, 60, 2, 32, 700, 1, 33}, {{"scale", 2}});
    f8({1, 60, 1, 64, 300, 1, 64}, {{"scale", 0.5}}, Fill::wide);
    f8({1, 60, 1, 64, 300, 1, 64}, {}, Fill::zeros);
    // Sequences of a length each.
    const auto cut = [&](std::size_t which, std::int64_t h, std::int64_t g, std::int64_t d, std::int64_t e,
                         Options options = {}) {
      options.insert({{"cu_seqlens_q", 1}, {"cu_seqlens_k", 1}, {"lengths", double(which)}});
      add(attention_lengths()[which - 1].shape(h, g, d, e), options);
    };
    cut(1, 4, 2, 64, 64, causal);
    cut(3, 2, 1, 24, 16, window);
    cut(4, 2, 2, 8, 8);
  }
  cases.push_back({{2, 16, 8, 16, 8, 1, 8}, DType::f32, {{"lse", 0}}});
  return cases;
}

/// Codes within their range, and scales as those of quantised tensors are: of one size, none alike.
inline void prepare_attention_scaled(const Case& c, Arrays<double>& inputs) {
  prepare_attention(c, inputs);
  const double most = c.parameter("C") == 0 ? 448 : 57344;
  for (const char* name : {"q", "k", "v"})
    for (double& x : inputs[name].values()) x = std::isfinite(x) ? std::clamp(x, -most, most) : 0;
  for (const char* name : {"q_scale", "k_scale", "v_scale"})
    if (Array<double>* scales = inputs.find(name))
      for (double& s : scales->values())
        s = double(float(std::isfinite(s) ? std::clamp(std::fabs(s), 0.25, 4.) : 0.5));
}

/// What a bench, which fills operands with one pattern, lacks: scales are above 0.
inline void make_scales_positive(const Case&, const Arguments& arguments) {
  for (const char* name : {"q_scale", "k_scale", "v_scale"}) {
    const ConstView scales = arguments.in(name);
    float* const s = static_cast<float*>(const_cast<void*>(scales.data));
    for (std::int64_t i = 0; s && i < scales.size(); ++i) s[i] = std::clamp(std::fabs(s[i]), 0.25F, 4.F);
  }
}

inline BenchCases attention_scaled_bench() {
  BenchCases b;
  const auto self = [](std::int64_t batch, std::int64_t length, std::int64_t heads, std::int64_t keys,
                       std::int64_t d, DType type, double causal = 0) {
    return Case{{batch, length, heads, d, length, keys, d}, type, {{"causal", causal}}};
  };
  for (DType type : {DType::f32, DType::bf16}) {
    b.cache.push_back(self(1, 512, 2, 2, 64, type));
    b.memory.push_back(self(1, 2048, 8, 8, 128, type));
  }
  for (std::int64_t length : {2048, 16384})
    for (std::int64_t d : {64, 128, 256})
      for (double causal : {0., 1.})
        b.gpu.push_back(self(16384 / length, length, 2048 / d, 2048 / d, d, DType::bf16, causal));
  for (std::int64_t batch = 1; batch <= 4096; batch *= 2)
    b.sweep.push_back(self(batch, 30, 1, 1, 64, DType::f32));
  return b;
}

/// Hopper's f8 instruction cuts 32 products, the sum before them and its result, each at 2^-13 of the largest
/// at most; no sum of 128, four instructions, is larger than its terms' sizes.
inline constexpr double kAttentionScaledCuts = 4 * 34 * 0x1p-13;

inline std::vector<Spec> attention_scaled_specs() {
  Spec spec = attention_spec("attention_scaled", oracles<AttentionScaledOracle>(),
                             "attention's sums of products, exponential and rescaling");
  // Weights are rounded to y's dtype; of wgmma_f8 to e4m3's 4 bits.
  spec.tolerance.factor_rounding = [](const Case& c, std::string_view variant) {
    return variant == "wgmma_f8"       ? 0x1p-4
           : variant == "tensor_cores" ? std::ldexp(1, -significand_bits(c.dtype))
                                       : 0;
  };
  // √K roundings of f32 are what wgmma_f8 cuts of a score, and of 128 keys' sums.
  spec.tolerance.chain = [](const Case& c, std::string_view variant) {
    constexpr double kCuts = kAttentionScaledCuts / 0x1p-24;
    return variant == "wgmma_f8" ? kCuts * kCuts
                                 : double(std::max({c.shape[1], c.shape[3], c.shape[4], c.shape[6]}));
  };
  spec.cases = attention_scaled_cases;
  spec.bench = attention_scaled_bench;
  spec.prepare = prepare_attention_scaled;
  spec.bench_prepare = make_scales_positive;
  spec.standard_shape = [](const Shape& rows_columns) {  // heads that wgmma_f8 takes
    Shape shape = attention_shape(rows_columns);
    shape[3] = 16 * (1 + rows_columns[1] % 3);
    return shape;
  };
  spec.multiplies = [](const Case&) { return DType::f8e4m3; };
  // As attention's, of each row's scales three products and a quotient.
  spec.flops = [](const Case& c) {
    const AttentionCase a(c);
    double pairs = 0, seeing = 0;
    for (const AttentionCase& its : attention_sequences(c)) pairs += its.pairs(), seeing += its.seeing();
    return pairs * (2 * double(a.d) + 1 + (a.cap != 0 ? 6 : 0) + 4 + 2 * double(a.e)) +
           double(a.b * a.h) * seeing * (double(a.e) + c.parameter("v_scale", 1));
  };
  return {spec};
}

}  // namespace rooftile::harness
