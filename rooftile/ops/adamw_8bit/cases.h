#pragma once
#include "rooftile/harness/gpu_cases.h"
#include "rooftile/harness/letters.h"
#include "rooftile/ops/adamw_8bit/oracle.h"

namespace rooftile::harness {

/// Codes of all values, scales that are not negative, a counter that counts. Before a first step scales are
/// 0.
inline void adamw_8bit_prepare(const Case& c, Arrays<double>& inputs) {
  for (auto& [name, array] : inputs.all()) {
    std::vector<double>& values = array.values();
    const bool scales = name.find("absmax") != std::string::npos;
    if (scales)
      for (double& x : values) x = c.parameter("begins") != 0 ? 0 : std::fabs(x);
    else if (name[0] == 'v' || (name[0] == 'm' && name[1] != 'a'))
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<double>((i * 167 + (name[0] == 'v' ? 5 : 0)) % 256);
    if (name == "steps") values[0] = c.parameter("done", 1000);
    if (name == "found_inf") values[0] = c.parameter("found");
    if (name == "gradient_scale") values[0] = c.parameter("scale", 0.37);
  }
}

inline std::vector<Case> adamw_8bit_cases() {
  std::vector<Case> cases;
  using Parameters = std::map<std::string, double>;
  const Parameters counted{{"gradient_scale", 1}, {"found_inf", 1}, {"lr", 0.5}};
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    const auto add = [&](Shape shape, Parameters p, Fill fill = Fill::normal,
                         Layout layout = Layout::contiguous, std::int64_t offset = 0) {
      cases.push_back({std::move(shape), type, std::move(p), layout, fill, offset});
    };
    const auto with = [&](Parameters p) {
      p.insert(counted.begin(), counted.end());
      return p;
    };
    // The first few sets of parameters are those that the harness varies everything else with.
    add({11, 300}, {{"lr", 0.25}, {"weight_decay", 0.5}, {"step", 2}, {"steps", 0}});
    add({11, 300}, with({{"G", 1}, {"master", 1}, {"maximize", 1}}));
    add({11, 300}, with({{"found", 1}, {"master", 1}, {"tensors", 2}}));
    for (double done : {0., 1e6, 0x1p40}) add({200}, with({{"done", done}, {"begins", 1}}));
    for (double tensors : {2., type == DType::bf16 ? 55. : 3.})
      add({5}, with({{"tensors", tensors}, {"master", 1}}));
    add({3, 700}, with({{"tensors", 3}}));
    for (std::int64_t n : {0, 1, 7, 9, 256, 257, 2049}) add({n}, with({}));
    add({}, with({}));
    add({1}, with({{"begins", 1}, {"scale", 0}}));  // means of 0
    for (Layout layout : {Layout::transposed, Layout::reversed, Layout::padded_rows, Layout::strided_columns})
      add({3, 70, 13}, with({{"master", 1}, {"tensors", 2}}), Fill::wide, layout);
    for (std::int64_t offset : {1, 3}) add({9, 111}, with({}), Fill::normal, Layout::offset, offset);
    for (Fill fill : {Fill::wide, Fill::zeros, Fill::denormals, Fill::huge, Fill::one_infinity, Fill::one_nan,
                      Fill::constant_rows})
      add({5, 100}, with({{"begins", fill == Fill::constant_rows ? 1. : 0.}}), fill);
    for (const char* beta : {"beta1", "beta2"})
      for (double value : {0., 0.5}) add({5, 100}, with({{beta, value}}));
    for (double value : {0., 3.}) add({5, 100}, with({{"weight_decay", value}, {"master", 1}}));
    add({5, 100}, with({{"eps", 0.3}}));
  }
  return cases;
}

inline BenchCases adamw_8bit_bench() {
  BenchCases b;
  for (DType type : {DType::f32, DType::bf16, DType::f16}) {
    const double half = type == DType::f32 ? 0 : 1;
    const std::map<std::string, double> trained{{"G", half * (type == DType::f16 ? 1 : 2)}, {"master", half}};
    b.cache.push_back({{64, 512}, type, trained});
    b.memory.push_back({{8192, 4096}, type, trained});
    b.gpu.push_back({{8192, 8192}, type, trained});
    std::map<std::string, double> layers = trained;
    layers["tensors"] = 32;
    b.gpu.push_back({{4096, 4096}, type, layers});
  }
  return b;
}

inline std::vector<Spec> adamw_8bit_specs() {
  Spec spec = spec_of({.function = "adamw_8bit",
                       .oracle = oracles<Adamw8bitOracle>(),
                       .tolerance = {.exact = true, .reason = "each operation is rounded as IEEE says"},
                       .absent = {"master", "gradient_scale", "found_inf"}});
  spec.suits = [](const Case& c) { return c.parameter("steps", 1) != 0 || c.parameter("step") >= 1; };
  for (Option& option : spec.options) {
    const std::string_view name = option.name;
    if (name == "lr" || name == "weight_decay") option.most = 10;  // a step is to be a number
    if (name == "eps") option.least = 1e-10;  // a square that f32 rounds to 0 would be divided by
  }
  spec.flops = [](const Case&) { return 0.; };
  spec.bytes = [whole = spec.bytes](const Case& c) {
    // Beside a master the parameter is written alone.
    const bool skips = c.parameter("found_inf") != 0 && c.parameter("found") != 0;
    return whole(c) - (c.parameter("master") != 0 && !skips ? list_elements(c) * bits(c.dtype) / 8 : 0);
  };
  spec.prepare = adamw_8bit_prepare;
  spec.operands = [its = spec.operands](const Case& c) {
    std::vector<Operand> operands = its(c);
    for (Operand& o : operands) {
      o.batched = false;  // a block reaches from a row into the next
      o.positive = std::string_view(o.name).find("absmax") != std::string_view::npos;
    }
    return operands;
  };
  spec.cases = adamw_8bit_cases;
  spec.bench = adamw_8bit_bench;
  return {spec};
}

}  // namespace rooftile::harness
