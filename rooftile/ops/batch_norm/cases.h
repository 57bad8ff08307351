#pragma once
#include "rooftile/harness/letters.h"
#include "rooftile/ops/batch_norm/batch_norm.h"
#include "rooftile/ops/batch_norm/oracle.h"

namespace rooftile::harness {

/// Letters N, C, S: ResNet's planes of 56, 14 and 7, rows (S = 1), parts of a plane, planes of a segment.
/// `forward`: statistics and running ones are outputs, of which some may be absent.
inline std::vector<Case> batch_norm_cases(bool training, bool forward) {
  using Options = std::map<std::string, double>;
  std::vector<Case> cases;
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    const auto add = [&](Shape shape, Options options = {}, Layout layout = Layout::contiguous,
                         Fill fill = Fill::normal, std::int64_t offset = 0) {
      if (training && shape[0] * shape[2] == 1) return;
      if (!forward)
        std::erase_if(options, [](const auto& o) { return o.first == "mean" || o.first == "rstd"; });
      cases.push_back({std::move(shape), type, std::move(options), layout, fill, offset});
    };
    // The first few sets of parameters are those that the harness varies everything else with.
    add({3, 20, 49}, {});
    add({3, 20, 49}, {{"weight", 0}, {"bias", 0}, {"W", 1}});
    add({3, 20, 49}, {{"W", 1}, {"eps", 1e-3}, {"momentum", 0.5}, {"mean", 0}, {"G", 1}});
    add({4, 5, 196}, {{"weight", 0}, {"dbias", 0}, {"rstd", 0}, {"new_running_var", 0}, {"W", 1}});
    add({4, 5, 196}, {{"bias", 0}, {"dweight", 0}, {"new_running_mean", 0}, {"momentum", 1}});
    for (double momentum : {0., 1.}) add({2, 3, 7}, {{"momentum", momentum}});
    // Parts of a plane and of channels; planes of 1 to 3 elements; a channel; tails of each.
    for (Shape s :
         {Shape{2, 3, 2048}, Shape{2, 3, 2049}, Shape{1, 2, 12545}, Shape{40, 3, 3}, Shape{700, 2, 3},
          Shape{1, 1, 5000}, Shape{5000, 1, 1}, Shape{300, 65, 1}, Shape{2, 130, 16}, Shape{3, 33, 17},
          Shape{2, 1, 1}, Shape{1, 7, 2}, Shape{1, 4, 1}, Shape{2, 64, 127}, Shape{2, 8, 129}})
      add(s);
    for (Shape s : {Shape{0, 3, 4}, Shape{3, 0, 4}, Shape{3, 4, 0}}) add(s);
    // Channels are contiguous, whole vectors or not (transposed exchanges C and S in memory).
    for (Shape s : {Shape{2, 64, 200}, Shape{3, 33, 70}, Shape{1, 200, 2500}, Shape{30, 8, 9}})
      add(s, {}, Layout::transposed);
    for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::broadcast})
      add({3, 7, 70}, {}, layout);
    for (std::int64_t offset : {1, 3, 8}) add({2, 5, 300}, {}, Layout::offset, Fill::normal, offset);
    // E[x²] - E[x]² loses all of these; 1024 channels (TileOPs 1728).
    for (Fill fill : {Fill::large_offset, Fill::constant_rows, Fill::wide, Fill::zeros, Fill::one_nan,
                      Fill::one_infinity, Fill::denormals})
      add({3, 4, 700}, {}, Layout::contiguous, fill);
    for (Layout layout : {Layout::contiguous, Layout::transposed})
      add({4, 40, 90}, {{"eps", 1e-12}}, layout, Fill::large_offset);
    add({2, 1024, 6}, {});
  }
  // More segments than a GPU's warp joins at once; more channels than a part of a row has there.
  cases.push_back({{1, 2, 70001}, DType::f32, {}});
  cases.push_back({{2, 4200, 3}, DType::f32, {}, Layout::transposed});
  return cases;
}

inline BenchCases batch_norm_bench() {
  BenchCases b;
  for (DType type : {DType::f32, DType::bf16, DType::f16}) {
    b.cache.push_back({{16, 8, 256}, type, {}});
    b.memory.push_back({{64, 256, 3136}, type, {}});
    b.gpu.push_back({{64, 256, 3136}, type, {}});
    b.gpu.push_back({{256, 512, 196}, type, {}});
    b.gpu.push_back({{64, 256, 3136}, type, {}, Layout::transposed});
    b.gpu.push_back({{65536, 1024, 1}, type, {}});
  }
  return b;
}

