#pragma once
#include <algorithm>

#include "rooftile/harness/gpu_cases.h"
#include "rooftile/harness/row_spec.h"
#include "rooftile/ops/cross_entropy/cross_entropy.h"
#include "rooftile/ops/cross_entropy/oracle.h"

namespace rooftile::harness {

// Parameters of a case: the options by name; "weight": class weights are there; "i32": the target's dtype;
// "outputs": 0 all, 1 without lse, 2 without losses (a workspace has them), 3 loss alone; "reduced": the
// backward gets 0 dlosses, 1 dloss, 2 both, 3 none. "targets": 0 every fifth ignored, 1 some outside, 2 all
// ignored, 3 probability "probability" each.

inline CrossEntropyOptions cross_entropy_options(const Case& c, const char* variant) {
  const CrossEntropyNumbers n(c);
  return {n.mean ? Reduction::mean : Reduction::sum, n.ignored, static_cast<float>(n.smoothing),
          static_cast<float>(n.z), variant};
}
inline double cross_entropy_elements(const Case& c) {
  double n = 1;
  for (std::int64_t s : c.shape) n *= static_cast<double>(s);
  return n;
}
inline double cross_entropy_rows(const Case& c) { return static_cast<double>(rows_of_case(c)); }

/// The operands that both directions have.
inline std::vector<Operand> cross_entropy_inputs(const Case& c, bool batched = true) {
  const Shape outer(c.shape.begin(), c.shape.end() - 1);
  std::vector<Operand> operands = {
      {"logits", Operand::Kind::input, c.dtype, c.shape, batched},
      {"target", Operand::Kind::input, c.parameter("i32") != 0 ? DType::i32 : DType::i64, outer, batched}};
  operands.back().below =
      std::max<std::int64_t>(c.shape.back(), 1);  // where nobody prepares them, as in a bench
  if (c.parameter("weight") != 0)
    operands.push_back(
        {"weight", Operand::Kind::input, DType::f32, {c.shape.back()}, false, nullptr, false, true});
  return operands;
}

/// Classes, weights and probabilities that mean something.
inline void cross_entropy_prepare(const Case& c, Arrays<double>& inputs) {
  const CrossEntropyNumbers n(c);
  const std::int64_t classes = c.shape.back();
  const int kind = static_cast<int>(c.parameter("targets"));
  std::vector<double>& target = inputs["target"].values();
  std::vector<double>& x = inputs["logits"].values();
  constexpr double kOutside[] = {-1, 0, 1, -0x1p31, 0x1p31 - 1, -0x1p40, 0x1p40, 0x1p32};  // 0, 1: from C on
  for (std::size_t i = 0; i < target.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    target[i] = classes > 0 ? static_cast<double>((row * 7919 + classes / 2) % classes) : 0;
    if (kind == 0 && row % 5 == 3) target[i] = static_cast<double>(n.ignored);
    if (kind == 2) target[i] = static_cast<double>(n.ignored);
    if (kind == 1 && row % 3 == 1) {
      target[i] = kOutside[row / 3 % (c.parameter("i32") != 0 ? 5 : 8)];
      if (target[i] == 0 || target[i] == 1) target[i] += static_cast<double>(classes);
    }
    if (kind == 3 && classes > 1) {
      double sum = 0;
      const auto first = i * static_cast<std::size_t>(classes);
      const std::size_t y = first + static_cast<std::size_t>(target[i]);
      for (std::size_t k = first; k < first + static_cast<std::size_t>(classes); ++k)
        if (k != y) sum += std::exp(x[k] = rounded_to(c.dtype, x[k]));
      const double p = c.parameter("probability");
      x[y] = std::log(sum * p / (1 - p));
    }
  }
  // Between 0 and 2.
  if (inputs.has("weight")) {
    std::vector<double>& weight = inputs["weight"].values();
    for (std::size_t i = 0; i < weight.size(); ++i)
      weight[i] = static_cast<double>(i * 2654435761u % 1000 + 1) / 500;
  }
}
/// The forward's log-sum-exp, and gradients whose products are numbers.
inline void cross_entropy_prepare_backward(const Case& c, Arrays<double>& inputs) {
  cross_entropy_prepare(c, inputs);
  const std::vector<double>& x = inputs["logits"].values();
  std::vector<double>& lse = inputs["lse"].values();
  const auto classes = static_cast<std::size_t>(c.shape.back());
  for (std::size_t row = 0; row < lse.size(); ++row) {
    double most = -HUGE_VAL, sum = 0;
    for (std::size_t i = 0; i < classes; ++i)
      most = std::fmax(most, rounded_to(c.dtype, x[row * classes + i]));
    for (std::size_t i = 0; i < classes; ++i)
      sum += std::exp(rounded_to(c.dtype, x[row * classes + i]) - most);
    lse[row] = most + std::log(sum);
  }
  for (const char* name : {"dlosses", "dloss"})
    if (inputs.has(name))
      for (double& d : inputs[name].values())
        if (std::fabs(d) > 1e6) d = std::remainder(d, 1000);
}

/// What both directions try.
inline std::vector<Case> cross_entropy_cases(bool forward) {
  std::vector<Case> cases;
  using Parameters = std::map<std::string, double>;
  const auto both = [&](Parameters p, double value) {
    if (!forward) p["reduced"] = value;
    return p;
  };
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    const auto add = [&](Shape shape, Parameters p, Fill fill = Fill::normal,
                         Layout layout = Layout::contiguous) {
      cases.push_back({shape, type, std::move(p), layout, fill});
    };
    // The first few sets of parameters are those that the harness varies everything else with.
    add({11, 300}, both({{"label_smoothing", 0.1}, {"weight", 1}}, 0));
    add({11, 300}, both({{"label_smoothing", 0.25}, {"z_loss", 1e-4}, {"reduction", 1}, {"i32", 1}}, 1));
    add({11, 300}, both({{"weight", 1}}, 2));
    // Every row ignored (aiter 5165); weights, smoothing and an ignored -1 (PyTorch 69339).
    for (double sum : {0., 1.}) add({6, 40}, both({{"targets", 2}, {"reduction", sum}}, 1));
    for (double sum : {0., 1.})
      add({12, 7},
          both({{"ignore_index", -1}, {"label_smoothing", 0.1}, {"weight", 1}, {"reduction", sum}}, 1));
    add({12, 7}, both({{"ignore_index", 3}}, 1));
    for (double i32 : {0., 1.})
      for (double weight : {0., 1.})
        add({25, 17}, both({{"targets", 1}, {"i32", i32}, {"weight", weight}}, 1));
    add({9, 70}, both({{"label_smoothing", 1}, {"z_loss", 0.5}}, 1));
    // From one class to the vocabularies of GPT-2 and Llama 3; on a GPU rows of a warp, a block, segments.
    for (std::int64_t classes : {1, 2, 3, 17, 1000, 1025}) {
      add({7, classes}, both({}, 1));
      add({7, classes}, both({{"label_smoothing", 0.1}, {"weight", 1}}, 1));
    }
    for (Fill fill : {Fill::minus_infinities, Fill::masked, Fill::huge, Fill::one_infinity, Fill::one_nan,
                      Fill::large_offset})
      add({5, 1111}, both({}, 1), fill);
    for (Layout layout : {Layout::padded_rows, Layout::transposed, Layout::reversed})
      add({3, 5, 130}, both({{"label_smoothing", 0.1}, {"weight", 1}}, 1), Fill::normal, layout);
    // softmax(target) = 0.9, 0.99, 0.999 at V = 32000 (Liger 1329).
    for (double p : {0.9, 0.99, 0.999})
      if (type != DType::f16)
        add({2, 32000}, both({{"targets", 3}, {"probability", p}, {"reduction", 1}}, 1));
    add({2, 50257}, both({}, 1));
  }
  cases.push_back({{2, 128256}, DType::bf16, both({{"label_smoothing", 0.1}}, 1)});
  cases.push_back({{1, 128256}, DType::f32, both({}, 1), Layout::contiguous, Fill::masked});
  cases.push_back({{1, (1 << 20) + 77}, DType::f32, both({{"weight", 1}, {"label_smoothing", 0.1}}, 1)});
  if (forward)
    for (double outputs : {1., 2., 3.}) cases.push_back({{9, 100}, DType::f32, {{"outputs", outputs}}});
  // More rows than a block of a GPU adds up.
  cases.push_back({{9001, 3}, DType::f32, both({{"weight", 1}}, 1)});
  return cases;
}

