#pragma once
#include "rooftile/ops/dyt/oracle.h"

namespace rooftile::harness {

inline std::vector<Spec> dyt_specs() {
  const auto one = [](const Case&, std::string_view) { return 1.0; };
  Spec forward = row_spec({.function = "dyt",
                           .oracle = oracles<DytOracle>(),
                           .reason = "a tanh within 4 roundings, and two products"});
  forward.tolerance.chain = one;
  Spec backward = row_spec({.function = "dyt_backward",
                            .oracle = oracles<DytBackwardOracle>(),
                            .reason = "an exponential within 6 roundings, five products, and sums down the "
                                      "columns and over all elements",
                            .gradient_of = "dyt"});
  backward.tolerance.chain = one;  // the oracle's magnitudes of sums count theirs
  backward.largest_exponent = 30;  // products of four are numbers
  // With an infinite alpha tanh is 1 and its slope 0, but in an empty lane, 0 · ∞, neither.
  backward.prepare = [](const Case& c, Arrays<double>& inputs) {
    if (c.fill == Fill::positive) inputs["alpha"].values()[0] = HUGE_VAL;
  };
  backward.cases = [rows = backward.cases, dtypes = backward.dtypes] {
    std::vector<Case> cases = rows();
    for (DType type : dtypes)
      for (const Shape& shape : {Shape{5, 100}, Shape{2101, 30}, Shape{70, 1025}, Shape{3, 4100}})
        cases.push_back({shape, type, {}, Layout::contiguous, Fill::positive});
    return cases;
  };
  return {forward, backward};
}

}  // namespace rooftile::harness
