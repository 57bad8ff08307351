#pragma once
#include "rooftile/harness/gpu_cases.h"
#include "rooftile/ops/softmax/oracle.h"
#include "rooftile/ops/softmax/softmax.h"

namespace rooftile::harness {

inline SoftmaxOptions softmax_options(const Case& c, const char* variant) {
  return {softmax_scale(c), c.parameter("log") != 0, c.parameter("causal") != 0, c.parameter("masked") != 0,
          variant};
}

/// Rows of large numbers, by "extreme": 1 all the same, a masked row's; 2 a half of them; 3 the largest
/// numbers of both signs among others; 4 close to each other; 5 as 1 with the dtype's lowest.
inline void softmax_extremes(const Case& c, std::vector<double>& values) {
  const int which = static_cast<int>(c.parameter("extreme"));
  const double lowest = c.dtype == DType::f64    ? -0x1.fffffffffffffp1023
                        : c.dtype == DType::f16  ? -65504
                        : c.dtype == DType::bf16 ? -0x1.fep127
                                                 : -0x1.fffffep127;
  const double mask = c.dtype == DType::f16 ? -6e4 : -1e30;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (which == 1 || (which == 2 && i % 2)) values[i] = mask;
    // Not all alike, or all additions of one row would round the same way.
    const double most = lowest * (1 - std::ldexp(static_cast<double>(i * 7919 % 1009), -11));
    if (which == 3 && i % 3) values[i] = i % 3 == 1 ? most : -most;
    if (which == 4) values[i] = mask * (1 + std::ldexp(static_cast<double>(i % 5), -9));
    if (which == 5) values[i] = lowest;
  }
}
inline std::vector<Option> softmax_option_list() {
  return {{"scale", Option::Kind::real, 1, -kMaxFloat, kMaxFloat}, {"log"}, {"causal"}, {"masked"}};
}
inline const char* softmax_refuses(const Case& c) {
  return c.parameter("causal") != 0 && c.shape.size() < 2 ? "rank" : nullptr;
}
/// With causal a query knows how many there are.
inline Operand softmax_rows(const Case& c, const char* name, Operand::Kind kind,
                            const char* may_be = nullptr) {
  return {name, kind, c.dtype, c.shape, c.parameter("causal") == 0 || c.shape.size() > 2, may_be};
}

/// One of each class: exact, rounded, near the ends.
inline constexpr double kSoftmaxScales[] = {
    1, 0.125, -1, 0, 0.08838834764831845, 0.11180339887498949, -3, -0.7, 1e-30, 1e-40, 1e30, -3e38};

