#pragma once
#include "rooftile/harness/gpu_cases.h"
#include "rooftile/ops/layer_norm/layer_norm.h"
#include "rooftile/ops/layer_norm/oracle.h"

namespace rooftile::harness {

// Parameters: "weight", "bias": 0 absent, 1 of the data's dtype (the default), 2 of f32; "residual", "sum",
// "mean", "rstd", "dweight", "dbias": 0 or 1; "eps".
inline DType layer_norm_weights(const Case& c) {
  return c.parameter("weight", 1) == 2 || c.parameter("bias", 1) == 2 ? DType::f32 : c.dtype;
}

inline std::vector<Operand> layer_norm_operands(const Case& c) {
  const Shape outer(c.shape.begin(), c.shape.end() - 1), columns{c.shape.back()};
  const DType weights = layer_norm_weights(c);
  using Kind = Operand::Kind;
  std::vector<Operand> all{{"x", Kind::input, c.dtype, c.shape}};
  if (c.parameter("residual"))
    all.push_back({"residual", Kind::input, c.dtype, c.shape, true, nullptr, true, true});
  if (c.parameter("weight", 1))
    all.push_back({"weight", Kind::input, weights, columns, false, nullptr, false, true});
  if (c.parameter("bias", 1))
    all.push_back({"bias", Kind::input, weights, columns, false, nullptr, false, true});
  all.push_back({"y", Kind::output, c.dtype, c.shape, true, "x"});
  if (c.parameter("residual") && c.parameter("sum", 1))
    all.push_back({"sum", Kind::output, c.dtype, c.shape, true, "residual", true, true});
  if (c.parameter("mean", 1))
    all.push_back({"mean", Kind::output, row_arithmetic(c), outer, true, nullptr, true, true});
  if (c.parameter("rstd", 1))
    all.push_back({"rstd", Kind::output, row_arithmetic(c), outer, true, nullptr, true, true});
  return all;
}

inline std::vector<Operand> layer_norm_backward_operands(const Case& c) {
  const Shape outer(c.shape.begin(), c.shape.end() - 1), columns{c.shape.back()};
  const DType weights = layer_norm_weights(c);
  using Kind = Operand::Kind;
  std::vector<Operand> all{{"x", Kind::input, c.dtype, c.shape}, {"dy", Kind::input, c.dtype, c.shape}};
  if (c.parameter("weight", 1))
    all.push_back({"weight", Kind::input, weights, columns, false, nullptr, false, true});
  all.push_back({"mean", Kind::input, row_arithmetic(c), outer});
  all.push_back({"rstd", Kind::input, row_arithmetic(c), outer});
  all.push_back({"dx", Kind::output, c.dtype, c.shape, true, "dy"});
  if (c.parameter("dweight", 1))
    all.push_back({"dweight", Kind::output, weights, columns, false, nullptr, false, true});
  if (c.parameter("dbias", 1))
    all.push_back({"dbias", Kind::output, weights, columns, false, nullptr, false, true});
  return all;
}

/// A transformer's widths; many short rows, so that the weight gradients have several blocks, each of many
/// turns where rows are staged; long rows, of which a GPU's warp does the work of several, the last one that
/// of one, of which 8200 elements do not fill all and 8704 do; or which it gives to several blocks, a part to
/// each, some of them one after the other; or that no cluster holds.
inline const std::vector<Shape> kLayerNormShapes = {{2, 3, 768}, {300, 24},   {2100, 30}, {3, 5120},
                                                    {3, 8200},   {2, 8704},   {6, 16384}, {2, 65536},
                                                    {2, 70001},  {1, 140001}, {1, 300001}};

inline std::vector<Case> layer_norm_cases() {
  std::vector<Case> cases;
  for (DType type : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const Shape shape{5, 100};
    for (double weight : {0., 1., 2.})
      for (double residual : {0., 1.})
        cases.push_back({shape, type, {{"weight", weight}, {"bias", weight}, {"residual", residual}}});
    cases.push_back({shape, type, {{"weight", 0}}});
    cases.push_back({shape, type, {{"bias", 0}}});
    cases.push_back({shape, type, {{"mean", 0}, {"rstd", 0}}});
    cases.push_back({shape, type, {{"residual", 1}, {"sum", 0}}});
    for (double eps : {1e-12, 1.0}) cases.push_back({shape, type, {{"eps", eps}}});
    for (Fill fill : {Fill::large_offset, Fill::constant_rows, Fill::one_nan, Fill::one_infinity})
      cases.push_back({{4, 300}, type, {{"residual", 1}}, Layout::contiguous, fill});
    cases.push_back({{1, 70001}, type, {}, Layout::contiguous, Fill::minus_infinities});
    // The mean of one value throughout is rounded; with this eps, squares about it would show that. (Rungs,
    // which take no residual, do show it.) 12295: f16 sums that need more digits than a float has.
    for (const Shape& s : {Shape{300, 24}, Shape{3, 75}, Shape{4, 300}, Shape{2, 12296}, Shape{9, 12295}})
      cases.push_back({s, type, {{"eps", 1e-12}, {"residual", 1}}, Layout::contiguous, Fill::constant_rows});
    // Without eps one value throughout has an infinite rstd.
    for (const Shape& s : {Shape{300, 24}, Shape{4, 300}, Shape{2, 12296}, Shape{2, 40001}})
      cases.push_back({s, type, {{"eps", 0}, {"residual", 1}}, Layout::contiguous, Fill::constant_rows});
    for (double residual : {0., 1.})
      cases.push_back(
          {{4, 300}, type, {{"eps", 0}, {"residual", residual}}, Layout::contiguous, Fill::zeros});
    // Far from 0 y is as exact as around it: rows of a warp, of several, of a long block, of a cluster, and
    // one that is not held. A residual of as much keeps f32's rungs away, which round the mean.
    for (const Shape& s : {Shape{40, 63}, Shape{9, 777}, Shape{5, 5000}, Shape{5, 8192}, Shape{4, 8191},
                           Shape{3, 16384}, Shape{2, 40000}, Shape{1, 300001}})
      for (double given : {0., 1.})
        cases.push_back({s,
                         type,
                         {{"weight", given}, {"bias", given}, {"residual", 1}},
                         Layout::contiguous,
                         Fill::large_offset});
    for (const Shape& s : {Shape{40, 63}, Shape{9, 1000}, Shape{5, 8192}})
      if (type != DType::f32)
        cases.push_back({s, type, {{"weight", 0}, {"bias", 0}}, Layout::contiguous, Fill::large_offset});
    for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::transposed})
      cases.push_back({{3, 70}, type, {{"residual", 1}}, layout});
    for (const Shape& s : kLayerNormShapes) cases.push_back({s, type, {}});
    // Not for the rungs, which look at a row once. Squares of f16 never leave f32; f64 has no second look.
    // In place, in words of several threads.
    for (std::int64_t n : {257, 1025, 9001, 12295})
      cases.push_back({{3, n}, type, {{"residual", 1}}, Layout::offset, Fill::normal, 1, true});
    if (type == DType::f64 || type == DType::f16) continue;
    using Parameters = std::map<std::string, double>;
    for (const Parameters& parameters :
         {Parameters{{"weight", 0}}, {{"weight", 0}, {"eps", 0}}, {{"residual", 1}}})
      for (const Case& c : far_row_cases(type, parameters)) cases.push_back(c);
  }
  return cases;
}

