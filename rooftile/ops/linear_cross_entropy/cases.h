#pragma once
#include <algorithm>

#include "rooftile/harness/letters.h"
#include "rooftile/harness/row_spec.h"
#include "rooftile/ops/linear_cross_entropy/linear_cross_entropy.h"
#include "rooftile/ops/linear_cross_entropy/oracle.h"

namespace rooftile::harness {

// Parameters of a case beside options and operands: "targets": 0 every fifth ignored, 1 some outside, 2 all
// ignored.

inline double linear_cross_entropy_rows(const Case& c) {
  double n = 1;
  for (std::size_t d = 0; d + 2 < c.shape.size(); ++d) n *= static_cast<double>(c.shape[d]);
  return n;
}

/// Classes and weights that mean something, and logits of about 1.
inline void linear_cross_entropy_prepare(const Case& c, Arrays<double>& inputs) {
  const LinearCrossEntropySizes sizes(c);
  const double ignored = static_cast<double>(CrossEntropyNumbers(c).ignored);
  const double outside[] = {-1, static_cast<double>(sizes.classes), -0x1p31, 0x1p31 - 1};
  const int kind = static_cast<int>(c.parameter("targets"));
  std::vector<double>& target = inputs["target"].values();
  for (std::size_t i = 0; i < target.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    target[i] = sizes.classes > 0 ? static_cast<double>((row * 7919 + sizes.classes / 2) % sizes.classes) : 0;
    if (kind == 2 || (kind == 0 && row % 5 == 3)) target[i] = ignored;
    if (kind == 1 && row % 3 == 1) target[i] = outside[row / 3 % 4];
  }
  if (sizes.channels > 0)
    for (double& v : inputs["weight"].values()) v /= std::sqrt(static_cast<double>(sizes.channels));
  // Between 0 and 2.
  if (inputs.has("class_weight")) {
    std::vector<double>& weight = inputs["class_weight"].values();
    for (std::size_t i = 0; i < weight.size(); ++i)
      weight[i] = static_cast<double>(i * 2654435761u % 1000 + 1) / 500;
  }
}
/// The forward's log-sum-exp, and gradients whose products are numbers.
inline void linear_cross_entropy_prepare_backward(const Case& c, Arrays<double>& inputs) {
  linear_cross_entropy_prepare(c, inputs);
  const LinearCrossEntropySizes sizes(c);
  const auto channels = static_cast<std::size_t>(sizes.channels),
             classes = static_cast<std::size_t>(sizes.classes);
  const auto rounded = [&](const char* name, DType type) {
    std::vector<double> values;
    if (inputs.has(name))
      for (double v : inputs[name].values()) values.push_back(rounded_to(type, v));
    return values;
  };
  const std::vector<double> hidden = rounded("hidden", c.dtype), weight = rounded("weight", c.dtype),
                            bias = rounded("bias", DType::f32);
  std::vector<double>& lse = inputs["lse"].values();
  std::vector<double> logits(classes);
  for (std::size_t row = 0; row < lse.size(); ++row) {
    double most = -HUGE_VAL, sum = 0;
    for (std::size_t y = 0; y < classes; ++y) {
      logits[y] = bias.empty() ? 0 : bias[y];
      for (std::size_t d = 0; d < channels; ++d)
        logits[y] += hidden[row * channels + d] * weight[y * channels + d];
      most = std::fmax(most, logits[y]);
    }
    for (double x : logits) sum += std::exp(x - most);
    lse[row] = most + std::log(sum);
  }
  for (const char* name : {"dlosses", "dloss"})
    if (inputs.has(name))
      for (double& d : inputs[name].values())
        if (std::fabs(d) > 1e6) d = std::remainder(d, 1000);
}

/// What both directions try. Letters D, V behind the outer sizes.
inline std::vector<Case> linear_cross_entropy_cases(bool forward) {
  using Parameters = std::map<std::string, double>;
  std::vector<Case> cases;
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    const auto add = [&](Shape shape, Parameters p, Layout layout = Layout::contiguous,
                         Fill fill = Fill::normal, std::int64_t offset = 0) {
      cases.push_back({std::move(shape), type, std::move(p), layout, fill, offset});
    };
    // The first few sets of parameters are those that the harness varies everything else with: chunks that
    // rows fill and do not, the whole, the reduced gradient and the rows'.
    add({11, 20, 60}, forward ? Parameters{{"chunk", 4}, {"bias", 1}}
                              : Parameters{{"chunk", 4}, {"bias", 1}, {"dloss", 0}});
    add({11, 20, 60}, {{"chunk", 4}, {"label_smoothing", 0.1}, {"class_weight", 1}});
    add({11, 20, 60}, forward ? Parameters{{"z_loss", 1e-4}, {"reduction", 1}, {"I", 1}, {"losses", 0}}
                              : Parameters{{"z_loss", 1e-4}, {"reduction", 1}, {"I", 1}, {"dlosses", 0}});
    add({11, 20, 60}, forward ? Parameters{{"chunk", 3}, {"losses", 0}, {"lse", 0}}
                              : Parameters{{"chunk", 3}, {"G", 1}, {"dbias", 0}, {"dlosses", 0}});
    add({11, 20, 60},
        forward ? Parameters{{"lse", 0}} : Parameters{{"chunk", 5}, {"dweight", 0}, {"dloss", 0}});
    // Each chunk size of a few rows; one row to a chunk; chunks longer than the rows are many.
    for (double chunk : {1., 2., 3., 5., 6., 7., 100.})
      add({6, 9, 33}, {{"chunk", chunk}, {"class_weight", 1}, {"targets", chunk == 2}});
    // Targets that count unlike in each chunk: a mean of the chunks' means is another number.
    for (double sum : {0., 1.}) add({13, 8, 24}, {{"chunk", 5}, {"reduction", sum}, {"ignore_index", 3}});
    for (double sum : {0., 1.}) add({6, 12, 40}, {{"targets", 2}, {"reduction", sum}, {"chunk", 4}});
    for (double i32 : {0., 1.}) add({25, 5, 17}, {{"targets", 1}, {"I", i32}, {"chunk", 8}});
    add({9, 7, 70}, {{"label_smoothing", 1}, {"z_loss", 0.5}, {"bias", 1}, {"chunk", 4}});
    // Several outer sizes: a chunk within the last, of some of the last, of more than one.
    for (double chunk : {2., 3., 7., 12., 50.})
      for (Layout layout : {Layout::contiguous, Layout::padded_rows, Layout::transposed, Layout::reversed,
                            Layout::strided_columns, Layout::broadcast})
        add({3, 2, 5, 12, 20}, {{"chunk", chunk}, {"bias", 1}}, layout);
    // A scalar target, and what is empty.
    for (Shape shape : {Shape{12, 20}, Shape{0, 12, 20}, Shape{3, 0, 12, 20}, Shape{5, 0, 20},
                        Shape{5, 12, 0}, Shape{5, 12, 1}, Shape{1, 12, 20}, Shape{1, 1, 1}, Shape{5, 0, 0}})
      add(shape, {{"bias", 1}, {"chunk", 2}});
    // Both sides of what products and rows are cut by.
    for (std::int64_t classes : {2, 3, 15, 16, 17, 31, 65, 128, 129, 1025})
      add({7, 16, classes}, {{"chunk", 4}});
    for (std::int64_t channels : {1, 2, 8, 31, 64, 65, 300}) add({7, channels, 50}, {{"chunk", 4}});
    add({130, 40, 130}, {{"bias", 1}});
    add({130, 40, 130}, {{"chunk", 64}});
    for (std::int64_t offset : {1, 3, 8})
      add({9, 16, 40}, {{"chunk", 4}}, Layout::offset, Fill::normal, offset);
    for (Fill fill : {Fill::one_infinity, Fill::one_nan, Fill::denormals, Fill::zeros, Fill::positive})
      add({5, 16, 40}, {{"chunk", 2}, {"bias", 1}}, Layout::contiguous, fill);
  }
  return cases;
}