/// Elements of a plane go to lanes in turn, 16 of them on a CPU; then the lanes in halves.
inline double batch_norm_chain(const Case& c, std::string_view) {
  const NormSegments segments = NormCase(c).segments();
  if (segments.count == 0) return 1;
  return static_cast<double>(std::min(segments.planes, segments.n) * ((segments.part + 15) / 16) + 4);
}

inline Spec batch_norm_spec(const char* function, const OracleFunctions& oracle, const char* reason,
                            bool training, bool forward) {
  Spec spec = spec_of({.function = function,
                       .oracle = oracle,
                       .tolerance = {.c = 4,
                                     .chain = batch_norm_chain,
                                     .accumulator = [](const Case&) { return DType::f32; },
                                     .reason = reason},
                       .independent = "C"});
  spec.standard_shape = [](const Shape& s) { return Shape{2, s[0], s[1]}; };
  spec.bench = batch_norm_bench;
  spec.cases = [=] { return batch_norm_cases(training, forward); };
  spec.repeats = false;
  return spec;
}

inline std::vector<Spec> batch_norm_specs() {
  static const auto elements = [](const Case& c) { return NormCase(c).elements(); };
  static const auto channels = [](const Case& c) { return static_cast<double>(NormCase(c).c); };
  static const auto given = [](const Case& c, const char* name) { return c.parameter(name, 1) != 0; };

  Spec forward =
      batch_norm_spec("batch_norm", oracles<BatchNormOracle>(),
                      "two sums of a segment; the shifted variance, its root and two products", true, true);
  // A running statistic is read for the new one alone.
  forward.bytes = [its = forward.bytes](const Case& c) {
    const int unread = (given(c, "running_mean") && !given(c, "new_running_mean")) +
                       (given(c, "running_var") && !given(c, "new_running_var"));
    return its(c) - 4 * unread * channels(c);
  };
  forward.flops = [](const Case& c) {
    return elements(c) * (6 + given(c, "weight") + given(c, "bias")) +
           channels(c) * (5 + 3 * given(c, "new_running_mean") + 5 * given(c, "new_running_var"));
  };
  forward.largest_exponent = 50;
  forward.suits = [its = forward.suits](const Case& c) {
    const bool state = (given(c, "running_mean") || !given(c, "new_running_mean")) &&
                       (given(c, "running_var") || !given(c, "new_running_var"));
    const double eps = c.parameter("eps", 1e-5);
    return its(c) && state && (c.fill != Fill::denormals || eps > 1e-30);
  };
  forward.refuses = [](const Case& c) -> const char* {
    return NormCase(c).size() == 1 && NormCase(c).c > 0 ? "training needs 2" : nullptr;
  };

  Spec inference = batch_norm_spec("batch_norm_inference", oracles<BatchNormInferenceOracle>(),
                                   "a difference, a root rounded once, a product and a sum", false, false);
  inference.tolerance.chain = [](const Case&, std::string_view) { return 1.; };
  inference.flops = [](const Case& c) {
    return elements(c) * (2 + given(c, "bias")) + channels(c) * (3 + given(c, "weight"));
  };
  inference.largest_exponent = 50;
  inference.operands = [operands = inference.operands](const Case& c) {
    std::vector<Operand> list = operands(c);
    for (Operand& operand : list)
      operand.positive = operand.positive || std::string_view(operand.name) == "running_var";
    return list;
  };
  inference.prepare = [](const Case&, Arrays<double>& inputs) {
    for (double& v : inputs["running_var"].values()) v = std::fabs(v);
  };

  Spec backward = batch_norm_spec("batch_norm_backward", oracles<BatchNormBackwardOracle>(),
                                  "two sums of a segment, and three products", true, false);
  backward.flops = [](const Case& c) {
    return elements(c) * 9 + channels(c) * (4 + given(c, "weight") + given(c, "dweight"));
  };
  backward.largest_exponent = 16;
  // Of an infinity times a difference of 0 it is chance where the NaN begins.
  backward.suits = [its = backward.suits](const Case& c) {
    return its(c) && c.fill != Fill::masked && c.fill != Fill::one_infinity &&
           c.fill != Fill::minus_infinities;
  };
  return {forward, inference, backward};
}

}  // namespace rooftile::harness
