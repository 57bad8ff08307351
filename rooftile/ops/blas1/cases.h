#pragma once
#include "rooftile/ops/blas1/blas1.h"
#include "rooftile/ops/blas1/oracle.h"

namespace rooftile::harness {

inline double blas1_count(const Case& c) {
  double n = 1;
  for (std::int64_t s : c.shape) n *= static_cast<double>(s);
  return n;
}
inline double blas1_width(const Case& c) { return bits(c.dtype) / 8.0; }

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

// ---- copy

inline Spec copy_spec() {
  return {
      .function = "copy",
      .axes = "any shape",
      .dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::i8,
                 DType::u8, DType::u4},
      .operands = [](const Case& c) -> std::vector<Operand> {
        return {{"x", Operand::Kind::input, c.dtype, c.shape},
                {"y", Operand::Kind::output, c.dtype, c.shape, true, "x"}};
      },
      .call = [](const Queue& q, const Case&, const Arguments& a, const char* variant,
                 Workspace) { return copy(q, a.in("x"), a.out("y"), {variant}); },
      .oracle = oracles<CopyOracle, true>(),
      .flops = [](const Case&) { return 0.0; },
      .bytes = [](const Case& c) { return 2 * blas1_count(c) * blas1_width(c); },
      .tolerance = {.exact = true, .reason = "no arithmetic"},
      .excuses = {{"input", "a copy is its input"}},
      .cases =
          [] {
            std::vector<Case> cases;
            for (DType type : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32,
                               DType::i8, DType::u8})
              for (Layout layout : {Layout::contiguous, Layout::transposed, Layout::reversed})
                cases.push_back({{3, 70, 130}, type, {}, layout});
            return cases;
          },
      .bench =
          [] {
            BenchCases b = blas1_bench();
            for (std::int64_t n = 512; n <= std::int64_t{1} << 27; n *= 2)
              b.sweep.push_back({{n}, DType::f32, {}});
            return b;
          },
  };
}

// ---- add

inline Spec add_spec() {
  return {
      .function = "add",
      .axes = "any shape",
      .dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16},
      .operands = [](const Case& c) -> std::vector<Operand> {
        return {{"x", Operand::Kind::input, c.dtype, c.shape},
                {"y", Operand::Kind::input, c.dtype, c.shape},
                {"z", Operand::Kind::output, c.dtype, c.shape, true, "x"}};
      },
      .call = [](const Queue& q, const Case&, const Arguments& a, const char* variant,
                 Workspace) { return add(q, a.in("x"), a.in("y"), a.out("z"), {variant}); },
      .oracle = oracles<AddOracle, true>(),
      .flops = blas1_count,
      .bytes = [](const Case& c) { return 3 * blas1_count(c) * blas1_width(c); },
      .tolerance =
          {.c = 1,
           .chain = [](const Case&, std::string_view) { return 1.0; },
           .accumulator = blas1_accumulator,
           .reason = "f64 and f32 are rounded once, as the output must be; halves once more, to f32 before"},
      .excuses = {{"lower_precision", "a sum of two bf16 that is rounded to bf16 is the answer",
                   [](const Case& c) { return c.dtype == DType::bf16; }}},
      .cases =
          [] {
            std::vector<Case> cases;
            for (DType type : {DType::f64, DType::f32, DType::f16, DType::bf16})
              for (Layout layout : {Layout::contiguous, Layout::transposed, Layout::broadcast})
                cases.push_back({{3, 70, 130}, type, {}, layout, Fill::wide});
            return cases;
          },
      .bench = blas1_bench,
  };
}

// ---- axpby

inline double axpby_alpha(const Case& c) { return axpby_factor(c, "alpha", 0.7); }
inline double axpby_beta(const Case& c) { return axpby_factor(c, "beta", -0.3); }

inline Spec axpby_spec() {
  return {
      .function = "axpby",
      .axes = "any shape",
      .dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16},
      .operands = [](const Case& c) -> std::vector<Operand> {
        return {{"x", Operand::Kind::input, c.dtype, c.shape}, {"y", Operand::Kind::inout, c.dtype, c.shape}};
      },
      .call =
          [](const Queue& q, const Case& c, const Arguments& a, const char* variant, Workspace) {
            return axpby(q, c.parameter("alpha", 0.7), a.in("x"), c.parameter("beta", -0.3), a.out("y"),
                         {variant});
          },
      .oracle = oracles<AxpbyOracle, true>(),
      .flops =
          [](const Case& c) {
            const int factors = (axpby_alpha(c) != 0) + (axpby_beta(c) != 0);
            return (factors == 2 ? 3 : factors) * blas1_count(c);
          },
      .bytes =
          [](const Case& c) {
            return (1 + (axpby_alpha(c) != 0) + (axpby_beta(c) != 0)) * blas1_count(c) * blas1_width(c);
          },
      .tolerance = {.c = 3,
                    .chain = [](const Case&, std::string_view) { return 1.0; },
                    .accumulator = blas1_accumulator,
                    .reason =
                        "the factors and the product with β are rounded, halves also to f32 before the end"},
      .excuses = {},
      .cases =
          [] {
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
          },
      .bench = blas1_bench,
      .options = {{"alpha", Option::Kind::real, 0.7, -kMaxFloat, kMaxFloat},
                  {"beta", Option::Kind::real, -0.3, -kMaxFloat, kMaxFloat}},
      .largest_exponent = 890,  // f64 times a float's largest
      // What a factor of 0 leaves unread may hold anything.
      .prepare =
          [](const Case& c, Arrays<double>& inputs) {
            if (axpby_alpha(c) == 0)
              for (double& x : inputs["x"].values()) x = std::nan("");
            if (axpby_beta(c) == 0)
              for (double& y : inputs["y"].values()) y = std::nan("");
          },
  };
}

// ---- dot

/// f64 shows each bit that the sum is off; rounded to the data's dtype, where a case says so, most of them
/// vanish.
inline DType dot_result(const Case& c) { return c.parameter("own_result") != 0 ? c.dtype : DType::f64; }

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
  return chunk / 16 + 16;
}

inline Spec dot_spec() {
  return {
      .function = "dot",
      .axes = "any shape, summed whole",
      .dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16},
      .operands = [](const Case& c) -> std::vector<Operand> {
        return {{"x", Operand::Kind::input, c.dtype, c.shape},
                {"y", Operand::Kind::input, c.dtype, c.shape},
                {"result", Operand::Kind::output, dot_result(c), {}, false}};
      },
      .call = [](const Queue& q, const Case&, const Arguments& a, const char* variant,
                 Workspace) { return dot(q, a.in("x"), a.in("y"), a.out("result"), {variant}); },
      .oracle = oracles<DotOracle, true>(),
      .flops = [](const Case& c) { return 2 * blas1_count(c); },
      .bytes = [](const Case& c) { return 2 * blas1_count(c) * blas1_width(c) + bits(dot_result(c)) / 8; },
      .tolerance = {.c = 2,
                    .chain = dot_chain,
                    .accumulator = blas1_accumulator,
                    .reason = "a fused multiply-add rounds once; the first two rungs and the baseline twice"},
      .excuses = {},
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

inline std::vector<Spec> blas1_specs() { return {copy_spec(), add_spec(), axpby_spec(), dot_spec()}; }

}  // namespace rooftile::harness