inline std::vector<Case> layer_norm_backward_cases() {
  std::vector<Case> cases;
  for (DType type : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const Shape shape{5, 100};
    for (double weight : {0., 2.}) cases.push_back({shape, type, {{"weight", weight}, {"bias", weight}}});
    cases.push_back({shape, type, {{"dweight", 0}}});
    cases.push_back({shape, type, {{"dbias", 0}}});
    cases.push_back({shape, type, {{"dweight", 0}, {"dbias", 0}}});
    for (const Shape& s : kLayerNormShapes) cases.push_back({s, type, {}});
    // Sums of several rows' teams together: staged, one by one, and apart.
    cases.push_back({{1500, 101}, type, {}, Layout::offset, Fill::normal, 1, true});
    // Rows that begin anywhere and stream, several to a team: of a block, and of three clusters.
    cases.push_back({{70, 1025}, type, {}, Layout::offset, Fill::normal, 1, true});
    cases.push_back({{48, 16385}, type, {}});
    // Teams of several warps that have their sums together, and each its own.
    if (type != DType::f16) {
      cases.push_back({{4111, 520}, type, {}});
      cases.push_back({{4111, 520}, type, {}, Layout::offset});
    }
    for (Layout layout : {Layout::padded_rows, Layout::strided_columns})
      cases.push_back({{600, 30}, type, {}, layout});
  }
  return cases;
}

