#pragma once
#include "rooftile/harness/gpu_cases.h"
#include "rooftile/harness/letters.h"
#include "rooftile/ops/ema/oracle.h"

namespace rooftile::harness {

inline std::vector<Case> ema_cases() {
  std::vector<Case> cases;
  using Parameters = std::map<std::string, double>;
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    const auto add = [&](Shape shape, Parameters p, Fill fill = Fill::normal,
                         Layout layout = Layout::contiguous, std::int64_t offset = 0) {
      p.emplace("decay", 0.7);
      cases.push_back({std::move(shape), type, std::move(p), layout, fill, offset});
    };
    // The first few sets of parameters are those that the harness varies everything else with.
    for (double other : {0., 1., 2.}) add({11, 300}, {{"P", other}, {"decay", 0.9}});
    add({11, 300}, {{"P", 1}, {"tensors", 2}, {"decay", 0.25}});
    for (double tensors : {0., type == DType::bf16 ? 121. : 3.}) add({5}, {{"tensors", tensors}, {"P", 2}});
    add({3, 700}, {{"tensors", 3}});
    for (std::int64_t n : {0, 1, 2, 7, 2047, 2048, 2049, 70001}) add({n}, {{"P", 2}});
    add({}, {});
    for (Layout layout : {Layout::transposed, Layout::reversed, Layout::padded_rows, Layout::strided_columns})
      add({3, 70, 130}, {{"tensors", 2}}, Fill::wide, layout);
    for (std::int64_t offset : {1, 3}) add({9, 1111}, {}, Fill::normal, Layout::offset, offset);
    for (Fill fill : {Fill::wide, Fill::zeros, Fill::denormals, Fill::huge, Fill::one_infinity, Fill::one_nan,
                      Fill::large_offset, Fill::constant_rows})
      add({5, 100}, {}, fill);
    for (double decay : {0., 0.5, 0.9999, 1.}) add({5, 100}, {{"decay", decay}});
  }
  return cases;
}

inline BenchCases ema_bench() {
  BenchCases b;
  for (DType type : {DType::f32, DType::bf16, DType::f16}) {
    b.cache.push_back({{64, 512}, type, {}});
    b.memory.push_back({{8192, 8192}, type, {}});
    b.gpu.push_back({{8192, 8192}, type, {}});
    b.gpu.push_back({{4096, 4096}, type, {{"tensors", 32}}});
  }
  return b;
}

inline std::vector<Spec> ema_specs() {
  Spec spec = spec_of({.function = "ema",
                       .oracle = bounded_oracles<EmaOracle>(),
                       .tolerance = {.c = 2,
                                     .chain = [](const Case&, std::string_view) { return 1.; },
                                     .accumulator = [](const Case&) { return DType::f32; },
                                     .reason = "each operation rounds once, as the oracle's bound counts"}});
  spec.standard = true;
  spec.flops = [](const Case& c) { return c.parameter("decay", 0.999) == 1 ? 0 : 3 * list_elements(c); };
  spec.cases = ema_cases;
  spec.bench = ema_bench;
  spec.largest_exponent = 120;  // differences are to be numbers of f32
  return {spec};
}

}  // namespace rooftile::harness
