#include "rooftile/harness/course/exercise_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "rooftile/harness/check/problem.h"
#include "rooftile/harness/check/standard_cases.h"
#include "rooftile/harness/tensor.h"

namespace rooftile::harness {
namespace {

/// Larger cases say nothing more about a kernel, and take the checked device long.
constexpr std::int64_t kMaxElements = 20000;
constexpr std::int64_t kBins = 256;

/// gray = (red + green + blue) / 3, to the nearest whole number; a third of a sum is never halfway.
struct GrayMeanOracle {
  template <class S>
  static void run(const Case&, Arrays<S>& arrays) {
    for (std::int64_t i = 0; i < arrays["gray"].size(); ++i) {
      const auto& rgb = arrays["rgb"];
      const S sum = rgb.load(3 * i) + rgb.load(3 * i + 1) + rgb.load(3 * i + 2);
      arrays["gray"].store(i, S(std::floor(to_double((sum + S(1)) / S(3)))));
    }
  }
};

/// counts[v]: how many elements of x are v.
struct HistogramOracle {
  template <class S>
  static void run(const Case&, Arrays<S>& arrays) {
    std::vector<std::int64_t> counts(kBins);
    for (std::int64_t i = 0; i < arrays["x"].size(); ++i)
      ++counts[static_cast<std::size_t>(to_double(arrays["x"].load(i)))];
    for (std::int64_t v = 0; v < kBins; ++v)
      arrays["counts"].store(v, S(static_cast<double>(counts[static_cast<std::size_t>(v)])));
  }
};

/// y[i] = x[0] + … + x[i].
struct ScanOracle {
  template <class S>
  static void run(const Case&, Arrays<S>& arrays) {
    S sum(0);
    for (std::int64_t i = 0; i < arrays["x"].size(); ++i) {
      sum += arrays["x"].load(i);
      arrays["y"].store(i, sum);
    }
  }
};

/// The mean of each column's nine rows around one, to the nearest whole number; rows past the edge are the
/// edge's.
struct BoxColumnsOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& arrays) {
    const std::int64_t height = c.shape[0], width = c.shape[1];
    for (std::int64_t row = 0; row < height; ++row)
      for (std::int64_t column = 0; column < width; ++column) {
        S sum(4);
        for (std::int64_t i = row - 4; i <= row + 4; ++i)
          sum += arrays["x"].load(std::clamp<std::int64_t>(i, 0, height - 1) * width + column);
        arrays["y"].store(row * width + column, S(std::floor(to_double(sum / S(9)))));
      }
  }
};

/// A 3x3 convolution of {N, C, H, W, K} with a padding of 1.
struct Conv3x3Oracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& arrays) {
    const std::int64_t channels = c.shape[1], height = c.shape[2], width = c.shape[3], filters = c.shape[4];
    Array<S>&x = arrays["x"], &w = arrays["w"], &y = arrays["y"];
    for (std::int64_t at = 0; at < y.size(); ++at) {
      const std::int64_t j = at % width, i = at / width % height, f = at / width / height % filters,
                         n = at / width / height / filters;
      S sum(0);
      double terms = 0;
      for (std::int64_t term = 0; term < channels * 9; ++term) {
        const std::int64_t row = i + term % 9 / 3 - 1, column = j + term % 3 - 1;
        if (row < 0 || row >= height || column < 0 || column >= width) continue;
        const S product = w.load(f * channels * 9 + term) *
                          x.load(((n * channels + term / 9) * height + row) * width + column);
        sum += product;
        terms += std::fabs(to_double(product));
      }
      y.store(at, sum, terms);
    }
  }
};

/// Whole numbers in, whole numbers out: a vector of n elements, and what is made of it.
Spec function(const char* name, DType dtype, const OracleFunctions& oracle,
              std::vector<Operand> (*operands)(const Case&)) {
  Spec spec{};
  spec.function = name;
  spec.axes = "n";
  spec.dtypes = {dtype};
  spec.operands = operands;
  spec.oracle = oracle;
  spec.flops = [](const Case& c) { return static_cast<double>(c.shape[0]); };
  spec.bytes = [operands](const Case& c) {
    double bytes = 0;
    for (const Operand& o : operands(c)) bytes += static_cast<double>(count_of(o.shape) * bits(o.dtype)) / 8;
    return bytes;
  };
  spec.tolerance = {.exact = true, .reason = "whole numbers"};
  spec.standard = false;
  // Around a warp, a block, and more blocks than one has threads for; zeros and one value throughout: all
  // threads want the same bin.
  spec.cases = [dtype] {
    std::vector<Case> cases;
    for (std::int64_t n : {0, 1, 2, 31, 33, 255, 256, 257, 512, 1000, 4095, 4097, 20000})
      cases.push_back({{n}, dtype, {}, Layout::contiguous, Fill::bytes});
    for (Fill fill : {Fill::zeros, Fill::constant_rows})
      cases.push_back({{1500}, dtype, {}, Layout::contiguous, fill});
    return cases;
  };
  return spec;
}

