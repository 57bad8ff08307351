#pragma once
#include "rooftile/ops/rms_norm/oracle.h"

namespace rooftile::harness {

inline std::vector<Spec> rms_norm_specs() {
  Spec forward = row_spec({.function = "rms_norm",
                           .oracle = oracles<RmsNormOracle, true>(),
                           .reason = "a sum, a root and three products",
                           .values = {{"eps", {1e-12, 1.0}}, {"unit_offset", {1}}},
                           .absent = {"residual", "sum"},
                           .far_rows = true});
  forward.excuses = {{"lower_precision",
                      "the sum of two bf16 rounded to bf16 is what `sum` is defined to hold",
                      [](const Case& c) { return c.dtype == DType::bf16; }, "sum"}};
  forward.largest_exponent = 50;  // the exercise's rows too
  forward.prepare = [](const Case& c, Arrays<double>& inputs) {
    if (c.fill != Fill::far_rows) return;
    // A sum of two is a number, and without eps so is 1 / the root.
    const bool exact = c.parameter("eps", 1e-6) == 0;
    for (const char* name : {"x", "residual"})
      if (auto* array = inputs.find(name))
        for (double& v : array->values()) {
          if (c.parameter("residual") != 0) v /= 2;
          if (exact && std::fabs(v) < 0x1p-126) v *= 0x1p30;
        }
  };
  // Squares of the least numbers are 0 in f32: without eps they have no root to divide by.
  forward.suits = [](const Case& c) { return c.fill != Fill::denormals || c.parameter("eps", 1e-6) > 1e-30; };
  Spec backward = row_spec({.function = "rms_norm_backward",
                            .oracle = oracles<RmsNormBackwardOracle, true>(),
                            .reason = "a sum along a row, one down the columns, and four products",
                            .gradient_of = "rms_norm",
                            .values = {{"unit_offset", {1}}}});
  backward.largest_exponent = 16;
  return {forward, backward};
}

}  // namespace rooftile::harness