inline std::vector<Case> softmax_cases(bool forward) {
  std::vector<Case> cases;
  for (DType type : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (double scale : kSoftmaxScales)
      for (double log : {0., 1.}) cases.push_back({{5, 100}, type, {{"scale", scale}, {"log", log}}});
    for (double scale : kSoftmaxScales)
      for (double log : {0., 1.}) {
        // Rows of a warp; of several, where -inf is among them; of a cluster; not held.
        if (!forward) continue;
        for (double extreme : {1., 2., 3., 4., 5.})
          cases.push_back({{3, 100}, type, {{"scale", scale}, {"log", log}, {"extreme", extreme}}});
        for (Shape shape : {Shape{2, 1111}, Shape{2, 40000}, Shape{1, 70001}})
          for (double extreme : {1., 3.}) {
            // All terms 1 but for a few percent may round the same way at every step: in the rungs, which
            // take no logarithm, errors would pile up as their number, not as its root.
            if (std::fabs(scale) < 1e-35 && extreme == 3 && log == 0) continue;
            if (type == DType::f32 || shape.back() < 2000)
              cases.push_back({shape, type, {{"scale", scale}, {"log", log}, {"extreme", extreme}}});
          }
        for (Fill fill : {Fill::minus_infinities, Fill::one_infinity, Fill::masked, Fill::large_offset})
          cases.push_back({{3, 1111}, type, {{"scale", scale}, {"log", log}}, Layout::contiguous, fill});
      }
    for (Fill fill :
         {Fill::minus_infinities, Fill::one_infinity, Fill::one_nan, Fill::large_offset, Fill::wide})
      cases.push_back({{4, 130}, type, {{"log", 1}}, Layout::contiguous, fill});
    // Attention rows, a vocabulary's, and both sides of the length from which rows are no longer held.
    // On a GPU: many rows a block, a block's longest row, parts of it in several blocks, and one that no
    // cluster holds.
    for (Shape shape :
         {Shape{2, 3, 4, 77}, Shape{2, 50257}, Shape{2, 65536}, Shape{1, 65537}, Shape{3, 70001},
          Shape{700, 30}, Shape{2, 32768}, Shape{1, 200001}, Shape{1, 300001}}) {
      cases.push_back({shape, type, {}});
      cases.push_back({shape, type, {{"log", 1}}});
    }
    for (Fill fill : {Fill::minus_infinities, Fill::one_nan, Fill::one_infinity})
      cases.push_back({{2, 66000}, type, {}, Layout::contiguous, fill});
    // Warps that see nothing but -inf, in a block and in a cluster.
    for (Shape shape : {Shape{9, 1111}, Shape{3, 4096}, Shape{2, 40000}})
      for (double log : {0., 1.})
        if (forward) cases.push_back({shape, type, {{"log", log}}, Layout::contiguous, Fill::masked});
  }
  cases.push_back({{1, 1 << 20}, DType::f32, {}});
  // As many queries as keys, fewer, and more: then the first ones see none. A warp's rows, a block's, one of
  // several segments, which begin at odd places; rows that see nothing above -inf.
  for (DType type : {DType::f64, DType::f32, DType::f16, DType::bf16})
    for (double log : {0., 1.}) {
      const std::map<std::string, double> causal{{"causal", 1}, {"log", log}, {"scale", 0.125}};
      for (Shape shape : {Shape{2, 6, 6}, Shape{3, 5, 77}, Shape{2, 9, 4}, Shape{2, 3, 130, 130},
                          Shape{40, 1}, Shape{3, 1111}, Shape{2, 9001}, Shape{0, 9}, Shape{4, 0}})
        cases.push_back({shape, type, causal});
      for (Fill fill : {Fill::minus_infinities, Fill::one_nan, Fill::one_infinity, Fill::masked})
        for (const char* flag : {"causal", "masked"})
          cases.push_back({{2, 9, 40}, type, {{flag, 1}, {"log", log}}, Layout::contiguous, fill});
      for (Layout layout : {Layout::strided_columns, Layout::reversed, Layout::transposed})
        cases.push_back({{2, 7, 33}, type, causal, layout});
    }
  return cases;
}

/// The longest chain: the row, split over the variant's accumulators; then their tree. Of a long row a CPU
/// adds up parts, and 1024 threads of a GPU share it; the rungs' first ones do neither.
inline double softmax_chain(const Case& c, std::string_view variant) {
  const double columns = static_cast<double>(c.shape.back());
  // Fewest lanes that a kernel of the block language may have: four vectors of 4, of f64 of 2 (baseline).
  const double lanes = c.dtype == DType::f64                             ? 8
                       : variant == "01_scalar" || variant == "01_naive" ? 1
                       : variant < "04"                                  ? 4
                                                                         : 16;
  constexpr double kHeld = 65536, kThreads = 1024;
  if (lanes >= 8 && columns > kHeld) return std::ceil(kHeld / lanes + columns / (kThreads * lanes)) + lanes;
  return std::ceil(columns / lanes) + lanes;
}

inline BenchCases softmax_bench(bool) {
  BenchCases b;
  for (DType type : {DType::f32, DType::bf16, DType::f16}) {
    b.cache.push_back({{64, 1024}, type, {}});
    b.cache.push_back({{1024, 1024}, type, {}});
    b.memory.push_back({{65536, 4096}, type, {}});
  }
  b.gpu = gpu_rows();
  for (std::int64_t rows = 1; rows <= (1 << 18); rows *= 2) b.sweep.push_back({{rows, 512}, DType::f32, {}});
  return b;
}

