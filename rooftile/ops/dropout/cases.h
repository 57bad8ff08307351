#pragma once
#include "rooftile/harness/bounded.h"
#include "rooftile/harness/gpu_cases.h"
#include "rooftile/harness/letters.h"
#include "rooftile/ops/dropout/oracle.h"

namespace rooftile::harness {

/// Seeds and offsets that a case names; the others are any numbers.
inline void dropout_numbers(const Case& c, Arrays<double>& inputs) {
  for (const char* name : {"seed", "offset"})
    if (const auto its = c.parameters.find(name + std::string("_is")); its != c.parameters.end())
      if (Array<double>* number = inputs.find(name)) number->values()[0] = its->second;
}

/// The rest of what the signature leaves open.
inline Spec dropout_spec(const SpecParts& parts) {
  Spec spec = spec_of(parts);
  spec.standard = true;
  spec.least_rank = 1;
  spec.largest_exponent = 80;  // a product with 2^32 and a sum are numbers
  spec.prepare = dropout_numbers;
  // An element's place in the tensor decides: rows depend on those before them.
  spec.operands = [operands = spec.operands](const Case& c) {
    std::vector<Operand> list = operands(c);
    for (Operand& operand : list) operand.batched = false;
    return list;
  };
  spec.flops = [](const Case& c) {
    double n = c.parameter("residual") ? 2 : 1;
    for (std::int64_t size : c.shape) n *= static_cast<double>(size);
    return n;
  };
  spec.cases = [dtypes = spec.dtypes] {
    std::vector<Case> cases;
    for (DType type : dtypes) {
      for (double p : {0., 0.1, 0.3, 0.5, 0.9, 1.})
        for (Fill fill : {Fill::normal, Fill::one_infinity, Fill::one_nan})
          cases.push_back({{5, 65}, type, {{"p", p}}, Layout::contiguous, fill});
      // More than 32 bits of a seed (torch-xpu-ops 4851), all of them, and a counter that wraps.
      for (double seed : {8589934593., 1099511640121., -1., -0x1p63})
        for (double offset : {0., -3., 4294967295., 0x1.fffp62})
          cases.push_back(
              {{3, 100}, type, {{"p", 0.3}, {"offset", 1}, {"seed_is", seed}, {"offset_is", offset}}});
      // Several threads' parts; rows that begin within a counter, by every layout.
      cases.push_back({{70001}, type, {{"p", 0.3}}});
      for (Layout layout : {Layout::transposed, Layout::reversed, Layout::padded_rows,
                            Layout::strided_columns, Layout::broadcast})
        cases.push_back({{3, 70, 131}, type, {{"p", 0.1}}, layout});
      cases.push_back({{9, 1111}, type, {{"p", 0.1}}, Layout::offset, Fill::normal, 1});
      cases.push_back({{2, 3, 4, 5, 7}, type, {{"p", 0.3}}});
      for (const char* operand : {"residual", "dresidual"})
        for (Layout layout : {Layout::contiguous, Layout::transposed, Layout::padded_rows})
          cases.push_back({{5, 131}, type, {{"p", 0.3}, {operand, 1}, {"offset", 1}}, layout});
      cases.push_back(
          {{5, 131}, type, {{"p", 0.3}, {"residual", 1}}, Layout::contiguous, Fill::normal, 0, true});
    }
    return cases;
  };
  spec.bench = [dtypes = spec.dtypes] {
    BenchCases b;
    for (DType type : dtypes) {
      b.cache.push_back({{128, 1024}, type, {{"p", 0.1}}});
      b.memory.push_back({{65536, 4096}, type, {{"p", 0.1}}});
    }
    b.gpu = gpu_rows();
    for (Case& c : b.gpu) c.parameters["p"] = 0.1;
    return b;
  };
  return spec;
}

/// Beyond 2^31 elements all inputs are 1, seed and offset too.
inline bool huge_dropout_keeps(const Case& c, std::int64_t index) {
  const bool offset = c.parameter("offset", 0) != 0;
  return PhiloxStream{1, offset}.word(static_cast<std::uint64_t>(index)) * 0x1p-32 >= c.parameter("p", 0.5);
}

inline std::vector<Spec> dropout_specs() {
  static constexpr auto one = [](const Case&, std::string_view) { return 1.0; };
  const Tolerance tolerance{.c = 2,
                            .chain = one,
                            .accumulator = [](const Case&) { return DType::f32; },
                            .reason = "1/(1 - p), a product and a sum, each rounded once as in the bound"};
  Spec forward = dropout_spec({.function = "dropout",
                               .oracle = bounded_oracles<DropoutOracle>(),
                               .tolerance = tolerance,
                               .absent = {"offset", "residual"}});
  Spec backward = dropout_spec({.function = "dropout_backward",
                                .oracle = bounded_oracles<DropoutBackwardOracle>(),
                                .tolerance = tolerance,
                                .absent = {"offset", "dresidual"}});
  forward.huge_output = [](const Case& c, std::string_view, std::int64_t index) {
    return (huge_dropout_keeps(c, index) ? 2. : 0.) + c.parameter("residual");
  };
  backward.huge_output = [](const Case& c, std::string_view operand, std::int64_t index) {
    return operand == "dresidual" ? 1. : huge_dropout_keeps(c, index) ? 2. : 0.;
  };
  backward.excuses = {{"input dy", "the residual's gradient is dy", nullptr, "dresidual"},
                      {"lower_precision", "a copy has no arithmetic", nullptr, "dresidual"}};
  return {forward, backward};
}

}  // namespace rooftile::harness
