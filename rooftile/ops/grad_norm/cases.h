#pragma once
#include "rooftile/harness/gpu_cases.h"
#include "rooftile/harness/letters.h"
#include "rooftile/ops/grad_norm/oracle.h"

namespace rooftile::harness {

inline double list_one(const Case&, std::string_view) { return 1; }
inline DType list_f32(const Case&) { return DType::f32; }

/// The additions behind one another in a lane, as nrm2's: the fewest lanes are 16. 16-bit numbers around the
/// smallest normal one are a handful of values, whose squares round alike at each step.
inline double grad_norm_chain(const Case& c, std::string_view) {
  const double steps = std::fmin(list_elements(c), std::fmax(16384, list_elements(c) / 1024)) / 16 + 16;
  const bool alike = c.fill == Fill::constant_rows || (bits(c.dtype) == 16 && c.fill == Fill::denormals);
  return alike && steps > 1000 ? steps * steps : steps;
}

inline BenchCases grad_norm_bench() {
  BenchCases b;
  for (DType type : {DType::f32, DType::bf16, DType::f16}) {
    const std::map<std::string, double> layers{{"tensors", 32}};
    b.cache.push_back({{128, 512}, type, {}});
    b.memory.push_back({{16384, 8192}, type, {}});
    b.gpu.push_back({{16384, 16384}, type, {}});
    b.gpu.push_back({{4096, 4096}, type, layers});
  }
  return b;
}

/// Powers of two for all elements: at which squares leave the range of sums; just beyond the bounds at which
/// a chunk is scaled; and down to subnormal elements.
inline std::vector<double> grad_norm_powers(DType type) {
  if (type == DType::f16) return {-22, -14, 11};
  return {-140, -100, -70, -46, -35, 57, 63, 80, 115};
}

/// 2^power times each element; `apart`: tensor by tensor to this side of 1, to the other, and not at all.
inline void grad_norm_prepare(const Case& c, Arrays<double>& inputs) {
  const double most = grad_norm_powers(c.dtype).back();
  int item = 0;
  for (auto& [name, array] : inputs.all()) {
    if (name == "gradient_scale") array.values()[0] = c.parameter("scale", 0.37);
    if (name == "norm") array.values()[0] = c.parameter("norm", 3.7);
    if (!name.starts_with("gradient") || name == "gradient_scale") continue;
    const int side = c.parameter("apart") != 0 ? 1 - item++ % 3 : 1;
    for (double& x : array.values())
      x = std::ldexp(x, static_cast<int>(std::fmin(side * c.parameter("power"), most)));
  }
}

/// Lists and layouts, which every function of lists meets.
inline std::vector<Case> list_cases(const std::map<std::string, double>& more) {
  std::vector<Case> cases;
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    const auto add = [&](Shape shape, double tensors, Fill fill = Fill::normal,
                         Layout layout = Layout::contiguous, std::int64_t offset = 0) {
      std::map<std::string, double> parameters = more;
      parameters["tensors"] = tensors;
      cases.push_back({std::move(shape), type, std::move(parameters), layout, fill, offset});
    };
    for (std::int64_t n : {0, 1, 2, 7, 2047, 2048, 2049}) add({n}, 1);
    add({}, 1);
    for (double tensors : {0., 2., 3.}) add({5}, tensors);
    if (type == DType::bf16) add({5}, 161);  // more than one launch's
    add({3, 700}, 3);
    for (Layout layout : {Layout::transposed, Layout::reversed, Layout::padded_rows, Layout::strided_columns})
      add({3, 70, 130}, 2, Fill::wide, layout);
    for (std::int64_t offset : {1, 3}) add({9, 1111}, 2, Fill::normal, Layout::offset, offset);
    for (Fill fill : {Fill::wide, Fill::zeros, Fill::denormals, Fill::huge, Fill::one_infinity, Fill::one_nan,
                      Fill::constant_rows})
      add({5, 100}, 2, fill);
  }
  return cases;
}

inline Spec grad_norm_spec() {
  Spec spec = spec_of({.function = "grad_norm",
                       .oracle = oracles<GradNormOracle>(),
                       .tolerance = {.c = 2,
                                     .chain = grad_norm_chain,
                                     .accumulator = list_f32,
                                     .reason = "as nrm2: a fused multiply-add rounds once, the baseline "
                                               "twice; what follows is f64"},
                       .absent = {"gradient_scale"}});
  spec.flops = [](const Case& c) {
    return 2 * list_elements(c) + 3 + (c.parameter("coefficient", 1) != 0 ? 3 : 0);
  };
  spec.excuses = {{"lower_precision", "0 or 1 in every precision", nullptr, "found_inf"}};
  spec.prepare = grad_norm_prepare;
  spec.cases = [] {
    std::vector<Case> cases = list_cases({{"gradient_scale", 1}});
    for (DType type : {DType::f32, DType::f16, DType::bf16}) {
      // Both sides of a chunk's end, several chunks with a tail, and an order that crosses rows.
      for (Shape shape : {Shape{16383}, Shape{16384}, Shape{16385}, Shape{7, 5001}})
        cases.push_back({shape, type, {{"tensors", 2}, {"max_norm", 3}}, Layout::contiguous, Fill::positive});
      for (double power : grad_norm_powers(type)) {
        cases.push_back({{3, 70}, type, {{"power", power}, {"tensors", 4}, {"apart", 1}}});
        cases.push_back({{3, 70}, type, {{"power", power}, {"gradient_scale", 1}}});
      }
      cases.push_back({{16389}, type, {{"power", -70}, {"tensors", 3}}});
      for (double scale : {0., -2., 1e-30, 65536.})
        cases.push_back({{5, 100}, type, {{"scale", scale}, {"gradient_scale", 1}}});
      for (double max_norm : {0., 1e-8, 1e30})
        cases.push_back({{5, 100}, type, {{"max_norm", max_norm}, {"gradient_scale", 1}}});
      cases.push_back({{5, 100}, type, {{"coefficient", 0}, {"found_inf", 0}}});
    }
    return cases;
  };
  spec.bench = grad_norm_bench;
  return spec;
}

inline Spec clip_by_norm_spec() {
  Spec spec = spec_of({.function = "clip_by_norm",
                       .oracle = oracles<ClipByNormOracle>(),
                       .tolerance = {.c = 2,
                                     .chain = list_one,
                                     .accumulator = list_f32,
                                     .reason = "the factor is rounded to f32, and so is the product"},
                       .absent = {"gradient_scale"}});
  spec.flops = [](const Case& c) { return list_elements(c) + 3; };
  spec.prepare = grad_norm_prepare;
  spec.cases = [] {
    std::vector<Case> cases = list_cases({{"gradient_scale", 1}});
    for (DType type : {DType::f32, DType::f16, DType::bf16}) {
      for (double norm : {0., 0.5, 1., 1e-7, 1e30, HUGE_VAL, std::nan("")})
        cases.push_back({{5, 100}, type, {{"norm", norm}, {"tensors", 2}}});
      for (double scale : {0., -2., 1e-30})
        cases.push_back({{5, 100}, type, {{"scale", scale}, {"gradient_scale", 1}}});
      for (double max_norm : {0., 1e-8, 3.7, 1e30})
        cases.push_back({{5, 100}, type, {{"max_norm", max_norm}}});
    }
    return cases;
  };
  spec.bench = grad_norm_bench;
  return spec;
}

inline std::vector<Spec> grad_norm_specs() { return {grad_norm_spec(), clip_by_norm_spec()}; }

}  // namespace rooftile::harness
