#pragma once
#include "rooftile/harness/gpu_cases.h"
#include "rooftile/harness/letters.h"
#include "rooftile/ops/row_reduce/oracle.h"

namespace rooftile::harness {

/// Lengths on both sides of a vector, a tile, a segment and a block; every layout and hostile filling.
inline std::vector<Case> row_reduce_cases(const char* option, int values) {
  std::vector<Case> cases;
  for (DType type : {DType::f32, DType::f16, DType::bf16})
    for (int value = 0; value < values; ++value) {
      const std::map<std::string, double> p = {{option, double(value)}};
      for (std::int64_t n : {1, 2, 3, 7, 16, 31, 33, 64, 100, 129, 1025, 4095, 4097})
        cases.push_back({{3, n}, type, p});
      cases.push_back({{2, 16385}, type, p});
      cases.push_back({{1, 70001}, type, p});
      cases.push_back({{0, 17}, type, p});
      cases.push_back({{70, 30}, type, p});
      cases.push_back({{3, 4, 5, 33}, type, p});
      for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed,
                            Layout::transposed, Layout::broadcast})
        cases.push_back({{3, 7, 131}, type, p, layout});
      for (std::int64_t offset : {1, 3})
        cases.push_back({{3, 129}, type, p, Layout::offset, Fill::normal, offset});
      for (Fill fill :
           {Fill::wide, Fill::positive, Fill::constant_rows, Fill::large_offset, Fill::zeros, Fill::denormals,
            Fill::one_infinity, Fill::minus_infinities, Fill::masked, Fill::one_nan})
        cases.push_back({{5, 300}, type, p, Layout::contiguous, fill});
    }
  return cases;
}

inline BenchCases row_reduce_bench() {
  BenchCases b;
  for (DType type : {DType::f32, DType::bf16, DType::f16}) {
    b.cache.push_back({{128, 1024}, type, {}});
    b.memory.push_back({{65536, 4096}, type, {}});
  }
  b.gpu = gpu_rows();
  return b;
}

/// Of a product, factors whose partial products are numbers of every dtype, however the row is cut: 2^u, |u|
/// <= 5/√N, with a sign of u that changes as the bits of the index add up to odd. Nor are two alike in a
/// constant row, of which all roundings would go one way. Fill::positive has one zero in each row, Fill::wide
/// two.
inline void make_factors(const Case& c, Array<double>& x) {
  if (reduction_of(c) != RowReduction::product) return;
  const std::int64_t columns = c.shape.back();
  const double most = std::fmin(1, 5 / std::sqrt(static_cast<double>(columns)));
  for (std::int64_t at = 0; at < x.size(); ++at) {
    double& value = x.values()[static_cast<std::size_t>(at)];
    const std::int64_t i = at % columns, row = at / columns;
    if ((c.fill == Fill::positive || c.fill == Fill::wide) && i == row * 7 % columns) value = 0;
    if (c.fill == Fill::wide && i == columns - 1) value = 0;
    if (value == 0 || !std::isfinite(value)) continue;
    int exponent = 0;
    double u = (2 * std::fabs(std::frexp(value, &exponent)) - 1) * most;
    if (c.fill == Fill::constant_rows) u *= static_cast<double>(i * 40503 % 65536) / 65536;
    value = std::copysign(std::exp2(__builtin_parityll(static_cast<unsigned long long>(i)) ? u : -u), value);
  }
}

