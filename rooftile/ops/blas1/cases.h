#pragma once
#include "rooftile/harness/signature_spec.h"
#include "rooftile/ops/blas1/blas1.h"
#include "rooftile/ops/blas1/oracle.h"

namespace rooftile::harness {

inline double blas1_count(const Case& c) {
  double n = 1;
  for (std::int64_t s : c.shape) n *= static_cast<double>(s);
  return n;
}
inline double blas1_width(const Case& c) { return bits(c.dtype) / 8.0; }
inline double blas1_one(const Case&, std::string_view) { return 1; }

/// What single precision and half computes in.
inline DType blas1_accumulator(const Case& c) { return c.dtype == DType::f64 ? DType::f64 : DType::f32; }

/// In the second-level cache, and so long that two operands are 2 GiB of f32.
inline BenchCases blas1_bench() {
  BenchCases b;
  for (DType type : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    const std::int64_t factor = bits(type) / 16;
    b.cache.push_back({{(1 << 17) / factor}, type, {}});
    b.memory.push_back({{(std::int64_t{1} << 29) / factor}, type, {}});
    b.gpu.push_back({{(std::int64_t{1} << 29) / factor}, type, {}});
  }
  return b;
}

// ---- copy, swap

inline Spec copy_spec() {
  Spec spec = elements_spec("copy", oracles<CopyOracle, true>(), {}, true);
  spec.dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64,
                 DType::i32, DType::i8,  DType::u8,  DType::u4};
  spec.excuses = {{"input", "a copy is its input"}};
  spec.cases = [] {
    std::vector<Case> cases;
    for (DType type :
         {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::i8, DType::u8})
      for (Layout layout : {Layout::contiguous, Layout::transposed, Layout::reversed})
        cases.push_back({{3, 70, 130}, type, {}, layout});
    return cases;
  };
  spec.bench = [] {
    BenchCases b = blas1_bench();
    for (std::int64_t n = 512; n <= std::int64_t{1} << 27; n *= 2) b.sweep.push_back({{n}, DType::f32, {}});
    return b;
  };
  return spec;
}

inline Spec swap_spec() {
  Spec spec = elements_spec("swap", oracles<SwapOracle, true>(), {}, true);
  spec.excuses = {{"input y", "x becomes what y was", nullptr, "x"},
                  {"input x", "y becomes what x was", nullptr, "y"}};
  spec.bench = blas1_bench;
  return spec;
}

// ---- scal, add

inline Tolerance rounded_once() {
  return {.c = 1,
          .chain = blas1_one,
          .accumulator = blas1_accumulator,
          .reason = "f64 and f32 are rounded once, as the output must be; halves once more, to f32 before"};
}

inline Spec scal_spec() {
  // 0 meets a NaN and an infinity: both give a NaN. 1e-50 is 0 in f32.
  Spec spec = elements_spec("scal", oracles<ScalOracle, true>(), {0.7, 0, 1, -1, 1e-50, 1e30, HUGE_VAL});
  spec.tolerance = rounded_once();
  spec.bench = blas1_bench;
  return spec;
}

inline Spec add_spec() {
  Spec spec = elements_spec("add", oracles<AddOracle, true>());
  spec.tolerance = rounded_once();
  spec.excuses = {{"lower_precision", "a sum of two bf16 that is rounded to bf16 is the answer",
                   [](const Case& c) { return c.dtype == DType::bf16; }}};
  spec.bench = blas1_bench;
  return spec;
}

// ---- axpby

inline double axpby_alpha(const Case& c) { return factor_of(c, "alpha", 0.7); }
inline double axpby_beta(const Case& c) { return factor_of(c, "beta", -0.3); }

