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

/// Seeds and offsets that a case names; the others are any numbers.
inline void quantize_prepare(const Case& c, Arrays<double>& inputs) {
  given_powers_of_two(c, inputs);
  for (const char* name : {"seed", "offset"})
    if (const auto its = c.parameters.find(name + std::string("_is")); its != c.parameters.end())
      if (Array<double>* number = inputs.find(name)) number->values()[0] = its->second;
}
/// An element's place in the tensor decides its word: with a seed, rows depend on those before them.
inline void count_elements(Spec& spec, bool always) {
  spec.operands = [operands = spec.operands, always](const Case& c) {
    std::vector<Operand> list = operands(c);
    if (always || c.parameter("seed") != 0)
      for (Operand& operand : list) operand.batched = false;
    return list;
  };
}
/// By chance: all of a seed's bits, a counter that wraps, rows that begin within a counter, and codes of
/// every kind: subnormal ones, the largest, what is exact, and no numbers.
inline void add_by_chance(std::vector<Case>& cases, bool given) {
  constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};
  int next = 0;
  const auto add = [&](Shape shape, std::map<std::string, double> more, Layout layout = Layout::contiguous,
                       Fill fill = Fill::normal) {
    more["seed"] = 1;
    if (given && next % 4 == 3) more["given"] = 1;
    cases.push_back({std::move(shape), kTypes[next++ % 3], std::move(more), layout, fill});
  };
  for (double seed : {8589934593., -1., -0x1p63})
    for (double offset : {-3., 4294967295., 0x1.fffp62})
      add({3, 300}, {{"seed_is", seed}, {"offset", 1}, {"offset_is", offset}});
  for (Fill fill : {Fill::wide, Fill::constant_rows, Fill::zeros, Fill::denormals, Fill::huge,
                    Fill::one_infinity, Fill::one_nan})
    for (int k = 0; k < 2; ++k) add({4, 301}, {}, Layout::contiguous, fill);
  for (Layout layout : {Layout::transposed, Layout::reversed, Layout::padded_rows, Layout::strided_columns,
                        Layout::broadcast})
    add({3, 5, 131}, {}, layout);
  add({2, 5001}, {{"S", 1}});
}

template <DType kType>
Spec quantize_spec(const char* function, int part) {
  Spec spec = spec_of({.function = function,
                       .oracle = oracles<QuantizeOracle<kType>>(),
                       .tolerance = {.exact = true, .reason = "each operation is rounded as IEEE says"},
                       .absent = {"given", "seed", "offset"}});
  count_elements(spec, false);
  spec.flops = [](const Case&) { return 0.; };
  spec.cases = [part] {
    std::vector<Case> cases = quantize_cases(part);
    for (DType type : {DType::f32, DType::f16, DType::bf16})
      for (Fill fill : {Fill::normal, Fill::wide, Fill::zeros, Fill::one_nan})
        cases.push_back({{3, 300}, type, {{"given", 1}}, Layout::contiguous, fill});
    cases.push_back({{3, 5, 131}, DType::bf16, {{"given", 1}, {"block", 32}}, Layout::broadcast});
    add_by_chance(cases, true);
    for (double block : {7., 40., 1500.})
      cases.push_back({{2, 1500}, DType::bf16, {{"seed", 1}, {"block", block}}});
    cases.push_back({{1, 16500}, DType::f16, {{"seed", 1}, {"block", 20000}}});  // more than a block holds
    return cases;
  };
  spec.bench = [] {
    BenchCases b = quantize_bench();
    b.cache.push_back({{256, 512}, DType::bf16, {{"seed", 1}}});
    b.gpu.push_back({{16384, 8192}, DType::bf16, {{"seed", 1}}});
    return b;
  };
  spec.prepare = quantize_prepare;
  spec.excuses = {{"input given", "it repeats the given ones",
                   [](const Case& c) { return c.parameter("given") != 0; }, "scale"}};
  return spec;
}

template <DType kType>
Spec quantize_tensor_spec(const char* function) {
  Spec spec = spec_of({.function = function,
                       .oracle = oracles<QuantizeTensorOracle<kType>>(),
                       .tolerance = {.exact = true, .reason = "each operation is rounded as IEEE says"},
                       .absent = {"seed", "offset"}});
  count_elements(spec, true);
  spec.flops = [](const Case&) { return 0.; };
  spec.cases = [] {
    std::vector<Case> cases;
    for (DType type : {DType::f32, DType::f16, DType::bf16}) {
      const auto add = [&](Shape shape, Layout layout = Layout::contiguous, Fill fill = Fill::normal,
                           std::int64_t offset = 0) {
        cases.push_back({std::move(shape), type, {}, layout, fill, offset});
      };
      for (std::int64_t n : {0, 1, 17, 4097}) add({n});
      add({});
      if (type == DType::bf16) add({5, 7001});  // several chunks
      for (Fill fill : {Fill::wide, Fill::zeros, Fill::denormals, Fill::huge, Fill::one_infinity,
                        Fill::minus_infinities, Fill::one_nan})
        add({4, 300}, Layout::contiguous, fill);
      for (Layout layout : {Layout::transposed, Layout::reversed, Layout::padded_rows,
                            Layout::strided_columns, Layout::broadcast})
        add({3, 70, 131}, layout);
      for (std::int64_t offset : {1, 3}) add({9, 1111}, Layout::offset, Fill::normal, offset);
    }
    add_by_chance(cases, false);
    return cases;
  };
  spec.bench = [] {
    BenchCases b;
    for (DType type : {DType::f32, DType::bf16, DType::f16}) {
      b.cache.push_back({{256, 512}, type, {}});
      b.memory.push_back({{16384, 4096}, type, {}});
      b.gpu.push_back({{16384, 8192}, type, {}});
    }
    return b;
  };
  spec.prepare = quantize_prepare;
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
          quantize_tensor_spec<DType::f8e4m3>("quantize_tensor_f8e4m3"),
          quantize_tensor_spec<DType::f8e5m2>("quantize_tensor_f8e5m2"),
          quantize_tensor_spec<DType::i8>("quantize_tensor_i8"),
          dequantize,
          fake,
          backward};
}

}  // namespace rooftile::harness
