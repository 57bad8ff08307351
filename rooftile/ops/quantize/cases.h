#pragma once
#include "rooftile/harness/gpu_cases.h"
#include "rooftile/harness/letters.h"
#include "rooftile/ops/quantize/oracle.h"

namespace rooftile::harness {

/// Blocks shorter and longer than a tile, a warp and what a thread block holds; tails of each kind; rows that
/// begin anywhere and elements that lie apart. `part`: of three formats with one kernel, each takes a third
/// of the cases that only move elements.
inline std::vector<Case> quantize_cases(int part = -1) {
  constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};
  std::vector<Case> cases;
  int next = 0;  // dtype, of cases that one is enough for
  const auto add = [&](Shape shape, double block, Layout layout = Layout::contiguous,
                       std::int64_t offset = 0) {
    ++next;
    if (part < 0 || next / 3 % 3 == part)
      cases.push_back({shape, kTypes[next % 3], {{"block", block}}, layout, Fill::normal, offset});
  };
  const auto add_all = [&](Shape shape, double block, Fill fill = Fill::normal) {
    for (DType type : kTypes) cases.push_back({shape, type, {{"block", block}}, Layout::contiguous, fill});
  };
  for (std::int64_t n : {1, 17, 128, 129, 255}) add_all({3, n}, 128);
  for (Fill fill : {Fill::wide, Fill::constant_rows, Fill::zeros, Fill::denormals, Fill::huge,
                    Fill::one_infinity, Fill::minus_infinities, Fill::one_nan})
    add_all({4, 300}, 128, fill);
  for (std::int64_t n : {2, 15, 16, 127, 256, 1000}) add({3, n}, 128);
  for (double block : {1., 7., 16., 32., 48., 100., 512., 513., 1024., 4096.})
    for (int k = 0; k < 2; ++k) add({2, 1040}, block);
  for (int k = 0; k < 3; ++k) {
    add({3, 4096}, 4096);
    add({2, 4099}, 5000);
    add({1, 16400}, 20000);
  }
  add_all({1, 33000}, 40000);
  add({70, 30}, 30);
  add({2, 3, 4, 160}, 128);
  add({0, 17}, 128);
  add({3, 0}, 128);
  for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::transposed,
                        Layout::broadcast})
    for (double block : {32., 300.})
      for (int k = 0; k < 2; ++k) add({3, 5, 131}, block, layout);
  for (std::int64_t offset : {1, 3, 5, 8}) add({3, 272}, 128, Layout::offset, offset);
  return cases;
}

inline BenchCases quantize_bench() {
  BenchCases b;
  for (DType type : {DType::f32, DType::bf16, DType::f16}) {
    b.cache.push_back({{256, 512}, type, {}});
    b.memory.push_back({{16384, 4096}, type, {}});
    b.gpu.push_back({{16384, 8192}, type, {}});
    b.gpu.push_back({{16384, 8192}, type, {{"block", 8192}}});
  }
  return b;
}

/// Given scales that are powers of two keep an f16's or a bf16's few bits: every 16th product is halfway
/// between two codes. Of three, one makes i8 and f8e4m3 clamp, and one all formats.
inline void given_powers_of_two(const Case& c, Arrays<double>& inputs) {
  if (c.parameter("given") == 0 || c.fill != Fill::normal) return;
  int place = 0;
  for (double& scale : inputs["given"].values())
    scale = std::ldexp(1, (std::isfinite(scale) && scale != 0 ? std::ilogb(scale) : 0) - 8 * (place++ % 3));
}

template <DType kType>
Spec quantize_spec(const char* function, int part) {
  Spec spec = spec_of({.function = function,
                       .oracle = oracles<QuantizeOracle<kType>>(),
                       .tolerance = {.exact = true, .reason = "each operation is rounded as IEEE says"},
                       .absent = {"given"}});
  spec.flops = [](const Case&) { return 0.; };
  spec.cases = [part] {
    std::vector<Case> cases = quantize_cases(part);
    for (DType type : {DType::f32, DType::f16, DType::bf16})
      for (Fill fill : {Fill::normal, Fill::wide, Fill::zeros, Fill::one_nan})
        cases.push_back({{3, 300}, type, {{"given", 1}}, Layout::contiguous, fill});
    cases.push_back({{3, 5, 131}, DType::bf16, {{"given", 1}, {"block", 32}}, Layout::broadcast});
    return cases;
  };
  spec.bench = quantize_bench;
  spec.prepare = given_powers_of_two;
  spec.excuses = {{"input given", "it repeats the given ones",
                   [](const Case& c) { return c.parameter("given") != 0; }, "scale"}};
  return spec;
}

/// Formats in turn; and given scales, if they are an option, in every second case.
inline std::vector<Case> with_formats(const char* format, bool given) {
  std::vector<Case> cases = quantize_cases();
  int next = 0;
  for (Case& c : cases) {
    c.parameters[format] = next % 3;
    if (given) c.parameters["given"] = next / 3 % 2;
    ++next;
  }
  return cases;
}

inline std::vector<Spec> quantize_specs() {
  const auto no_flops = [](const Case&) { return 0.; };
  Spec dequantize = spec_of({.function = "dequantize",
                             .oracle = oracles<DequantizeOracle>(),
                             .tolerance = {.exact = true, .reason = "one product, and one rounding"}});
  dequantize.flops = no_flops;
  dequantize.cases = [] { return with_formats("Q", false); };
  dequantize.bench = quantize_bench;
  Spec fake = spec_of({.function = "fake_quantize",
                       .oracle = oracles<FakeQuantizeOracle>(),
                       .tolerance = {.exact = true, .reason = "each operation is rounded as IEEE says"},
                       .absent = {"given"}});
  fake.flops = no_flops;
  fake.cases = [] { return with_formats("format", true); };
  fake.bench = quantize_bench;
  fake.prepare = given_powers_of_two;
  Spec backward = spec_of({.function = "fake_quantize_backward",
                           .oracle = oracles<FakeQuantizeBackwardOracle>(),
                           .tolerance = {.exact = true, .reason = "one product, compared"},
                           .absent = {"given"}});
  backward.flops = no_flops;
  backward.cases = fake.cases;
  backward.bench = quantize_bench;
  backward.prepare = given_powers_of_two;
  backward.gradient_of = nullptr;  // of a staircase, differences are 0 or steps
  return {quantize_spec<DType::f8e4m3>("quantize_f8e4m3", 0),
          quantize_spec<DType::f8e5m2>("quantize_f8e5m2", 1),
          quantize_spec<DType::i8>("quantize_i8", 2),
          dequantize,
          fake,
          backward};
}

}  // namespace rooftile::harness
