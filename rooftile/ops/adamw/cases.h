#pragma once
#include "rooftile/harness/gpu_cases.h"
#include "rooftile/harness/letters.h"
#include "rooftile/ops/adamw/oracle.h"

namespace rooftile::harness {

/// Squares are not negative, counters count, and factors are numbers.
inline void adamw_prepare(const Case& c, Arrays<double>& inputs) {
  for (auto& [name, array] : inputs.all()) {
    std::vector<double>& values = array.values();
    if (name[0] == 'v' || name.rfind("max_v", 0) == 0)
      for (double& v : values) v = std::fabs(v);
    if (name == "steps") values[0] = c.parameter("done", 1000);  // ao 4915: beyond what bf16 counts
    if (name == "found_inf") values[0] = c.parameter("found");
    if (name == "gradient_scale") values[0] = c.parameter("scale", 0.37);
  }
}

inline std::vector<Case> adamw_cases() {
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
    add({11, 300}, with({{"G", 1}, {"S", 1}, {"master", 1}, {"max_v", 1}}));
    add({11, 300}, with({{"l2", 1}, {"weight_decay", 0.5}, {"maximize", 1}, {"G", 2}}));  // FlagGems 4988
    add({11, 300}, with({{"found", 1}, {"master", 1}, {"max_v", 1}, {"tensors", 2}}));
    // The first step, of which both corrections are all (bias correction at step 0 divides by 0).
    for (double done : {0., 1., 255., 256., 1e6, 0x1p40}) add({200}, with({{"done", done}, {"S", 1}}));
    for (double tensors : {2., 3., 61.}) {
      add({5}, with({{"tensors", tensors}, {"master", 1}, {"S", 1}}));
      add({3, 700}, with({{"tensors", tensors}}));
    }
    for (std::int64_t n : {0, 1, 2, 3, 7, 8, 9, 2047, 2048, 2049, 70001}) add({n}, with({{"S", 1}}));
    add({}, with({}));
    for (Layout layout : {Layout::transposed, Layout::reversed, Layout::padded_rows, Layout::strided_columns})
      add({3, 70, 130}, with({{"master", 1}, {"max_v", 1}, {"tensors", 2}}), Fill::wide, layout);
    for (std::int64_t offset : {1, 3}) add({9, 1111}, with({{"S", 1}}), Fill::normal, Layout::offset, offset);
    for (Fill fill : {Fill::wide, Fill::zeros, Fill::denormals, Fill::huge, Fill::one_infinity, Fill::one_nan,
                      Fill::large_offset, Fill::constant_rows})
      add({5, 100}, with({{"max_v", 1}, {"S", 1}}), fill);
    for (const char* beta : {"beta1", "beta2"})
      for (double value : {0., 0.5, 0.999999}) add({5, 100}, with({{beta, value}}));
    for (const char* option : {"lr", "weight_decay"})
      for (double value : {0., 1e-8, 3.}) add({5, 100}, with({{option, value}, {"master", 1}}));
    add({5, 100}, with({{"eps", 0.3}}));
  }
  return cases;
}

/// What the oracle takes for one element, times the elements.
inline double adamw_flops(const Case& c) {
  Arrays<Counted> arrays;
  for (const char* name : {"parameter", "gradient", "m", "v", "max_v", "master"})
    if ((name[0] != 'm' || name[1] != 'a') || c.parameter(name) != 0)
      arrays[name] = Array<Counted>(std::vector<Counted>(1, Counted(0.5)));
  if (c.parameter("found_inf") != 0) arrays["found_inf"] = Array<Counted>({Counted(c.parameter("found"))});
  Case one = c;
  one.parameters["tensors"] = 1;
  Counted::operations() = 0;
  AdamwOracle::run(one, arrays);
  return static_cast<double>(Counted::operations()) * list_elements(c);
}

inline BenchCases adamw_bench() {
  BenchCases b;
  for (DType type : {DType::f32, DType::bf16, DType::f16}) {
    // 16-bit parameters as they are trained: f32 states and master.
    const double half = type == DType::f32 ? 0 : 1;
    const std::map<std::string, double> trained{
        {"G", half * (type == DType::f16 ? 1 : 2)}, {"S", half}, {"master", half}};
    b.cache.push_back({{64, 512}, type, trained});
    b.memory.push_back({{8192, 4096}, type, trained});
    std::map<std::string, double> layers = trained;
    b.gpu.push_back({{8192, 8192}, type, trained});
    layers["tensors"] = 32;
    b.gpu.push_back({{4096, 4096}, type, layers});
  }
  return b;
}

/// One tensor of more than 2^31 elements (DeepSpeed 7640) is `check --huge`, as of every function.
inline std::vector<Spec> adamw_specs() {
  Spec spec = spec_of({.function = "adamw",
                       .oracle = bounded_oracles<AdamwOracle>(),
                       .tolerance = {.c = 2,
                                     .chain = [](const Case&, std::string_view) { return 1.; },
                                     .accumulator = [](const Case&) { return DType::f32; },
                                     .reason = "each operation rounds once, as the oracle's bound counts"},
                       .absent = {"max_v", "master", "gradient_scale", "found_inf"}});
  spec.standard = true;
  // Without a counter a call says its number.
  spec.suits = [](const Case& c) { return c.parameter("steps", 1) != 0 || c.parameter("step") >= 1; };
  for (Option& option : spec.options) {
    const std::string_view name = option.name;
    if (name == "lr" || name == "weight_decay") option.most = 10;  // a step is to be a number
    if (name == "eps") option.least = 1e-10;  // a square that f32 rounds to 0 would be divided by
  }
  spec.flops = adamw_flops;
  spec.bytes = [whole = spec.bytes](const Case& c) {
    // Beside a master the parameter is written alone.
    const bool skips = c.parameter("found_inf") != 0 && c.parameter("found") != 0;
    return whole(c) - (c.parameter("master") != 0 && !skips ? list_elements(c) * bits(c.dtype) / 8 : 0);
  };
  spec.prepare = adamw_prepare;
  spec.operands = [its = spec.operands](const Case& c) {
    std::vector<Operand> operands = its(c);
    for (Operand& o : operands)
      o.positive = o.name[0] == 'v' || std::string_view(o.name).starts_with("max_v");
    return operands;
  };
  spec.cases = adamw_cases;
  spec.bench = adamw_bench;
  spec.largest_exponent = 60;  // squares are to be numbers of f32
  return {spec};
}

}  // namespace rooftile::harness