inline std::vector<Spec> row_reduce_specs() {
  const auto accumulator = [](const Case&) { return DType::f32; };
  // A lane's terms of a segment, then the segments: the most of these is a CPU's of 16 lanes.
  // Of a product each factor's rounding counts in full.
  static constexpr auto chain = [](const Case& c, std::string_view) {
    const auto n = static_cast<double>(c.shape.back());
    if (reduction_of(c) == RowReduction::product) return std::max(1., n);
    return std::max(1., std::ceil(std::min(n, 4096.) / 16) + std::ceil(n / 4096) + 6);
  };
  static const auto elements = [](const Case& c) {
    return static_cast<double>(rows_of_case(c) * c.shape.back());
  };
  const auto extreme = [](const Case& c) {
    return reduction_of(c) == RowReduction::max || reduction_of(c) == RowReduction::min;
  };
  Spec reduce =
      spec_of({.function = "row_reduce",
               .oracle = oracles<RowReduceOracle>(),
               .tolerance = {.c = 4,
                             .chain = chain,
                             .accumulator = accumulator,
                             .reason = "sums of lanes and segments; exponentials within 4 roundings"}});
  reduce.flops = [extreme](const Case& c) {
    if (extreme(c)) return 0.;
    const auto rows = static_cast<double>(rows_of_case(c));
    if (reduction_of(c) == RowReduction::logsumexp) return 3 * elements(c) + 2 * rows;
    return elements(c) + (reduction_of(c) == RowReduction::mean ? rows : 0);
  };
  reduce.excuses = {
      {"lower_precision", "the largest and the smallest take no arithmetic", extreme},
  };
  reduce.cases = [] {
    std::vector<Case> cases = row_reduce_cases("kind", 6);
    for (DType type : {DType::f32, DType::f16, DType::bf16})
      for (double kind : {0., 1., 2., 4., 5.}) cases.push_back({{3, 0}, type, {{"kind", kind}}});
    return cases;
  };
  reduce.bench = row_reduce_bench;
  reduce.prepare = [](const Case& c, Arrays<double>& inputs) { make_factors(c, inputs["x"]); };
  reduce.largest_exponent = 100;  // sums are numbers
  reduce.refuses = [](const Case& c) -> const char* {
    const RowReduction kind = reduction_of(c);
    const bool empty = c.shape.back() == 0 && rows_of_case(c) > 0;
    return empty && (kind == RowReduction::max || kind == RowReduction::min) ? "empty row" : nullptr;
  };

  Spec backward =
      spec_of({.function = "row_reduce_backward",
               .oracle = oracles<RowReduceBackwardOracle>(),
               .tolerance = {.c = 4,
                             .chain =
                                 [](const Case& c, std::string_view variant) {
                                   return reduction_of(c) == RowReduction::product ? chain(c, variant) : 1.;
                                 },
                             .accumulator = accumulator,
                             .reason = "one exponential within 4 roundings, and a product; or the row's"}});
  backward.flops = [](const Case& c) {
    return reduction_of(c) == RowReduction::sum
               ? 0
               : (reduction_of(c) == RowReduction::mean ? 1 : 3) * elements(c);
  };
  backward.cases = [] {
    std::vector<Case> cases = row_reduce_cases("kind", 6);
    std::erase_if(cases, [](const Case& c) { return c.fill == Fill::one_infinity; });
    return cases;
  };
  backward.refuses = [](const Case& c) -> const char* {
    const RowReduction kind = reduction_of(c);
    return kind == RowReduction::max || kind == RowReduction::min ? "must be sum, mean, logsumexp or product"
                                                                  : nullptr;
  };
  backward.excuses = {{"input x", "no kind's gradient is x", [](const Case&) { return false; }}};
  backward.bench = row_reduce_bench;
  backward.largest_exponent = 60;
  // y is at least the row's largest, or the exponential overflows, which no forward's does.
  backward.prepare = [](const Case& c, Arrays<double>& inputs) {
    const std::int64_t columns = c.shape.back();
    auto& y = inputs["y"].values();
    make_factors(c, inputs["x"]);
    const auto& x = inputs["x"].values();
    for (std::size_t row = 0; row < y.size(); ++row) {
      double most = -HUGE_VAL;
      for (std::int64_t i = 0; i < columns; ++i)
        most = std::fmax(most, x[row * static_cast<std::size_t>(columns) + static_cast<std::size_t>(i)]);
      y[row] = most + std::fabs(std::fmod(y[row], 4));
      if (std::isnan(y[row])) y[row] = most;
    }
  };
  backward.repeats = false;

  Spec arg = spec_of({.function = "row_arg",
                      .oracle = oracles<RowArgOracle>(),
                      .tolerance = {.exact = true, .reason = "comparisons alone"}});
  arg.flops = [](const Case&) { return 0.; };
  arg.cases = [] { return row_reduce_cases("least", 2); };
  arg.bench = row_reduce_bench;
  arg.refuses = [](const Case& c) -> const char* {
    return c.shape.back() == 0 && rows_of_case(c) > 0 ? "empty row" : nullptr;
  };
  return {reduce, backward, arg};
}

}  // namespace rooftile::harness
