#pragma once
#include "rooftile/ops/grad_norm/cases.h"
#include "rooftile/ops/loss_scale/oracle.h"

namespace rooftile::harness {

/// The scale, and where `late` says so an infinity that is the last tensor's last element.
inline void unscale_prepare(const Case& c, Arrays<double>& inputs) {
  inputs["scale"].values()[0] = c.parameter("of", 1024);
  const std::int64_t tensors = static_cast<std::int64_t>(c.parameter(kTensors, 1));
  if (c.parameter("late") == 0 || tensors == 0) return;
  std::vector<double>& last = inputs[item_name("gradient", tensors - 1)].values();
  if (!last.empty()) last.back() = c.parameter("late") > 0 ? HUGE_VAL : std::nan("");
}

inline Spec unscale_spec() {
  Spec spec = spec_of({.function = "unscale",
                       .oracle = oracles<UnscaleOracle>(),
                       .tolerance = {.exact = true, .reason = "each operation is rounded as IEEE says"}});
  spec.flops = [](const Case&) { return 0.; };
  spec.prepare = unscale_prepare;
  spec.cases = [] {
    std::vector<Case> cases = list_cases({});
    for (DType type : {DType::f32, DType::f16, DType::bf16}) {
      // Exact powers of two, and scales whose reciprocal is rounded.
      for (double of : {1., 65536., 3., 0.1, 1e30, 1e-38})
        cases.push_back({{5, 100}, type, {{"of", of}}, Layout::contiguous, Fill::wide});
      // What a lane, a tail and a tensor of its own find alone.
      for (double late : {1., -1.})
        for (std::int64_t n : {1, 7, 2049, 9001})
          cases.push_back({{n}, type, {{"late", late}, {"tensors", n == 2049 ? 1 : 3}}});
      for (Layout layout : {Layout::transposed, Layout::strided_columns})
        cases.push_back({{3, 70, 13}, type, {{"late", 1}, {"tensors", 2}}, layout});
    }
    return cases;
  };
  spec.bench = grad_norm_bench;
  return spec;
}

inline void update_loss_scale_prepare(const Case& c, Arrays<double>& inputs) {
  inputs["scale"].values()[0] = c.parameter("of", 65536);
  inputs["growth_tracker"].values()[0] = c.parameter("done", 3);
  inputs["found_inf"].values()[0] = c.parameter("found");
}

inline Spec update_loss_scale_spec() {
  Spec spec = spec_of({.function = "update_loss_scale",
                       .oracle = oracles<UpdateLossScaleOracle>(),
                       .tolerance = {.exact = true, .reason = "one product, rounded once"}});
  spec.flops = [](const Case&) { return 0.; };
  spec.prepare = update_loss_scale_prepare;
  spec.cases = [] {
    std::vector<Case> cases;
    const auto add = [&](std::map<std::string, double> p) {
      cases.push_back({{}, DType::f32, std::move(p)});
    };
    for (double found : {0., 1., -2., std::nan("")})
      // One step before the interval, at it, and where a shorter one leaves the count beyond it.
      for (double done : {0., 3., 1998., 1999., 2000., 2147483647.}) add({{"found", found}, {"done", done}});
    for (double of : {0., 1., 3e38, 0x1p-149, 0x1p127, HUGE_VAL, std::nan("")})
      for (double found : {0., 1.}) add({{"of", of}, {"found", found}, {"growth_interval", 1}});
    for (double factor : {1., 1.1, 1e30}) add({{"growth_factor", factor}, {"growth_interval", 4}});
    for (double factor : {0., 0.1, 1.}) add({{"backoff_factor", factor}, {"found", 1}});
    return cases;
  };
  spec.bench = [] {
    BenchCases b;  // three numbers: no more of them fill a memory
    b.cache.push_back({{}, DType::f32, {}});
    return b;
  };
  return spec;
}

inline std::vector<Spec> loss_scale_specs() { return {unscale_spec(), update_loss_scale_spec()}; }

}  // namespace rooftile::harness