inline Spec axpby_spec() {
  Spec spec = elements_spec("axpby", oracles<AxpbyOracle, true>());
  spec.call = [](const Queue& q, const Case& c, const Arguments& a, const char* variant, Workspace) {
    return axpby(q, c.parameter("alpha", 0.7), a.in("x"), c.parameter("beta", -0.3), a.out("y"), {variant});
  };
  spec.flops = [](const Case& c) {
    const int factors = (axpby_alpha(c) != 0) + (axpby_beta(c) != 0);
    return (factors == 2 ? 3 : factors) * blas1_count(c);
  };
  spec.bytes = [](const Case& c) {
    return (1 + (axpby_alpha(c) != 0) + (axpby_beta(c) != 0)) * blas1_count(c) * blas1_width(c);
  };
  spec.tolerance = {
      .c = 3,
      .chain = blas1_one,
      .accumulator = blas1_accumulator,
      .reason = "the factors and the product with β are rounded, halves also to f32 before the end"};
  spec.cases = [] {
    std::vector<Case> cases;
    for (DType type : {DType::f64, DType::f32, DType::f16, DType::bf16})
      for (auto [alpha, beta] : {std::pair{0.0, 1.5},
                                 {1.5, 0.0},
                                 {0.0, 0.0},
                                 {1.0, 1.0},
                                 {-1.0, 1.0},
                                 {1e-3, 1e3},
                                 {1e-50, 1.5},
                                 {-0.3, -1e-60},
                                 {1e-50, 1e-50},
                                 {1e30, 1e-30}})
        for (Layout layout : {Layout::contiguous, Layout::transposed})
          cases.push_back({{7, 300}, type, {{"alpha", alpha}, {"beta", beta}}, layout});
    return cases;
  };
  spec.bench = blas1_bench;
  spec.options = {{"alpha", Option::Kind::real, 0.7, -kMaxFloat, kMaxFloat},
                  {"beta", Option::Kind::real, -0.3, -kMaxFloat, kMaxFloat}};
  spec.largest_exponent = 890;  // f64 times a float's largest
  // What a factor of 0 leaves unread may hold anything.
  spec.prepare = [](const Case& c, Arrays<double>& inputs) {
    if (axpby_alpha(c) == 0)
      for (double& x : inputs["x"].values()) x = std::nan("");
    if (axpby_beta(c) == 0)
      for (double& y : inputs["y"].values()) y = std::nan("");
  };
  return spec;
}

// ---- dot, nrm2, asum

/// f64 shows each bit that the sum is off; rounded to the data's dtype, where a case says so, most of them
/// vanish.
inline DType blas1_result(const Case& c) { return c.parameter("own_result") != 0 ? c.dtype : DType::f64; }

/// What a rung's chain counts as. Terms that are all alike may round the same way at every step: then errors
/// pile up as their number, not as its root.
inline double dot_rung_chain(const Case& c, double additions) {
  return c.fill == Fill::constant_rows ? additions * additions : additions;
}

/// The additions behind one another in the longest chain: in a lane, then across the lanes. Lanes: the fewest
/// that a kernel may have (baseline: vectors of 4 f32 or 2 f64).
inline double dot_chain(const Case& c, std::string_view variant) {
  const double n = std::fmax(blas1_count(c), 1), chunk = std::fmin(n, 16384);
  if (variant == "01_scalar") return dot_rung_chain(c, n + 1);
  if (variant == "02_vectors") return dot_rung_chain(c, n / 4 + 4);
  if (variant == "03_accumulators") return dot_rung_chain(c, n / 16 + 16);
  if (variant == "compensated") return 1;
  // On a GPU: a thread's elements, the block's tree, and the sums that one thread adds.
  if (variant == "01_thread_sums" || variant == "02_neighbours")
    return dot_rung_chain(c, std::ceil(n / 16384) + std::fmin(n, 16384));
  if (variant == "03_shared_memory" || variant == "04_shuffles")
    return dot_rung_chain(c, std::ceil(n / (1024 * 256)) + 8 + std::fmin(std::ceil(n / 256), 1024));
  if (variant == "05_vector_loads")
    return dot_rung_chain(c, std::ceil(n / (1024 * 1024)) + 11 + std::fmin(std::ceil(n / 1024), 1024));
  if (variant == "06_two_passes")
    return dot_rung_chain(c, std::exp2(std::ceil(std::log2(std::fmax(n / 4096, 16384)))) / 1024 + 13);
  if (c.dtype == DType::f64) return chunk / 8 + 8 + std::ceil(std::log2(n / chunk));
  // 16-bit numbers around the smallest normal one are a handful of values, whose squares round alike at each
  // of a thousand steps: errors add up as the steps (nrm2, bf16 1002x128, baseline: 3.1e-6, of which 1.9e-6
  // would be √K's).
  const double steps = chunk / 16 + 16;
  return bits(c.dtype) == 16 && c.fill == Fill::denormals && steps > 1000 ? steps * steps : steps;
}