inline BenchCases linear_cross_entropy_bench() {
  BenchCases b;
  for (DType type : {DType::f32, DType::bf16}) {
    b.cache.push_back({{64, 128, 1024}, type, {}});
    b.memory.push_back({{4096, 1024, 32000}, type, {}});
  }
  for (const Shape& shape : {Shape{8192, 4096, 32000}, Shape{8192, 4096, 128256}, Shape{32768, 2048, 50304}})
    b.gpu.push_back({shape, DType::bf16, {}});
  for (std::int64_t tokens = 16; tokens <= 1 << 18; tokens *= 2)  // beside a weight of 16 KiB
    b.sweep.push_back({{tokens, 64, 64}, DType::f32, {}});
  return b;
}

inline Spec linear_cross_entropy_spec(const char* function, const OracleFunctions& oracle,
                                      std::vector<std::string> absent, Tolerance tolerance) {
  Spec spec = spec_of({.function = function, .oracle = oracle, .tolerance = tolerance, .absent = absent});
  spec.bench = linear_cross_entropy_bench;
  std::erase_if(spec.options, [](const Option& o) { return std::string_view(o.name) == "ignore_index"; });
  for (Option& o : spec.options)
    if (std::string_view(o.name) == "z_loss") o.most = 100;
  spec.options.push_back({"targets", Option::Kind::choice, 0, 0, 1});
  spec.standard_shape = [](const Shape& s) { return Shape{s[0], 1 + (31 * s[0] + 17 * s[1]) % 13, s[1]}; };
  spec.gpu_plan = [](const Case&) -> std::vector<std::string> {
    return {
        "no kernels of its own: `rooftile why gemm` and `rooftile why cross_entropy` tell what theirs "
        "choose"};
  };
  spec.largest_exponent = 2;  // logits stay where an exponential has digits
  spec.suits = [its = spec.suits](const Case& c) {
    return its(c) && c.fill != Fill::large_offset && c.fill != Fill::wide && c.fill != Fill::huge &&
           c.fill != Fill::huge_rows && c.fill != Fill::far_rows;
  };
  return spec;
}