inline std::vector<Spec> softmax_specs() {
  const auto elements = [](const Case& c) {
    double n = 1;
    for (std::int64_t s : c.shape) n *= static_cast<double>(s);
    return n;
  };
  static const auto count = elements;
  static const auto seen = [](const Case& c) {
    double n = 0;
    const std::int64_t rows = c.shape.size() < 2 ? 1 : c.shape[c.shape.size() - 2];
    for (std::int64_t row = 0; row < rows; ++row) n += static_cast<double>(softmax_seen(c, row));
    return rows == 0 ? 0
                     : n * count(c) / static_cast<double>(rows * std::max<std::int64_t>(c.shape.back(), 1));
  };
  Spec forward{
      .function = "softmax",
      .axes = "rows x columns (more outer dimensions may precede)",
      .dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16},
      .operands = [](const Case& c) -> std::vector<Operand> {
        return {softmax_rows(c, "x", Operand::Kind::input), softmax_rows(c, "y", Operand::Kind::output, "x")};
      },
      .call = [](const Queue& q, const Case& c, const Arguments& a, const char* variant,
                 Workspace) { return softmax(q, a.in("x"), a.out("y"), softmax_options(c, variant)); },
      .oracle = oracles<SoftmaxOracle, true>(),
      // For each element: scale and maximum; scale, shift, exp and sum; scale, shift, exp and quotient.
      .flops = [](const Case& c) { return (c.parameter("log") ? 9 : 10) * seen(c); },
      .bytes = [](const Case& c) { return (seen(c) + count(c)) * bits(c.dtype) / 8; },
      .tolerance = {.c = 2,
                    .chain = softmax_chain,
                    .accumulator = row_arithmetic,
                    .reason = "exp and the quotient add an ulp each to the sum's rounding"},
      .excuses = {},
      .cases = [] { return softmax_cases(true); },
      .bench = [] { return softmax_bench(true); },
      .options = softmax_option_list(),
      .prepare = [](const Case& c, Arrays<double>& inputs) { softmax_extremes(c, inputs["x"].values()); },
      .refuses = softmax_refuses,
  };
  Spec backward{
      .function = "softmax_backward",
      .axes = forward.axes,
      .dtypes = forward.dtypes,
      .operands = [](const Case& c) -> std::vector<Operand> {
        return {softmax_rows(c, "y", Operand::Kind::input), softmax_rows(c, "dy", Operand::Kind::input),
                softmax_rows(c, "dx", Operand::Kind::output, "dy")};
      },
      .call =
          [](const Queue& q, const Case& c, const Arguments& a, const char* variant, Workspace) {
            return softmax_backward(q, a.in("y"), a.in("dy"), a.out("dx"), softmax_options(c, variant));
          },
      .oracle = oracles<SoftmaxBackwardOracle, true>(),
      .flops = [](const Case& c) { return 5 * count(c); },
      .bytes = [](const Case& c) { return 3 * count(c) * bits(c.dtype) / 8; },
      .tolerance = {.c = 2,
                    .chain = softmax_chain,
                    .accumulator = row_arithmetic,
                    .reason = "one product and one difference beside the sum"},
      .excuses = {},
      .cases = [] { return softmax_cases(false); },
      .bench = [] { return softmax_bench(false); },
      .gradient_of = "softmax",
      .options = softmax_option_list(),
      .largest_exponent = 800,  // times any float of a scale, the tolerance of f64 must be a number
      // The logarithm of a probability is not above 0. Huge gradients: such that their sum is a number.
      .prepare =
          [](const Case& c, Arrays<double>& inputs) {
            if (c.fill == Fill::huge || c.fill == Fill::huge_rows) {
              const int halvings = c.dtype == DType::f64 ? 1024 : c.dtype == DType::f16 ? 16 : 128;
              const double most = 2 * std::fmax(static_cast<double>(c.shape.back()), 1);
              for (double& dy : inputs["dy"].values()) dy /= most;
              if (!c.parameter("log"))
                for (double& y : inputs["y"].values()) y = std::ldexp(std::fabs(y), -halvings);
            }
            if (c.parameter("log"))
              for (double& y : inputs["y"].values()) y = -std::fabs(y);
            if (!softmax_masks(c)) return;
            std::vector<double>&y = inputs["y"].values(), &dy = inputs["dy"].values();
            for (std::size_t i = 1; i < y.size(); i += 3) {
              y[i] = c.parameter("log") ? -HUGE_VAL : 0;
              if (i % 2) dy[i] = NAN;  // of no account
            }
          },
      .refuses = softmax_refuses,
  };
  return {forward, backward};
}

}  // namespace rooftile::harness
