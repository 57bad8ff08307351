#pragma once
#include "rooftile/ops/image/image.h"
#include "rooftile/ops/image/oracle.h"

namespace rooftile::harness {

/// Shapes are a picture's height and width (more outer dimensions may precede).
inline std::vector<Operand> gray_operands(const Case& c) {
  Shape rgb = c.shape;
  rgb.push_back(3);
  return {{"rgb", Operand::Kind::input, c.dtype, rgb}, {"gray", Operand::Kind::output, c.dtype, c.shape}};
}
inline double gray_pixels(const Case& c) {
  double n = 1;
  for (std::int64_t s : c.shape) n *= static_cast<double>(s);
  return n;
}

inline std::vector<Case> gray_cases() {
  std::vector<Case> cases;
  const auto add = [&](Shape shape, Layout layout = Layout::contiguous, std::int64_t offset = 0) {
    for (double luminosity : {0.0, 1.0})
      cases.push_back({shape, DType::u8, {{"luminosity", luminosity}}, layout, Fill::bytes, offset});
  };
  add({5, 100});
  add({1, 20000});  // two blocks and a part, on several threads
  add({3, 9000});
  add({150, 211});
  add({2, 3, 70});  // several pictures
  add({77});        // one row
  for (std::int64_t offset : {1, 15, 63}) add({2, 12345}, Layout::offset, offset);
  for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::transposed,
                        Layout::broadcast})
    add({30, 200}, layout);
  return cases;
}

inline BenchCases gray_bench() {
  BenchCases b;
  b.cache.push_back({{256, 256}, DType::u8, {}, Layout::contiguous, Fill::bytes});
  b.cache.push_back(
      {{2160, 3840}, DType::u8, {}, Layout::contiguous, Fill::bytes});  // a photo, warm and cold
  b.memory.push_back({{2160, 3840}, DType::u8, {}, Layout::contiguous, Fill::bytes});
  b.gpu.push_back({{8192, 8192}, DType::u8, {}, Layout::contiguous, Fill::bytes});
  return b;
}

inline std::vector<Spec> image_specs() {
  return {{
      .function = "rgb_to_gray",
      .axes = "height x width (more outer dimensions may precede)",
      .dtypes = {DType::u8},
      .operands = gray_operands,
      .call =
          [](const Queue& q, const Case& c, const Arguments& a, const char* variant, Workspace) {
            const GrayWeights weights =
                c.parameter("luminosity") ? GrayWeights::luminosity : GrayWeights::bt601;
            return rgb_to_gray(q, a.in("rgb"), a.out("gray"), {weights, variant});
          },
      .oracle = oracles<GrayOracle>(),
      // Three products, two sums, the half, the quotient.
      .flops = [](const Case& c) { return 7 * gray_pixels(c); },
      .bytes = [](const Case& c) { return 4 * gray_pixels(c); },
      .tolerance = {.exact = true, .reason = "integers throughout"},
      .excuses = {},
      .cases = gray_cases,
      .bench = gray_bench,
      .options = {{"luminosity"}},
  }};
}

}  // namespace rooftile::harness