/// In a lane along a segment (the fewest lanes: 16, baseline), then segment by segment, then across.
inline double cross_entropy_chain(const Case& c, std::string_view) {
  const double columns = static_cast<double>(c.shape.back());
  return std::ceil(std::fmin(columns, 4096) / 16) + std::ceil(columns / 4096) + 16;
}

inline BenchCases cross_entropy_bench() {
  BenchCases b;
  for (DType type : {DType::f32, DType::bf16, DType::f16}) {
    b.cache.push_back({{64, 1024}, type, {}});
    b.memory.push_back({{4096, 32000}, type, {}});
    for (Shape shape : {Shape{8192, 128256}, Shape{8192, 32000}, Shape{4096, 50257}, Shape{65536, 1024}})
      b.gpu.push_back({shape, type, {}});
  }
  return b;
}

inline std::vector<Option> cross_entropy_option_list() {
  return {{"reduction"},
          {"label_smoothing", Option::Kind::real, 0, 0, 1},
          {"z_loss", Option::Kind::real, 0, 0, 100},
          {"weight"},
          {"i32"},
          {"targets", Option::Kind::choice, 0, 0, 1}};
}

inline std::vector<Spec> cross_entropy_specs() {
  const auto smooths = [](const Case& c) { return c.parameter("label_smoothing") > 0; };
  static const auto smoothed = smooths;
  static const auto outputs_of = [](const Case& c, const Arguments& a) -> CrossEntropyOutputs {
    const int which = static_cast<int>(c.parameter("outputs"));
    CrossEntropyOutputs out;
    out.loss = a.out("loss");
    if (which < 2) out.losses = a.out("losses");
    if (which % 2 == 0) out.lse = a.out("lse");
    return out;
  };
  Spec forward{
      .function = "cross_entropy",
      .axes = "rows x classes (more outer dimensions may precede)",
      .dtypes = {DType::f32, DType::f16, DType::bf16},
      .operands = [](const Case& c) -> std::vector<Operand> {
        std::vector<Operand> operands = cross_entropy_inputs(c);
        const Shape outer(c.shape.begin(), c.shape.end() - 1);
        const int which = static_cast<int>(c.parameter("outputs"));
        operands.push_back({"loss", Operand::Kind::output, DType::f32, {}, false});
        if (which < 2)
          operands.push_back({"losses", Operand::Kind::output, DType::f32, outer, true, nullptr, true, true});
        if (which % 2 == 0)
          operands.push_back({"lse", Operand::Kind::output, DType::f32, outer, true, nullptr, true, true});
        return operands;
      },
      .call =
          [](const Queue& q, const Case& c, const Arguments& a, const char* variant, Workspace workspace) {
            return cross_entropy(q, {a.in("logits"), a.in("target"), a.in("weight")}, outputs_of(c, a),
                                 cross_entropy_options(c, variant), workspace);
          },
      .workspace =
          [](const Queue& q, const Case& c, const Arguments& a, std::size_t& bytes) {
            return cross_entropy_workspace(q, {a.in("logits"), a.in("target"), a.in("weight")},
                                           outputs_of(c, a), bytes);
          },
      .oracle = oracles<CrossEntropyOracle>(),
      .flops =
          [](const Case& c) {
            const double weighted = c.parameter("weight");
            return (4 + (smoothed(c) ? 1 + weighted : 0)) * cross_entropy_elements(c) +
                   10 * cross_entropy_rows(c) + weighted * static_cast<double>(c.shape.back());
          },
      .bytes =
          [](const Case& c) {
            const double rows = cross_entropy_rows(c);
            const int which = static_cast<int>(c.parameter("outputs"));
            return cross_entropy_elements(c) * bits(c.dtype) / 8 + rows * (c.parameter("i32") != 0 ? 4 : 8) +
                   (c.parameter("weight") != 0 ? 4 * static_cast<double>(c.shape.back()) : 0) +
                   (which == 0   ? 8 * rows + 4
                    : which == 2 ? 4
                                 : 4 * rows);
          },
      .tolerance = {.c = 2,
                    .chain = cross_entropy_chain,
                    .accumulator = [](const Case&) { return DType::f32; },
                    .reason =
                        "an ulp for the exponential, one for the sum's rescaling, one for its logarithm"},
      .excuses = {},
      .cases = [] { return cross_entropy_cases(true); },
      .bench = cross_entropy_bench,
      .options = cross_entropy_option_list(),
      .prepare = cross_entropy_prepare,
  };
  Spec backward{
      .function = "cross_entropy_backward",
      .axes = forward.axes,
      .dtypes = forward.dtypes,
      // The mean's divisor is of all rows: there, rows know of each other.
      .operands = [](const Case& c) -> std::vector<Operand> {
        const bool reduced = c.parameter("reduced") != 0, apart = !reduced || c.parameter("reduction") != 0;
        std::vector<Operand> operands = cross_entropy_inputs(c, apart);
        const Shape outer(c.shape.begin(), c.shape.end() - 1);
        operands.push_back({"lse", Operand::Kind::input, DType::f32, outer, apart});
        const int which = static_cast<int>(c.parameter("reduced"));
        if (which == 0 || which == 2)
          operands.push_back(
              {"dlosses", Operand::Kind::input, DType::f32, outer, apart, nullptr, true, true});
        if (which == 1 || which == 2)
          operands.push_back({"dloss", Operand::Kind::input, DType::f32, {}, false, nullptr, true, true});
        operands.push_back({"dlogits", Operand::Kind::output, c.dtype, c.shape, true, "logits"});
        return operands;
      },
      .call =
          [](const Queue& q, const Case& c, const Arguments& a, const char* variant, Workspace) {
            return cross_entropy_backward(
                q,
                {a.in("logits"), a.in("target"), a.in("weight"), a.in("lse"), a.in("dlosses"), a.in("dloss")},
                a.out("dlogits"), cross_entropy_options(c, variant));
          },
      .oracle = oracles<CrossEntropyBackwardOracle>(),
      .flops =
          [](const Case& c) {
            const double weighted = c.parameter("weight");
            return (4 + (smoothed(c) ? 2 : 0)) * cross_entropy_elements(c) + 6 * cross_entropy_rows(c) +
                   weighted * static_cast<double>(c.shape.back());
          },
      .bytes =
          [](const Case& c) {
            const double rows = cross_entropy_rows(c);
            return 2 * cross_entropy_elements(c) * bits(c.dtype) / 8 +
                   rows * (c.parameter("i32") != 0 ? 4 : 8) +
                   (c.parameter("weight") != 0 ? 4 * static_cast<double>(c.shape.back()) : 0) + 4 * rows +
                   (c.parameter("reduced") == 1 || c.parameter("reduced") == 2 ? 4 : 0) +
                   (c.parameter("reduced") == 0 || c.parameter("reduced") == 2 ? 4 * rows : 0);
          },
      .tolerance = {.c = 6,
                    .chain = [](const Case&, std::string_view) { return 1.; },
                    .accumulator = [](const Case&) { return DType::f32; },
                    .reason =
                        "an exponential of a GPU's special function unit is off by 5 ulps, and one for each "
                        "unit of its argument; one each for its factor, product and difference"},
      .excuses = {},
      .cases = [] { return cross_entropy_cases(false); },
      .bench = cross_entropy_bench,
      .gradient_of = "cross_entropy",
      .options =
          [] {
            auto options = cross_entropy_option_list();
            options.push_back({"reduced", Option::Kind::choice, 0, 0, 3});
            return options;
          }(),
      // 2·z·lse is a float: with the largest ones it is infinite.
      .suits =
          [](const Case& c) {
            const bool huge = c.fill == Fill::huge || c.fill == Fill::huge_rows;
            return !huge || c.dtype == DType::f16 || c.parameter("z_loss") == 0;
          },
      .prepare = cross_entropy_prepare_backward,
  };
  return {forward, backward};
}

}  // namespace rooftile::harness