/// A sum over all elements of its inputs: `x` alone, or `x` and `y`.
inline Spec reduction_spec(const char* function, const OracleFunctions& oracle, bool two) {
  return {
      .function = function,
      .axes = "any shape, summed whole",
      .dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16},
      .operands =
          [two](const Case& c) {
            std::vector<Operand> operands = {{"x", Operand::Kind::input, c.dtype, c.shape}};
            if (two) operands.push_back({"y", Operand::Kind::input, c.dtype, c.shape});
            operands.push_back({"result", Operand::Kind::output, blas1_result(c), {}, false});
            return operands;
          },
      .call = {},
      .oracle = oracle,
      .flops = [](const Case& c) { return 2 * blas1_count(c); },
      .bytes =
          [two](const Case& c) {
            return (two ? 2 : 1) * blas1_count(c) * blas1_width(c) + bits(blas1_result(c)) / 8;
          },
      .tolerance = {.c = 2,
                    .chain = dot_chain,
                    .accumulator = blas1_accumulator,
                    .reason =
                        "a fused multiply-add rounds once; dot's first two rungs and the baseline twice"},
      .cases =
          [] {
            std::vector<Case> cases;
            for (DType type : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
              // Both sides of a chunk's end, several chunks with a tail, and an order that crosses rows.
              for (Shape shape :
                   {Shape{16383}, Shape{16384}, Shape{16385}, Shape{3 * 16384 + 5}, Shape{7, 5001}})
                for (Fill fill : {Fill::normal, Fill::positive})
                  cases.push_back({shape, type, {}, Layout::contiguous, fill});
              for (Layout layout :
                   {Layout::transposed, Layout::reversed, Layout::padded_rows, Layout::broadcast})
                cases.push_back({{5, 70, 130}, type, {}, layout});
              cases.push_back({{4 * 16384}, type, {}, Layout::contiguous, Fill::wide});
              for (Fill fill : {Fill::normal, Fill::positive, Fill::one_infinity, Fill::one_nan})
                cases.push_back({{3, 700}, type, {{"own_result", 1}}, Layout::contiguous, fill});
            }
            return cases;
          },
      .bench = blas1_bench,
      .options = {{"own_result"}},
      .huge_output = [](const Case& c, std::string_view, std::int64_t) { return blas1_count(c); },
  };
}

inline Spec dot_spec() {
  Spec spec = reduction_spec("dot", oracles<DotOracle, true>(), true);
  spec.call = [](const Queue& q, const Case&, const Arguments& a, const char* variant, Workspace) {
    return dot(q, a.in("x"), a.in("y"), a.out("result"), {variant});
  };
  return spec;
}

inline Spec asum_spec() {
  Spec spec = reduction_spec("asum", oracles<AsumOracle, true>(), false);
  spec.call = [](const Queue& q, const Case&, const Arguments& a, const char* variant, Workspace) {
    return asum(q, a.in("x"), a.out("result"), {variant});
  };
  return spec;
}

/// Powers of two for all elements: at which squares leave the range of sums; just beyond kernels::Nrm2's
/// kMin and kMax for a chunk's 2^14 squares, not for the tail's 5, so that partials of two units are
/// joined; and down to subnormal elements.
inline std::vector<double> nrm2_powers(DType type) {
  if (type == DType::f64) return {-1060, -600, -510, -456, -440, 474, 511, 600, 1010};
  if (type == DType::f16) return {-22, -14, 11};
  return {-140, -100, -70, -46, -35, 57, 63, 80, 115};
}

inline Spec nrm2_spec() {
  Spec spec = reduction_spec("nrm2", oracles<Nrm2Oracle, true>(), false);
  spec.call = [](const Queue& q, const Case&, const Arguments& a, const char* variant, Workspace) {
    return nrm2(q, a.in("x"), a.out("result"), {variant});
  };
  spec.flops = [](const Case& c) { return 2 * blas1_count(c) + 1; };
  spec.tolerance.reason = "as dot, and the root, of which f64 has digits to spare";
  spec.cases = [sums = spec.cases] {
    std::vector<Case> cases = sums();
    for (DType type : {DType::f64, DType::f32, DType::f16, DType::bf16})
      for (double power : nrm2_powers(type)) {
        cases.push_back({{4 * 16384 + 5}, type, {{"power", power}}});
        cases.push_back({{4 * 16384 + 5}, type, {{"power", power}, {"apart", 1}}});
        cases.push_back({{3, 70}, type, {{"power", power}, {"own_result", 1}}});
      }
    return cases;
  };
  // 2^power times each element; `apart`: chunk by chunk to this side of 1, to the other, and not at all.
  spec.prepare = [](const Case& c, Arrays<double>& inputs) {
    const double power = c.parameter("power"), most = nrm2_powers(c.dtype).back();
    std::int64_t i = 0;
    for (double& x : inputs["x"].values()) {
      const std::int64_t chunk = i++ / 16384;
      const int side = c.parameter("apart") != 0 ? 1 - static_cast<int>(chunk % 3) : 1;
      x = std::ldexp(x, static_cast<int>(std::fmin(side * power, most)));
    }
  };
  spec.huge_output = [](const Case& c, std::string_view, std::int64_t) { return std::sqrt(blas1_count(c)); };
  return spec;
}

inline std::vector<Spec> blas1_specs() {
  return {copy_spec(),  swap_spec(), scal_spec(), add_spec(),
          axpby_spec(), dot_spec(),  nrm2_spec(), asum_spec()};
}

}  // namespace rooftile::harness
