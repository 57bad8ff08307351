#pragma once
#include "rooftile/harness/gpu_cases.h"
#include "rooftile/harness/letters.h"
#include "rooftile/ops/sgd/oracle.h"

namespace rooftile::harness {

/// Counters count, and factors are numbers. In the first step the buffer holds what nobody wrote.
inline void sgd_prepare(const Case& c, Arrays<double>& inputs) {
  const bool first = c.parameter("steps", 1) != 0 ? c.parameter("done", 1000) == 0 : c.parameter("step") == 1;
  for (auto& [name, array] : inputs.all()) {
    std::vector<double>& values = array.values();
    if (name.starts_with("momentum_buffer") && first && c.parameter("found") == 0)
      for (double& b : values) b = std::nan("");
    if (name == "steps") values[0] = c.parameter("done", 1000);
    if (name == "found_inf") values[0] = c.parameter("found");
    if (name == "gradient_scale") values[0] = c.parameter("scale", 0.37);
  }
}

inline std::vector<Case> sgd_cases() {
  std::vector<Case> cases;
  using Parameters = std::map<std::string, double>;
  const Parameters moving{{"momentum_buffer", 1}, {"momentum", 0.9}, {"lr", 0.5}};
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    const auto add = [&](Shape shape, Parameters p, Fill fill = Fill::normal,
                         Layout layout = Layout::contiguous, std::int64_t offset = 0) {
      cases.push_back({std::move(shape), type, std::move(p), layout, fill, offset});
    };
    const auto with = [&](Parameters p) {
      p.insert(moving.begin(), moving.end());
      return p;
    };
    // The first few sets of parameters are those that the harness varies everything else with.
    add({11, 300}, {{"lr", 0.25}, {"weight_decay", 0.5}, {"steps", 0}});
    add({11, 300}, with({{"G", 1}, {"S", 1}, {"master", 1}, {"dampening", 0.3}, {"gradient_scale", 1}}));
    add({11, 300}, with({{"nesterov", 1}, {"weight_decay", 0.5}, {"maximize", 1}, {"G", 2}}));
    add({11, 300}, with({{"found_inf", 1}, {"found", 1}, {"master", 1}, {"tensors", 2}}));
    for (double done : {0., 1., 0x1p40}) add({200}, with({{"done", done}, {"dampening", 0.5}, {"S", 1}}));
    for (double step : {0., 1., 2.}) add({200}, with({{"steps", 0}, {"step", step}, {"nesterov", 1}}));
    for (double tensors : {0., 2., type == DType::bf16 ? 81. : 3.})
      add({5}, with({{"tensors", tensors}, {"master", 1}, {"S", 1}}));
    add({3, 700}, with({{"tensors", 3}}));
    for (std::int64_t n : {0, 1, 2, 7, 2047, 2048, 2049, 70001}) add({n}, with({{"S", 1}}));
    add({}, with({}));
    for (Layout layout : {Layout::transposed, Layout::reversed, Layout::padded_rows, Layout::strided_columns})
      add({3, 70, 130}, with({{"master", 1}, {"tensors", 2}}), Fill::wide, layout);
    for (std::int64_t offset : {1, 3}) add({9, 1111}, with({{"S", 1}}), Fill::normal, Layout::offset, offset);
    for (Fill fill : {Fill::wide, Fill::zeros, Fill::denormals, Fill::huge, Fill::one_infinity, Fill::one_nan,
                      Fill::constant_rows})
      add({5, 100}, with({{"S", 1}}), fill);
    for (const char* option : {"lr", "weight_decay", "momentum"})
      for (double value : {0., 1e-8, 3.}) add({5, 100}, with({{option, value}, {"master", 1}}));
  }
  return cases;
}

/// What the oracle takes for one element, times the elements.
inline double sgd_flops(const Case& c) {
  Arrays<Counted> arrays;
  for (const char* name : {"parameter", "gradient", "momentum_buffer", "master"})
    if (name[0] == 'p' || name[0] == 'g' || c.parameter(name) != 0)
      arrays[name] = Array<Counted>(std::vector<Counted>(1, Counted(0.5)));
  if (c.parameter("found_inf") != 0) arrays["found_inf"] = Array<Counted>({Counted(c.parameter("found"))});
  Case one = c;
  if (c.parameter("steps", 1) != 0) one.parameters["step"] = c.parameter("done", 1000) + 1;
  one.parameters["tensors"] = 1;
  Counted::operations() = 0;
  SgdOracle::run(one, arrays);
  const bool counts =
      c.parameter("steps", 1) != 0 && (c.parameter("found_inf") == 0 || c.parameter("found") == 0);
  return static_cast<double>(Counted::operations()) * list_elements(c) + counts;
}

inline BenchCases sgd_bench() {
  BenchCases b;
  for (DType type : {DType::f32, DType::bf16, DType::f16}) {
    // 16-bit parameters as they are trained: an f32 buffer and master.
    const double half = type == DType::f32 ? 0 : 1;
    const std::map<std::string, double> trained{{"G", half * (type == DType::f16 ? 1 : 2)},
                                                {"S", half},
                                                {"master", half},
                                                {"momentum_buffer", 1},
                                                {"momentum", 0.9}};
    b.cache.push_back({{64, 512}, type, trained});
    b.memory.push_back({{8192, 4096}, type, trained});
    std::map<std::string, double> layers = trained;
    b.gpu.push_back({{8192, 8192}, type, trained});
    layers["tensors"] = 32;
    b.gpu.push_back({{4096, 4096}, type, layers});
  }
  return b;
}

inline std::vector<Spec> sgd_specs() {
  Spec spec = spec_of({.function = "sgd",
                       .oracle = bounded_oracles<SgdOracle>(),
                       .tolerance = {.c = 2,
                                     .chain = [](const Case&, std::string_view) { return 1.; },
                                     .accumulator = [](const Case&) { return DType::f32; },
                                     .reason = "each operation rounds once, as the oracle's bound counts"},
                       .absent = {"momentum_buffer", "master", "gradient_scale", "found_inf"}});
  spec.standard = true;
  // What the function refuses: momentum without a buffer, dampening without a step's number.
  spec.suits = [](const Case& c) {
    const bool dampens = c.parameter("dampening") != 0;
    const bool moves = dampens || c.parameter("momentum") != 0 || c.parameter("nesterov") != 0;
    return (!moves || c.parameter("momentum_buffer") != 0) &&
           (!dampens || c.parameter("steps", 1) != 0 || c.parameter("step") >= 1);
  };
  for (Option& option : spec.options) {
    const std::string_view name = option.name;
    if (option.kind == Option::Kind::real) option.most = 10;  // a step is to be a number
    if (name == "dampening") option.least = -10;
  }
  spec.flops = sgd_flops;
  spec.bytes = [whole = spec.bytes](const Case& c) {
    // Beside a master the parameter is written alone.
    const bool skips = c.parameter("found_inf") != 0 && c.parameter("found") != 0;
    return whole(c) - (c.parameter("master") != 0 && !skips ? list_elements(c) * bits(c.dtype) / 8 : 0);
  };
  spec.prepare = sgd_prepare;
  spec.cases = sgd_cases;
  spec.bench = sgd_bench;
  spec.largest_exponent = 60;  // a step is to be a number of f32
  return {spec};
}

}  // namespace rooftile::harness