inline BenchCases layer_norm_bench() {
  BenchCases b;
  for (DType type : {DType::f32, DType::bf16, DType::f16}) {
    b.cache.push_back({{64, 1024}, type, {}});
    b.cache.push_back({{1024, 1024}, type, {}});
    b.memory.push_back({{65536, 4096}, type, {}});
  }
  b.gpu = gpu_rows();
  return b;
}

inline double layer_norm_elements(const Case& c) {
  double n = 1;
  for (std::int64_t s : c.shape) n *= static_cast<double>(s);
  return n;
}
/// Bytes of all operands, each once.
inline double layer_norm_bytes(const std::vector<Operand>& operands) {
  double bytes = 0;
  for (const Operand& o : operands) {
    double n = bits(o.dtype) / 8.0;
    for (std::int64_t s : o.shape) n *= static_cast<double>(s);
    bytes += n;
  }
  return bytes;
}

/// The longest chain of a row: the rung that adds one by one, or the fewest lanes that a tile has.
inline double layer_norm_chain(const Case& c, std::string_view variant) {
  const double n = static_cast<double>(c.shape.back());
  const bool one_by_one = variant == "01_scalar" || variant == "01_naive";
  const double lanes = c.dtype == DType::f64 ? 8 : one_by_one ? 1 : variant == "02_vectors" ? 4 : 16;
  return std::ceil(n / lanes) + lanes;
}

