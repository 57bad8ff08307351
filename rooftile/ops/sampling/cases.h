#pragma once
#include "rooftile/harness/gpu_cases.h"
#include "rooftile/harness/letters.h"
#include "rooftile/ops/sampling/oracle.h"

namespace rooftile::harness {

using SamplingOptions = std::map<std::string, double>;

/// Many equal elements: k of them cut ties. Rows in ascending order, where each element joins the list.
inline void sampling_inputs(const Case& c, Arrays<double>& inputs) {
  for (const char* name : {"seed", "offset"})
    if (const auto its = c.parameters.find(name + std::string("_is")); its != c.parameters.end())
      if (Array<double>* number = inputs.find(name)) number->values()[0] = its->second;
  for (const char* name : {"x", "logits"})
    if (Array<double>* x = inputs.find(name))
      for (std::size_t i = 0; i < x->values().size(); ++i) {
        double& value = x->values()[i];
        if (c.parameter("ties") != 0) value = std::isfinite(value) ? std::round(value) : value;
        if (c.parameter("ascending") != 0) value = static_cast<double>(i);
      }
}

inline std::vector<Case> top_k_cases() {
  std::vector<Case> cases;
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    const auto add = [&](Shape shape, SamplingOptions options, Layout layout = Layout::contiguous,
                         Fill fill = Fill::normal, std::int64_t offset = 0) {
      cases.push_back({std::move(shape), type, std::move(options), layout, fill, offset});
    };
    for (double k : {1., 2., 8., 63., 64.}) {
      for (std::int64_t n : {64, 65, 257, 1025}) add({3, n}, {{"k", k}});
      add({5, 300}, {{"k", k}, {"ties", 1}});
      add({1, 5000}, {{"k", k}, {"ties", 1}});
      add({2, 2000}, {{"k", k}, {"ascending", 1}});
      for (Fill fill : {Fill::one_nan, Fill::zeros, Fill::minus_infinities, Fill::masked, Fill::one_infinity})
        add({5, 200}, {{"k", k}}, Layout::contiguous, fill);
    }
    add({5, 100}, {{"k", 40}, {"ties", 1}});  // the last of the list are 0 and -0
    add({2, 1024}, {{"k", 32}});
    add({1, 20001}, {{"k", 64}});
    for (std::int64_t n : {1, 2, 3, 7, 8, 30, 33}) {
      add({3, n}, {{"k", 1}});
      add({3, n}, {{"k", double(n)}});
    }
    add({0, 17}, {{"k", 4}});
    add({0, 3}, {{"k", 1}});
    add({3, 4, 5, 33}, {{"k", 3}});
    add({70, 30}, {{"k", 6}});
    for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::transposed,
                          Layout::broadcast})
      for (std::int64_t n : {131, 2100}) add({2, 3, n}, {{"k", 5}}, layout);
    for (std::int64_t offset : {1, 3}) add({3, 1290}, {{"k", 9}}, Layout::offset, Fill::normal, offset);
    for (Fill fill : {Fill::wide, Fill::denormals, Fill::huge})
      add({5, 200}, {{"k", 10}}, Layout::contiguous, fill);
  }
  return cases;
}