/// The same of a picture's columns: windows past both edges, parts of a strip and of a block, and sums of
/// nine times 255.
Spec picture_function(const char* name, const OracleFunctions& oracle) {
  Spec spec = function(name, DType::u8, oracle, [](const Case& c) {
    return std::vector<Operand>{{"x", Operand::Kind::input, DType::u8, c.shape},
                                {"y", Operand::Kind::output, DType::u8, c.shape}};
  });
  spec.axes = "rows x columns";
  spec.flops = [](const Case& c) { return 2 * static_cast<double>(count_of(c.shape)); };
  spec.cases = [] {
    std::vector<Case> cases;
    for (Shape shape : {Shape{0, 5}, Shape{5, 0}, Shape{1, 1}, Shape{3, 2}, Shape{64, 32}, Shape{65, 257},
                        Shape{1, 300}, Shape{130, 100}, Shape{200, 9}})
      cases.push_back({std::move(shape), DType::u8, {}, Layout::contiguous, Fill::bytes});
    return cases;
  };
  return spec;
}

/// Pictures that fill no block and that fill several, filters that make no whole four, no channels.
Spec conv3x3() {
  Spec spec = function("conv3x3", DType::f32, oracles<Conv3x3Oracle>(), [](const Case& c) {
    const Shape& s = c.shape;
    return std::vector<Operand>{{"x", Operand::Kind::input, DType::f32, {s[0], s[1], s[2], s[3]}},
                                {"w", Operand::Kind::input, DType::f32, {s[4], s[1], 3, 3}, false},
                                {"y", Operand::Kind::output, DType::f32, {s[0], s[4], s[2], s[3]}}};
  });
  spec.axes = "pictures x channels x height x width x filters";
  spec.flops = [](const Case& c) { return 18 * static_cast<double>(count_of(c.shape)); };
  spec.tolerance = {.c = 2,
                    .chain = [](const Case& c, std::string_view) { return 9. * double(c.shape[1]) + 1; },
                    .accumulator = [](const Case&) { return DType::f32; },
                    .reason = "one chain of fused multiply-adds over a filter"};
  spec.cases = [] {
    std::vector<Case> cases;
    for (Shape shape :
         {Shape{0, 2, 4, 5, 3}, Shape{2, 0, 4, 5, 3}, Shape{1, 1, 1, 1, 1}, Shape{1, 2, 3, 3, 4},
          Shape{2, 3, 9, 33, 5}, Shape{1, 1, 8, 31, 2}, Shape{3, 2, 7, 5, 9}, Shape{1, 3, 17, 70, 3}})
      cases.push_back({std::move(shape), DType::f32, {}});
    return cases;
  };
  return spec;
}

}  // namespace

const Spec* find_exercise_spec(std::string_view name) {
  static const std::vector<Spec> specs = {
      function("histogram", DType::u8, oracles<HistogramOracle>(),
               [](const Case& c) {
                 return std::vector<Operand>{{"x", Operand::Kind::input, DType::u8, c.shape},
                                             {"counts", Operand::Kind::output, DType::i32, {kBins}}};
               }),
      function("scan", DType::i32, oracles<ScanOracle>(),
               [](const Case& c) {
                 Operand x{"x", Operand::Kind::input, DType::i32, c.shape};
                 x.below = 100;  // so that no sum overflows
                 return std::vector<Operand>{x, {"y", Operand::Kind::output, DType::i32, c.shape}};
               }),
      picture_function("box_columns", oracles<BoxColumnsOracle>()), conv3x3()};
  for (const Spec& spec : specs)
    if (name == spec.function) return &spec;
  return nullptr;
}

Spec spec_of(const Exercise& exercise) {
  if (const Spec* own = find_exercise_spec(exercise.function)) return *own;
  Spec spec = *find_spec(exercise.function);
  if (exercise.oracle.empty()) return spec;
  if (exercise.oracle != "gray_mean")
    throw std::runtime_error(fmt::format("{}: there is no oracle \"{}\"", exercise.name, exercise.oracle));
  spec.oracle = oracles<GrayMeanOracle>();
  return spec;
}

DType dtype_of(const Exercise& exercise, const Spec& spec) {
  for (const DType dtype : spec.dtypes)
    if (exercise.dtype == name(dtype)) return dtype;
  if (!exercise.dtype.empty())
    throw std::runtime_error(fmt::format("{}: \"dtype\" is \"{}\", which {} does not take", exercise.name,
                                         exercise.dtype, exercise.function));
  const bool f32 = std::find(spec.dtypes.begin(), spec.dtypes.end(), DType::f32) != spec.dtypes.end();
  return f32 ? DType::f32 : spec.dtypes.front();
}

std::vector<Case> cases_of(const Exercise& exercise, const Spec& spec) {
  const DType dtype = dtype_of(exercise, spec);
  std::vector<Case> cases, all = exercise.first;
  for (Case& c : all) c.dtype = dtype;
  for (const Case& c : all_cases(spec, dtype, false))
    if (count_of(c.shape) <= kMaxElements) all.push_back(c);
  std::set<std::string> seen;
  for (Case c : all) {
    // A learner's kernel looks at a row once.
    if (c.layout != Layout::contiguous || c.fill == Fill::far_rows) continue;
    if (spec.refuses && spec.refuses(c)) continue;
    for (const auto& [name, value] : exercise.set) c.parameters[name] = value;
    if ((!spec.suits || spec.suits(c)) && seen.insert(describe(c)).second) cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace rooftile::harness