inline std::vector<Spec> linear_cross_entropy_specs() {
  const auto logits = [](const Case& c) {
    return linear_cross_entropy_rows(c) * static_cast<double>(c.shape.back());
  };
  const auto smooths = [](const Case& c) { return c.parameter("label_smoothing") > 0 ? 1. : 0.; };
  // Of a logit: its products and sums, its bias.
  const auto flops_of_logit = [](const Case& c) {
    return 2 * static_cast<double>(c.shape[c.shape.size() - 2]) + (c.parameter("bias") != 0 ? 1 : 0);
  };
  Spec forward = linear_cross_entropy_spec(
      "linear_cross_entropy", oracles<LinearCrossEntropyOracle>(), {"bias", "class_weight"},
      {.c = 2,
       // A logit's, a lane's along a segment of cross_entropy, and segment by segment.
       .chain =
           [](const Case& c, std::string_view) {
             const double classes = static_cast<double>(c.shape.back());
             return static_cast<double>(c.shape[c.shape.size() - 2]) + std::ceil(classes / 16) + 16;
           },
       .accumulator = [](const Case&) { return DType::f32; },
       .reason = "a logit's chain of fused multiply-adds in f32, then cross_entropy's"});
  forward.flops = [=](const Case& c) {
    const double weighted = c.parameter("class_weight");
    return (flops_of_logit(c) + 4 + smooths(c) * (1 + weighted)) * logits(c) +
           10 * linear_cross_entropy_rows(c) + weighted * static_cast<double>(c.shape.back());
  };
  forward.cases = [] { return linear_cross_entropy_cases(true); };
  forward.prepare = linear_cross_entropy_prepare;

  Spec backward = linear_cross_entropy_spec(
      "linear_cross_entropy_backward", oracles<LinearCrossEntropyBackwardOracle>(), {"bias", "class_weight"},
      {.c = 2,
       .chain =
           [](const Case& c, std::string_view) {
             const double classes = static_cast<double>(c.shape.back()),
                          channels = static_cast<double>(c.shape[c.shape.size() - 2]);
             return std::fmax(std::fmax(classes, channels), linear_cross_entropy_rows(c)) + 9;
           },
       .accumulator = [](const Case&) { return DType::f32; },
       .factor_rounding =
           [](const Case& c, std::string_view) {
             return c.dtype == DType::f32 ? 0 : c.dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
           },
       .reason =
           "a logit's chain of fused multiply-adds, cross_entropy_backward's 6 roundings (9 more terms of "
           "the chain make 6 of 2), a chain along the classes or the rows"});
  backward.flops = [=](const Case& c) {
    const double weighted = c.parameter("class_weight"),
                 channels = static_cast<double>(c.shape[c.shape.size() - 2]);
    return (flops_of_logit(c) + 4 + 2 * smooths(c) + 2 * channels +
            (c.parameter("dweight", 1) != 0 ? 2 * channels : 0) + (c.parameter("dbias", 1) != 0 ? 1 : 0)) *
               logits(c) +
           6 * linear_cross_entropy_rows(c) + weighted * static_cast<double>(c.shape.back());
  };
  backward.cases = [] { return linear_cross_entropy_cases(false); };
  backward.prepare = linear_cross_entropy_prepare_backward;
  backward.repeats = false;  // lse belongs to hidden and weight
  // The mean's divisor is of all rows: there, rows know of each other.
  backward.operands = [its = backward.operands](const Case& c) {
    const bool reduced = c.parameter("dloss", 1) != 0 || c.parameter("dlosses", 1) == 0;
    std::vector<Operand> operands = its(c);
    for (Operand& o : operands)
      if (reduced && c.parameter("reduction") == 0 && o.kind == Operand::Kind::input) o.batched = false;
    return operands;
  };
  return {forward, backward};
}

}  // namespace rooftile::harness
