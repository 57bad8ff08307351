#pragma once
#include "rooftile/harness/letters.h"
#include "rooftile/ops/pattern/oracle.h"
#include "rooftile/ops/pattern/pattern.h"

namespace rooftile::harness {

/// Tiles and a part of one more each way, each layout, times from the first frame to 2^53, either side of 0.
inline std::vector<Case> color_pattern_cases() {
  std::vector<Case> cases;
  for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::u8}) {
    const auto add = [&](Shape shape, double t, Layout layout = Layout::contiguous, std::int64_t offset = 0) {
      cases.push_back({shape, dtype, {{"t", t}}, layout, Fill::normal, offset});
    };
    for (const Shape& shape : {Shape{0, 5}, Shape{5, 0}, Shape{1, 1}, Shape{3, 2}}) add(shape, 0.25);
    add({1, 700}, 0);
    add({300, 3}, 1);
    add({37, 531}, -4000.125);
    add({19, 1100}, 1795000000.75);  // seconds since 1970
    add({5, 70}, 9007199254740992);
    add({5, 70}, -9007199254740991);
    add({5, 70}, 1e-300);
    for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::transposed})
      add({7, 90}, 12.5, layout);
    for (std::int64_t offset : {1, 15}) add({5, 300}, 3, Layout::offset, offset);
  }
  return cases;
}

/// A frame of full HD; of 4K on a GPU.
inline BenchCases color_pattern_bench() {
  BenchCases b;
  for (DType dtype : {DType::f32, DType::u8}) {
    b.cache.push_back({{128, 256}, dtype, {{"t", 1}}});
    b.memory.push_back({{1080, 1920}, dtype, {{"t", 1}}});
    b.gpu.push_back({{8192, 8192}, dtype, {{"t", 1}}});
  }
  return b;
}

inline std::vector<Spec> pattern_specs() {
  // Ten roundings of at most 2^-24 of 0.5 and less between a phase and a value, and that of the angle.
  Spec spec = spec_of({.function = "color_pattern",
                       .oracle = oracles<ColorPatternOracle>(),
                       .tolerance = {.c = 2,
                                     .reason = "values are within 2.2 * 2^-24: an f32 angle, an f32 "
                                               "polynomial and two f32 sums"}});
  spec.flops = [](const Case& c) {
    const double pixels = static_cast<double>(c.shape[0]) * static_cast<double>(c.shape[1]);
    return pixels * (c.dtype == DType::u8 ? 9 : 6);
  };
  spec.cases = color_pattern_cases;
  spec.bench = color_pattern_bench;
  return {spec};
}

}  // namespace rooftile::harness
