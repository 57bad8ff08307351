#pragma once
#include "rooftile/harness/letters.h"
#include "rooftile/ops/blur/blur.h"
#include "rooftile/ops/blur/oracle.h"

namespace rooftile::harness {

/// Single pixels, radii beyond the picture, several tiles across, windows whose sums need 32 bits, each
/// border; 1, 3 and 4 channels side by side, and 2, which are planes.
inline std::vector<Case> box_blur_cases() {
  std::vector<Case> cases;
  const auto add = [&](Shape shape, double radius, double border = 0, Layout layout = Layout::contiguous,
                       std::int64_t offset = 0) {
    cases.push_back(
        {shape, DType::u8, {{"radius", radius}, {"border", border}}, layout, Fill::bytes, offset});
  };
  for (double border : {0., 1., 2.}) {
    for (std::int64_t channels : {1, 2, 3, 4}) {
      if (border != 0 && channels % 2 == 0) continue;
      add({1, 1, channels}, 0, border);
      add({1, 1, channels}, 3, border);
      add({37, 53, channels}, 0, border);
      add({37, 53, channels}, 1, border);
      add({13, 211, channels}, 25, border);
      add({40, 31, channels}, 40, border);
      add({2, 3, channels}, 200, border);
      add({9, 70, channels}, 63, border);  // the last by floats, and the first of 32-bit sums
      add({9, 70, channels}, 64, border);
    }
    add({3, 5, 4}, 2047, border);
    add({2, 600, 1}, 2047, border);
    add({2, 3, 40, 90, 3}, 6, border);
    for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::transposed,
                          Layout::broadcast})
      add({12, 130, 3}, 7, border, layout);
  }
  add({70, 165, 1}, 9);  // the rungs' tiles, and a part of one more each way
  add({2, 33, 81, 1}, 24);
  add({1, 20500, 1}, 2);  // two tiles
  add({2, 7000, 3}, 30, 1);
  add({1, 3000, 4}, 2047, 1);
  for (std::int64_t offset : {1, 15, 63}) add({5, 1000, 1}, 25, 0, Layout::offset, offset);
  return cases;
}

/// Radii from 1 to beyond the picture, and an even and an odd number of weights; tails of each length.
inline std::vector<Case> gaussian_blur_cases() {
  std::vector<Case> cases;
  const auto add = [&](Shape shape, double sigma, double border = 0, Layout layout = Layout::contiguous,
                       std::int64_t offset = 0) {
    cases.push_back({shape, DType::u8, {{"sigma", sigma}, {"border", border}}, layout, Fill::bytes, offset});
  };
  for (double border : {0., 1., 2.}) {
    for (std::int64_t channels : {1, 2, 3, 4}) {
      if (border != 0 && channels % 2 == 0) continue;
      add({1, 1, channels}, 0.8, border);
      add({9, 67, channels}, 0.25, border);
      add({21, 53, channels}, 1, border);
      add({7, 131, channels}, 7.9, border);
      if (border == 0) add({7, 131, channels}, 8);  // where the weights get three bits more
      add({2, 3, channels}, 30, border);
    }
    add({3, 5, 3}, 128, border);
    if (border == 2) continue;  // layouts meet the other two
    for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::transposed,
                          Layout::broadcast})
      add({6, 70, 3}, 2.3, border, layout);
  }
  add({1, 4200, 1}, 17);  // two tiles
  add({2, 1400, 3}, 4, 1);
  for (std::int64_t offset : {1, 63}) add({4, 300, 1}, 3, 0, Layout::offset, offset);
  return cases;
}

/// A photo, gray and in colours.
inline BenchCases blur_bench(const char* size, double value) {
  BenchCases b;
  const auto of = [&](Shape shape) {
    return Case{shape, DType::u8, {{size, value}}, Layout::contiguous, Fill::bytes};
  };
  b.cache = {of({256, 512, 1}), of({256, 512, 3})};
  b.memory = {of({2160, 3840, 1}), of({2160, 3840, 3})};
  b.gpu = {of({2160, 3840, 3}), of({8192, 8192, 1})};
  return b;
}

/// What the oracle adds up: the windows' pixels in two passes, a product and a sum each; the half, the
/// quotient.
inline double box_blur_flops(const Case& c) {
  const auto r = static_cast<std::int64_t>(c.parameter("radius", 1));
  const auto met = [&](std::int64_t size) {
    double pixels = 0;
    for (std::int64_t at = 0; at < size; ++at)
      pixels += static_cast<double>(std::min(size - 1, at + r) - std::max<std::int64_t>(0, at - r) + 1);
    return pixels;
  };
  const std::size_t rank = c.shape.size();
  const std::int64_t h = c.shape[rank - 3], w = c.shape[rank - 2];
  double pictures = 1;
  for (std::int64_t size : c.shape) pictures *= static_cast<double>(size);
  if (pictures == 0) return 0;
  pictures /= static_cast<double>(h) * static_cast<double>(w);
  return pictures * (2 * static_cast<double>(h) * met(w) + 2 * static_cast<double>(w) * met(h) +
                     2 * static_cast<double>(h) * static_cast<double>(w));
}
/// Harness's rows and columns: a picture of 3 channels.
inline Shape picture_shape(const Shape& rows_columns) {
  Shape shape = rows_columns;
  while (shape.size() < 2) shape.insert(shape.begin(), 1);
  shape.push_back(3);
  return shape;
}

inline std::vector<Spec> blur_specs() {
  Spec box = spec_of({.function = "box_blur",
                      .oracle = oracles<BoxBlurOracle>(),
                      .tolerance = {.exact = true, .reason = "integers throughout"},
                      .independent = "C"});
  box.standard_shape = picture_shape;
  box.flops = box_blur_flops;
  box.cases = box_blur_cases;
  box.bench = [] { return blur_bench("radius", 25); };
  Spec gaussian = spec_of({.function = "gaussian_blur",
                           .oracle = oracles<GaussianBlurOracle>(),
                           .tolerance = {.exact = true, .reason = "integers throughout"},
                           .independent = "C"});
  gaussian.standard_shape = picture_shape;
  gaussian.flops = [](const Case& c) {
    double n = 1;
    for (std::int64_t s : c.shape) n *= static_cast<double>(s);
    return n * 4 * (2. * gaussian_weights(c.parameter("sigma", 1)).radius + 1);
  };
  gaussian.cases = gaussian_blur_cases;
  gaussian.bench = [] { return blur_bench("sigma", 17); };
  return {box, gaussian};
}

}  // namespace rooftile::harness