inline std::vector<Spec> layer_norm_specs() {
  Spec forward{
      .function = "layer_norm",
      .axes = "rows x columns (more outer dimensions may precede)",
      .dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16},
      .operands = layer_norm_operands,
      .call =
          [](const Queue& q, const Case& c, const Arguments& a, const char* variant, Workspace) {
            return layer_norm(
                q,
                {.x = a.in("x"),
                 .residual = a.in("residual"),
                 .weight = a.in("weight"),
                 .bias = a.in("bias")},
                {.y = a.out("y"), .sum = a.out("sum"), .mean = a.out("mean"), .rstd = a.out("rstd")},
                {real_of(c, "eps", 1e-5), variant});
          },
      .oracle = oracles<LayerNormOracle, true>(),
      // An element's sum; difference, square and sum; quotient, weight and bias.
      .flops =
          [](const Case& c) {
            return layer_norm_elements(c) * (5 + (c.parameter("weight", 1) != 0) +
                                             (c.parameter("bias", 1) != 0) + (c.parameter("residual") != 0));
          },
      .bytes = [](const Case& c) { return layer_norm_bytes(layer_norm_operands(c)); },
      .tolerance =
          {.c = 4,
           .chain = layer_norm_chain,
           .accumulator = row_arithmetic,
           .reason =
               "two sums, a root and two quotients; the shifted variance takes a few times itself away"},
      .excuses = {{"lower_precision", "the sum of two bf16 rounded to bf16 is what `sum` is defined to hold",
                   [](const Case& c) { return c.dtype == DType::bf16; }, "sum"}},
      .cases = layer_norm_cases,
      .bench = layer_norm_bench,
      .options = {{"eps", Option::Kind::real, 1e-5, 0, kMaxFloat},
                  {"weight", Option::Kind::choice, 1, 0, 2},
                  {"bias", Option::Kind::choice, 1, 0, 2},
                  {"residual"},
                  {"sum", Option::Kind::choice, 1},
                  {"mean", Option::Kind::choice, 1},
                  {"rstd", Option::Kind::choice, 1}},
      .largest_exponent = 50,
      // Squares of the least numbers are 0 in f32: without eps they have no root to divide by. And the mean
      // of one value throughout is rounded in the rungs, which take f32 without a residual: with little eps
      // that shows.
      .suits =
          [](const Case& c) {
            const double eps = c.parameter("eps", 1e-5);
            if (c.fill == Fill::denormals) return eps > 1e-30;
            if (c.fill == Fill::far_rows)
              return c.dtype != DType::f32 || c.parameter("residual") != 0 || c.parameter("weight", 1) == 0;
            const bool constant = c.fill == Fill::huge_rows || (c.fill == Fill::constant_rows && eps < 1e-6);
            return !constant || c.dtype != DType::f32 || c.parameter("residual") != 0;
          },
  };
  forward.fills_alone = {Fill::far_rows};
  forward.prepare = [](const Case& c, Arrays<double>& inputs) {
    if (c.fill != Fill::far_rows || c.parameter("residual") == 0) return;
    for (const char* name : {"x", "residual"})  // their sum is a number
      for (double& v : inputs[name].values()) v /= 2;
  };
  Spec backward{
      .function = "layer_norm_backward",
      .axes = forward.axes,
      .dtypes = forward.dtypes,
      .operands = layer_norm_backward_operands,
      .call =
          [](const Queue& q, const Case&, const Arguments& a, const char* variant, Workspace workspace) {
            return layer_norm_backward(
                q,
                {.x = a.in("x"),
                 .dy = a.in("dy"),
                 .weight = a.in("weight"),
                 .mean = a.in("mean"),
                 .rstd = a.in("rstd")},
                {.dx = a.out("dx"), .dweight = a.out("dweight"), .dbias = a.out("dbias")},
                {.variant = variant}, workspace);
          },
      .workspace =
          [](const Queue& q, const Case&, const Arguments& a, std::size_t& bytes) {
            return layer_norm_backward_workspace(
                q,
                {.x = a.in("x"),
                 .dy = a.in("dy"),
                 .weight = a.in("weight"),
                 .mean = a.in("mean"),
                 .rstd = a.in("rstd")},
                {.dx = a.out("dx"), .dweight = a.out("dweight"), .dbias = a.out("dbias")}, bytes);
          },
      .oracle = oracles<LayerNormBackwardOracle, true>(),
      // x̂, g·x̂ and two sums; the difference; g, dy·x̂ and their sums.
      .flops =
          [](const Case& c) {
            return layer_norm_elements(c) *
                   (9 + (c.parameter("weight", 1) != 0) + 2 * (c.parameter("dweight", 1) != 0) +
                    (c.parameter("dbias", 1) != 0));
          },
      .bytes = [](const Case& c) { return layer_norm_bytes(layer_norm_backward_operands(c)); },
      .tolerance = {.c = 4,
                    .chain =
                        [](const Case& c, std::string_view variant) {
                          const double columns = static_cast<double>(c.shape.back());
                          const double rows = columns > 0 ? layer_norm_elements(c) / columns : 0;
                          return std::fmax(layer_norm_chain(c, variant), rows);
                        },
                    .accumulator = row_arithmetic,
                    .reason = "two sums along a row, one down the columns, and three products"},
      .cases = layer_norm_backward_cases,
      .bench = layer_norm_bench,
      .gradient_of = "layer_norm",
      .options = {{"weight", Option::Kind::choice, 1, 0, 2},
                  {"dweight", Option::Kind::choice, 1},
                  {"dbias", Option::Kind::choice, 1}},
      .largest_exponent = 16,
      // x - mean is 0; dbias adds a 1 for each row.
      .huge_output =
          [](const Case& c, std::string_view operand, std::int64_t) {
            return operand == "dbias" ? layer_norm_elements(c) / static_cast<double>(c.shape.back()) : 0;
          },
  };
  return {forward, backward};
}

}  // namespace rooftile::harness
