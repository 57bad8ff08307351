#pragma once
#include "rooftile/harness/gpu_cases.h"
#include "rooftile/harness/signature_spec.h"
#include "rooftile/ops/activation/activation.signatures.h"
#include "rooftile/ops/activation/oracle.h"

namespace rooftile::harness {

inline double elements_of(const Case& c) {
  double n = 1;
  for (std::int64_t s : c.shape) n *= static_cast<double>(s);
  return n;
}

/// Beside the standard shapes: several threads' and blocks' parts, more outer dimensions, and each value of
/// the option.
inline std::vector<Case> activation_cases(const char* option, std::initializer_list<double> values) {
  std::vector<Case> cases;
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    const auto add = [&](std::map<std::string, double> parameters) {
      cases.push_back({{3, 70, 130}, type, parameters, Layout::transposed, Fill::wide});
      cases.push_back({{70001}, type, parameters, Layout::contiguous, Fill::wide});
      cases.push_back({{9, 1111}, type, parameters, Layout::offset, Fill::normal, 1});
      for (Fill fill : {Fill::one_infinity, Fill::minus_infinities, Fill::one_nan, Fill::denormals})
        cases.push_back({{5, 65}, type, parameters, Layout::contiguous, fill});
    };
    if (!option) add({});
    for (double value : values) add({{option, value}});
  }
  return cases;
}

inline BenchCases activation_bench() {
  BenchCases b;
  for (DType type : {DType::f32, DType::bf16, DType::f16}) {
    b.cache.push_back({{128, 1024}, type, {}});
    b.memory.push_back({{65536, 4096}, type, {}});
  }
  b.gpu = gpu_rows();
  return b;
}

/// The parts that are the same for all of them.
template <const Signature& kSignature>
Spec activation_spec(OracleFunctions oracle, double (*flops)(const Case&), std::vector<Case> (*cases)(),
                     const char* gradient_of = nullptr) {
  Spec spec = spec_of<kSignature>();
  spec.oracle = oracle;
  spec.flops = flops;
  spec.tolerance = {
      .c = 8,
      .chain = [](const Case&, std::string_view) { return 1.0; },
      .accumulator = [](const Case&) { return DType::f32; },
      .reason = "the polynomials are within 5 roundings, the exponential, 1/x and the products add one each"};
  spec.cases = cases;
  spec.bench = activation_bench;
  spec.gradient_of = gradient_of;
  return spec;
}

inline std::vector<Spec> activation_specs() {
  const auto plain = [] { return activation_cases(nullptr, {}); };
  const auto betas = [] { return activation_cases("beta", {1, -0.7, 0, 1e-30, 1e30}); };
  const auto forms = [] { return activation_cases("tanh", {0, 1}); };

  // max is one; a choice is none.
  Spec relu = activation_spec<kRelu>(oracles<ActivationOracle<Relu>>(), elements_of, plain);
  Spec relu_backward = activation_spec<kReluBackward>(
      oracles<ReluBackwardOracle>(), [](const Case&) { return 0.0; }, plain, "relu");
  for (Spec* exact : {&relu, &relu_backward}) exact->tolerance = {.exact = true, .reason = "no arithmetic"};
  Spec tanh = activation_spec<kTanh>(oracles<ActivationOracle<Tanh>>(), elements_of, plain);
  tanh.excuses = {{"lower_precision", "a tanh of bf16 that is rounded to bf16 once is the answer",
                   [](const Case& c) { return c.dtype == DType::bf16; }}};
  return {
      relu,
      relu_backward,
      activation_spec<kSigmoid>(
          oracles<ActivationOracle<Sigmoid>>(), [](const Case& c) { return 4 * elements_of(c); }, plain),
      activation_spec<kSigmoidBackward>(
          oracles<ActivationBackwardOracle<Sigmoid, true>>(),
          [](const Case& c) { return 3 * elements_of(c); }, plain, "sigmoid"),
      tanh,
      activation_spec<kTanhBackward>(
          oracles<ActivationBackwardOracle<Tanh, true>>(), [](const Case& c) { return 3 * elements_of(c); },
          plain, "tanh"),
      activation_spec<kSilu>(
          oracles<ActivationOracle<Silu>>(), [](const Case& c) { return 6 * elements_of(c); }, betas),
      activation_spec<kSiluBackward>(
          oracles<ActivationBackwardOracle<Silu, false>>(), [](const Case& c) { return 10 * elements_of(c); },
          betas, "silu"),
      activation_spec<kGelu>(
          oracles<ActivationOracle<Gelu>>(),
          [](const Case& c) { return (c.parameter("tanh") ? 9 : 5) * elements_of(c); }, forms),
      activation_spec<kGeluBackward>(
          oracles<ActivationBackwardOracle<Gelu, false>>(),
          [](const Case& c) { return (c.parameter("tanh") ? 16 : 11) * elements_of(c); }, forms, "gelu"),
  };
}

}  // namespace rooftile::harness