inline std::vector<Case> sample_cases() {
  std::vector<Case> cases;
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    const auto add = [&](Shape shape, SamplingOptions options, Layout layout = Layout::contiguous,
                         Fill fill = Fill::normal, std::int64_t offset = 0) {
      cases.push_back({std::move(shape), type, std::move(options), layout, fill, offset});
    };
    const std::vector<SamplingOptions> rules = {
        {},
        {{"temperature", 0.7}, {"top_k", 50}, {"top_p", 0.9}},
        {{"temperature", 0}},
        {{"top_k", 100}, {"offset", 1}},
        {{"top_p", 0.95}, {"temperature", 0.3}},
        {{"min_p", 0.1}, {"S", 1}},
        {{"top_k", 200}, {"top_p", 0.5}, {"min_p", 0.05}, {"temperature", 1.5}},
        {{"top_k", 3}, {"min_p", 0.5}, {"offset", 1}},
        {{"temperature", 0.7}, {"top_p", 0.9}, {"seeds", 1}, {"offsets", 1}},
        {{"top_k", 30}, {"offset", 1}, {"seeds", 1}, {"S", 1}},
        {{"offsets", 1}},
    };
    for (const SamplingOptions& rule : rules) {
      for (std::int64_t n : {1, 2, 33, 64, 65, 513}) add({5, n}, rule);
      add({2, 2100}, rule);
      SamplingOptions ties = rule;
      ties["ties"] = 1;
      add({4, 300}, ties);
      for (Fill fill : {Fill::zeros, Fill::one_nan, Fill::minus_infinities, Fill::masked, Fill::one_infinity})
        add({3, 200}, rule, Layout::contiguous, fill);
    }
    const SamplingOptions all = {{"temperature", 0.8}, {"top_k", 90}, {"top_p", 0.9}};
    const SamplingOptions listed = {{"temperature", 2}, {"top_k", 20}, {"top_p", 0.8}};
    SamplingOptions requests = all;
    requests.insert({{"seeds", 1}, {"offsets", 1}});
    for (const SamplingOptions& rule : {all, listed, requests}) {
      add({1, 9001}, rule);
      add({0, 17}, rule);
      add({3, 0}, rule);
      add({3, 4, 5, 133}, rule);
      for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed,
                            Layout::transposed, Layout::broadcast})
        add({2, 3, 1131}, rule, layout);
      for (std::int64_t offset : {1, 3}) add({3, 1290}, rule, Layout::offset, Fill::normal, offset);
      for (Fill fill : {Fill::wide, Fill::denormals, Fill::huge, Fill::large_offset})
        add({3, 200}, rule, Layout::contiguous, fill);
      // All of a seed's 64 bits, and a counter that wraps.
      for (double seed : {8589934593., -1., -0x1p63})
        for (double offset : {-3., 4294967295.}) {
          SamplingOptions its = rule;
          its.insert({{"offset", 1}, {"seed_is", seed}, {"offset_is", offset}});
          add({5, 100}, its);
        }
    }
    // Nothing but the first token; probabilities that are halves, of which top_p takes one, not two.
    for (const SamplingOptions& rule : std::vector<SamplingOptions>{{{"top_p", 0}},
                                                                    {{"min_p", 1}},
                                                                    {{"top_p", 0.5}, {"top_k", 2}},
                                                                    {{"temperature", 1e-30}},
                                                                    {{"temperature", 1e30}},
                                                                    {{"temperature", 1e-300}},
                                                                    {{"temperature", 1e300}}})
      for (Fill fill : {Fill::normal, Fill::zeros, Fill::minus_infinities})
        add({3, 128}, rule, Layout::contiguous, fill);
  }
  return cases;
}

/// Whether rows bring seeds or offsets of their own.
inline bool has_numbers_of_rows(const Case& c) {
  return c.parameter("seeds") != 0 || c.parameter("offsets") != 0;
}

/// Rows of a vocabulary, by batches that decode.
inline BenchCases sampling_bench(const SamplingOptions& options) {
  BenchCases b;
  for (DType type : {DType::f32, DType::bf16}) {
    b.cache.push_back({{64, 4096}, type, options});
    b.memory.push_back({{2048, 128256}, type, options});
    for (std::int64_t rows : {1, 64, 512}) b.gpu.push_back({{rows, 128256}, type, options});
    b.gpu.push_back({{16384, 256}, type, options});
  }
  return b;
}

inline std::vector<Spec> sampling_specs() {
  const Tolerance exact{.exact = true, .reason = "comparisons, and sums of whole numbers"};
  const auto none = [](const Case&) { return 0.; };
  Spec top_k = spec_of({.function = "top_k", .oracle = oracles<TopKOracle>(), .tolerance = exact});
  top_k.flops = none;
  top_k.cases = top_k_cases;
  top_k.prepare = sampling_inputs;
  top_k.adjust = [](Case& c) {
    c.shape.back() = std::max<std::int64_t>(c.shape.back(), 1);
    c.parameters["k"] = std::min(c.parameter("k", 1), static_cast<double>(c.shape.back()));
  };
  top_k.bench = [] { return sampling_bench({{"k", 50}}); };

  Spec sample = spec_of({.function = "sample",
                         .oracle = oracles<SampleOracle>(),
                         .tolerance = exact,
                         .absent = {"offset", "seeds", "offsets"}});
  sample.flops = none;
  sample.cases = sample_cases;
  sample.prepare = sampling_inputs;
  // Without numbers of rows a row's place in the tensor decides, too.
  sample.operands = [operands = sample.operands](const Case& c) {
    std::vector<Operand> list = operands(c);
    if (has_numbers_of_rows(c)) return list;
    for (Operand& operand : list) operand.batched = false;
    return list;
  };
  sample.bench = [] { return sampling_bench({{"temperature", 0.8}, {"top_p", 0.9}}); };
  // Equal logits; seed, offset and those of rows 1.
  sample.huge_output = [](const Case& c, std::string_view, std::int64_t row) {
    const std::uint64_t key = 1 + (c.parameter("seeds") != 0);
    const std::uint64_t counter = (c.parameter("offset") != 0) + (c.parameter("offsets") != 0) +
                                  (has_numbers_of_rows(c) ? 0 : static_cast<std::uint64_t>(row));
    const auto columns = static_cast<std::uint64_t>(c.shape.back());
    return static_cast<double>(SampleRule::drawn(sample_random(key, counter), columns << 30) >> 30);
  };
  return {top_k, sample};
}

}  // namespace rooftile::harness
