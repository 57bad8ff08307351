// The check engine itself: a right kernel passes, and each defect makes the check fail that is there for it.
#include "rooftile/harness/check/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cfenv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <unistd.h>

#include "rooftile/backend/cpu/fp_mode.h"
#include "rooftile/core/check.h"
#include "rooftile/core/rows.h"
#include "rooftile/harness/check/contract.h"
#include "rooftile/harness/check/standard_cases.h"
#include "rooftile/harness/check/survive.h"
#include "rooftile/runtime/queue_state.h"

namespace rooftile::harness {
namespace {

enum class Defect {
  none,
  last_row_lost,
  last_column_lost,
  writes_past_the_end,
  writes_between_elements,
  changes_the_input,
  row_stride_off,
  order_by_threads,
  order_by_address,
  order_by_row,
  order_by_streaming,
  another_result_each_time,
  bf16_accumulator,
  nan_is_skipped,
  biased,
  reads_behind,
  wrong_in_place,
  refuses_a_size,
  refuses_interleaved,
  kernel_fails,
  takes_any_dtype,
  takes_overlap,
  takes_absent,
  takes_stride_0,
  unnamed_sentence,
  writes_before_it_refuses,
  workspace_too_short,
  workspace_unchecked,
  shows_the_mode,
  divides_by_zero,
  reads_null,
  aborts,
  does_not_return,
};
Defect defect = Defect::none;

bool is(Defect d) { return defect == d; }

// What is meant to go wrong must reach the check, not AddressSanitizer.
__attribute__((no_sanitize("address"))) void write_zeros(volatile std::byte* p, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) p[i] = std::byte{0};
}

/// y = x - mean(x), row by row, plainly.
__attribute__((noinline, no_sanitize("address"))) void center_row(const Queue& queue, const float* x,
                                                                  float* y, std::int64_t n, std::int64_t sx,
                                                                  std::int64_t sy, std::int64_t row) {
  if (n == 0) return;
  static int calls = 0;
  ++calls;
  if (is(Defect::wrong_in_place)) y[0] = 0;
  const bool backwards = (is(Defect::order_by_threads) && queue.threads() == 3) ||
                         (is(Defect::order_by_address) && reinterpret_cast<std::uintptr_t>(y) % 16 != 0) ||
                         (is(Defect::order_by_row) && row > 0) ||
                         (is(Defect::order_by_streaming) && queue.streaming_bytes() == 0) ||
                         (is(Defect::another_result_each_time) && calls % 2);
  float sums[16] = {};  // one chain alone would drift on equal numbers
  double exact = 0, terms = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    const std::int64_t i = backwards ? n - 1 - k : k;
    const float v = x[i * sx];
    if (is(Defect::nan_is_skipped) && v != v) continue;
    float& sum = sums[k % 16];
    sum += v;
    exact += static_cast<double>(v);
    terms += std::fabs(static_cast<double>(v));
    if (is(Defect::bf16_accumulator)) sum = to_float(from_double<bf16>(static_cast<double>(sum)));
  }
  float sum = 0;
  for (float part : sums) sum += part;
  if (is(Defect::reads_behind))
    sum += 0 * *const_cast<const volatile float*>(x + (n - 1) * sx + 1) > 1 ? 1.f : 0.f;
  const float mean = sum / static_cast<float>(n);
  for (std::int64_t i = 0; i < n - is(Defect::last_column_lost); ++i) {
    float value = x[i * sx] - mean;
    if (is(Defect::biased)) {
      const double right = static_cast<double>(x[i * sx]) - exact / static_cast<double>(n);
      const double magnitude = std::fabs(static_cast<double>(x[i * sx])) + terms / static_cast<double>(n);
      const double tolerance =
          0x1p-24 * (std::fabs(right) + 2 * std::sqrt(static_cast<double>(n)) * magnitude);
      value = static_cast<float>(right + 0.8 * tolerance);
    }
    y[i * sy] = value;
  }
  if (is(Defect::writes_past_the_end)) y[n * sy] = 1;
  if (is(Defect::writes_between_elements) && sy == 2) y[1] = 1;
}

constexpr std::size_t kNeeded = 256;

Status center(const Queue& queue, ConstView x, View y, const char* variant, Workspace workspace) {
  static constexpr auto f32 = {DType::f32};
  constexpr const char* f = "center";
  if (is(Defect::takes_absent) && !(x.present() && y.present())) return {};
  if (is(Defect::takes_any_dtype) && (x.dtype != DType::f32 || y.dtype != DType::f32)) return {};
  if (is(Defect::unnamed_sentence) && !x.present()) return Status::error("bad argument");
  if (is(Defect::writes_before_it_refuses) && !x.present() && y.data)
    *static_cast<float*>(y.mutable_data()) = 1;
  ROOFTILE_TRY(check_view(f, {"x", x}, f32));
  ROOFTILE_TRY(check_view(f, {"y", y}, f32));
  if (x.rank < 1 || x.rank != y.rank || !std::equal(x.shape, x.shape + x.rank, y.shape))
    return Status::error("center: x and y must have one shape");
  if (!is(Defect::takes_stride_0)) ROOFTILE_TRY(check_output(f, {"y", y}));
  if (is(Defect::refuses_interleaved)) {
    const Range a = range_of(x), b = range_of(y);
    if (x.data != y.data && a.begin < b.end && b.begin < a.end)
      return Status::error("center: x and y overlap");
  }
  if (!is(Defect::takes_overlap)) ROOFTILE_TRY(check_no_overlap(f, {"y", y}, {"x", x}, true));
  if (variant) return Status::error("center: no variant \"%s\"", variant);
  if (is(Defect::refuses_a_size) && x.shape[x.rank - 1] == 63) return Status::error("center: 63 is refused");
  if (!is(Defect::workspace_unchecked)) {
    ROOFTILE_TRY(check_workspace(f, workspace, kNeeded));
    ROOFTILE_TRY(check_workspace_apart(f, workspace, {"x", x}));
    ROOFTILE_TRY(check_workspace_apart(f, workspace, {"y", y}));
  }
  if (is(Defect::kernel_fails) && x.shape[x.rank - 1] == 63) {
    const Observer& observer = queue.state().observer;
    if (observer.notify) observer.notify(observer.context, f, "rung", "");
    return Status::error("center: no such memory");
  }
  if (workspace.pointer)
    write_zeros(static_cast<std::byte*>(workspace.pointer), kNeeded + is(Defect::workspace_too_short));
  if (is(Defect::changes_the_input) && x.size()) *static_cast<float*>(const_cast<void*>(x.data)) = 1;

  if (is(Defect::divides_by_zero)) {
    volatile float zero = 0, one = 1;
    zero = one / zero;
  }
  const bool chosen = x.shape[x.rank - 1] == 63;
  if (is(Defect::reads_null) && chosen) *static_cast<volatile float*>(nullptr) = 1;
  if (is(Defect::aborts) && chosen) std::abort();
  while (is(Defect::does_not_return) && chosen) usleep(1000);

  std::optional<cpu::FpMode> guard;
  if (!is(Defect::shows_the_mode) || std::fegetround() == FE_TONEAREST) guard.emplace();
  Rows<2> rows = rows_of(x, y);
  for (std::int64_t row = 0; row < rows.rows - is(Defect::last_row_lost); ++row) {
    std::int64_t at = rows.offset(1, row);
    if (is(Defect::row_stride_off) && rows.column_stride[1] == 1) at = row * rows.columns;
    center_row(queue, static_cast<const float*>(x.data) + rows.offset(0, row),
               static_cast<float*>(y.mutable_data()) + at, rows.columns, rows.column_stride[0],
               rows.column_stride[1], row);
  }
  return {};
}

double magnitude_factor = 1;

struct CenterOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t n = c.shape.back(), rows = n ? a["x"].size() / n : 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      S sum(0);
      double terms = 0;
      for (std::int64_t i = 0; i < n; ++i) {
        sum += a["x"].load(row * n + i);
        terms += std::fabs(to_double(a["x"].load(row * n + i)));
      }
      const S mean = sum / S(static_cast<double>(n));
      for (std::int64_t i = 0; i < n; ++i) {
        const S x = a["x"].load(row * n + i);
        const double magnitude = std::fabs(to_double(x)) + terms / static_cast<double>(n);
        a["y"].store(row * n + i, x - mean, magnitude_factor * magnitude);
      }
    }
  }
};
/// dx = dy - mean(dy); `sign` breaks it.
template <int sign>
struct CenterBackwardOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t n = c.shape.back(), rows = n ? a["dy"].size() / n : 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      S sum(0);
      for (std::int64_t i = 0; i < n; ++i) sum += a["dy"].load(row * n + i);
      for (std::int64_t i = 0; i < n; ++i)
        a["dx"].store(row * n + i, a["dy"].load(row * n + i) - S(sign) * sum / S(static_cast<double>(n)));
    }
  }
};

double count(const Case& c) {
  double n = 1;
  for (std::int64_t s : c.shape) n *= static_cast<double>(s);
  return n;
}

Spec center_spec() {
  return {
      .function = "center",
      .axes = "rows x columns",
      .dtypes = {DType::f32},
      .operands = [](const Case& c) -> std::vector<Operand> {
        return {{"x", Operand::Kind::input, c.dtype, c.shape},
                {"y", Operand::Kind::output, c.dtype, c.shape, true, "x"}};
      },
      .call = [](const Queue& q, const Case&, const Arguments& a, const char* variant,
                 Workspace w) { return center(q, a.in("x"), a.out("y"), variant, w); },
      .workspace =
          [](const Queue&, const Case&, const Arguments&, std::size_t& bytes) {
            bytes = kNeeded;
            return Status{};
          },
      .oracle = oracles<CenterOracle>(),
      .flops = [](const Case& c) { return 2 * count(c); },
      .bytes = [](const Case& c) { return 8 * count(c); },
      .tolerance = {.c = 2,
                    .chain = [](const Case& c,
                                std::string_view) { return static_cast<double>(c.shape.back()); }},
      .cases = [] { return std::vector<Case>{}; },
      .bench = [] { return BenchCases{}; },
      .largest_exponent = 110,
  };
}

CheckOptions options() {
  CheckOptions o;
  o.isas = {built_isas().front()};
  return o;
}

std::string failures(const std::vector<CheckResult>& results) {
  std::string text;
  for (const CheckResult& r : results) {
    EXPECT_EQ(r.ok(), r.failures.empty());
    for (const std::string& f : r.failures) text += f + "\n";
  }
  return text;
}

std::string failures_with(Defect d, const Spec& spec = center_spec()) {
  defect = d;
  const std::string text = failures(check_spec(spec, options()));
  defect = Defect::none;
  return text;
}

TEST(Check, PassesARightKernel) {
  CheckOptions o = options();
  o.random_cases = 100;
  const std::vector<CheckResult> results = check_spec(center_spec(), o);
  EXPECT_EQ(failures(results), "");
  ASSERT_FALSE(results.empty());
  EXPECT_GT(results[0].cases, 300);
  EXPECT_EQ(results[0].passed, results[0].cases);
  EXPECT_GT(results[0].worst_of_tolerance, 0.05);
  EXPECT_LT(results[0].worst_of_tolerance, 1);
  EXPECT_GE(results[0].ulp_histogram.size(), 2u);
}

struct Broken {
  Defect defect;
  const char* said;
};
class CheckDefect : public testing::TestWithParam<Broken> {};
TEST_P(CheckDefect, IsFound) {
  const std::string text = failures_with(GetParam().defect);
  EXPECT_NE(text.find(GetParam().said), std::string::npos) << text;
}
INSTANTIATE_TEST_SUITE_P(
    Check, CheckDefect,
    testing::Values(
        Broken{Defect::last_row_lost, "y[2, 0]: expected"},
        Broken{Defect::last_column_lost, "was never written"},
        Broken{Defect::writes_past_the_end, "y was changed at byte 1 past its last element"},
        Broken{Defect::writes_between_elements, "between its elements"},
        Broken{Defect::changes_the_input, "input x was changed"},
        Broken{Defect::row_stride_off, "padded_rows, normal, 1 thread: y was changed"},
        Broken{Defect::order_by_threads, "bits differ with 3 threads"},
        Broken{Defect::order_by_address, "elements behind a boundary"}, Broken{Defect::order_by_row, "alone"},
        Broken{Defect::order_by_streaming, "bits differ with 1 thread, streaming"},
        Broken{Defect::another_result_each_time, "bits differ a second time"},
        Broken{Defect::bf16_accumulator, "tolerance"}, Broken{Defect::nan_is_skipped, "one_nan"},
        Broken{Defect::biased, "root mean square"},
        Broken{Defect::reads_behind, "touches memory behind its operands"},
        Broken{Defect::wrong_in_place, "in place"}, Broken{Defect::refuses_a_size, "is refused: center: 63"},
        Broken{Defect::kernel_fails, "fails in its kernel: center: no such memory"},
        Broken{Defect::refuses_interleaved, "output y between the elements of x is refused"},
        Broken{Defect::takes_any_dtype, "x of dtype bool is taken"},
        Broken{Defect::takes_overlap, "output y half over x is taken"},
        Broken{Defect::takes_absent, "absent x is taken"},
        Broken{Defect::takes_stride_0, "output y of stride 0 in dimension 0 is taken"},
        Broken{Defect::unnamed_sentence, "does not name center: \"bad argument\""},
        Broken{Defect::writes_before_it_refuses, "absent x is refused, but y was changed"},
        Broken{Defect::workspace_too_short, "the workspace's surroundings were changed at byte 1 past"},
        Broken{Defect::workspace_unchecked, "a workspace one byte short is taken"},
        Broken{Defect::shows_the_mode, "rounding up: y: bits differ"}),
    [](const auto& subject) {
      std::string name;
      for (const char* p = subject.param.said; *p; ++p) name += std::isalnum(*p) ? *p : '_';
      return name;
    });

TEST(Check, OutlivesAKernelThatDies) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer has its own end for what dies";
#endif
  CheckOptions o = options();
  o.seconds = 1;
  for (auto [d, how] : {std::pair{Defect::reads_null, "died of SIGSEGV"},
                        {Defect::aborts, "died of SIGABRT"},
                        {Defect::does_not_return, "did not return within 1 s"},
                        {Defect::divides_by_zero, "all traps on: died of SIGFPE"}}) {
    defect = d;
    const std::vector<CheckResult> results = check_spec(center_spec(), o);
    defect = Defect::none;
    const std::string text = failures(results);
    EXPECT_NE(text.find("center automatic " + o.isas.front() + ": {3, "), std::string::npos) << text;
    EXPECT_NE(text.find(how), std::string::npos) << text;
    EXPECT_GT(results.size(), 1u);  // the rest was checked without that variant
  }
}

TEST(Check, CountsWhatAChildRanNotWhatItWaited) {
  const auto end_of = [](void (*work)()) {
    return in_child(
        [&](const auto&) {
          const Queue queue = Queue::cpu({.threads = 1});
          const Announced announced(queue, "tile", Case{{1}, DType::f32, {}});
          work();
        },
        [](const std::string&) {}, [] { return false; }, 60, 0.2);
  };
  EXPECT_FALSE(end_of([] { usleep(700'000); }).died);
  const Death busy = end_of([] {
    for (volatile bool on = true; on;) {
    }
  });
  EXPECT_TRUE(busy.died);
  EXPECT_EQ(busy.how, "did not return within 0.2 s of a processor's time");
}

TEST(Check, FindsDefectsOfRandomCases) {
  CheckOptions o = options();
  o.random_cases = 200;
  o.listed = false;
  for (Defect d : {Defect::order_by_address, Defect::last_column_lost, Defect::wrong_in_place}) {
    defect = d;
    EXPECT_NE(failures(check_spec(center_spec(), o)).find("of seed 1"), std::string::npos)
        << static_cast<int>(d);
  }
  defect = Defect::none;
}

TEST(Check, HoldsTheSpecToItsWord) {
  Spec spec = center_spec();
  spec.flops = [](const Case& c) { return 3 * count(c); };
  EXPECT_NE(failures_with(Defect::none, spec).find("flops are stated"), std::string::npos);
  spec = center_spec();
  spec.bytes = [](const Case& c) { return 8 * count(c) + 4; };
  EXPECT_NE(failures_with(Defect::none, spec).find("bytes are stated"), std::string::npos);
  spec = center_spec();
  spec.tolerance.c = 2000;
  EXPECT_NE(failures_with(Defect::none, spec).find("c is 2000, may be at most 8"), std::string::npos);
  spec = center_spec();
  magnitude_factor = 1000;
  EXPECT_NE(failures_with(Defect::none, spec).find("too loose"), std::string::npos);
  magnitude_factor = 1;
  spec.excuses = {{"input", "a wrong reason"}};
  EXPECT_NE(failures_with(Defect::none, spec).find("excused (\"a wrong reason\"), but differs"),
            std::string::npos);
  spec = center_spec();
  spec.refuses = [](const Case& c) {
    return c.shape.back() == 4 ? "four" : static_cast<const char*>(nullptr);
  };
  EXPECT_NE(failures_with(Defect::none, spec).find("is taken, but must be refused"), std::string::npos);
}

TEST(Check, NamesWrongResultsThatNoCaseRejects) {
  Spec spec = center_spec();
  spec.standard = false;
  // Constant rows: the answer is zero throughout, which zeros are, and so is any lost row, column or
  // precision.
  spec.cases = [] {
    return std::vector<Case>{{{4, 64}, DType::f32, {}, Layout::contiguous, Fill::constant_rows}};
  };
  const std::string text = failures_with(Defect::none, spec);
  for (const char* wrong_result : {"zeros", "last_row", "last_column"})
    EXPECT_NE(text.find(std::string("no case rejects the wrong result \"") + wrong_result), std::string::npos)
        << text;
  EXPECT_EQ(text.find("wrong result \"input"), std::string::npos) << text;
}

TEST(Check, NeedsAQuadrupleOracleForF64) {
  Spec spec = center_spec();
  spec.dtypes = {DType::f64};
  EXPECT_NE(failures_with(Defect::none, spec).find("no oracle in quadruple precision"), std::string::npos);
}

TEST(Check, ComparesGradientsByNames) {
  Spec backward = center_spec();
  backward.function = "center_backward";
  backward.operands = [](const Case& c) -> std::vector<Operand> {
    return {{"dy", Operand::Kind::input, c.dtype, c.shape}, {"dx", Operand::Kind::output, c.dtype, c.shape}};
  };
  const auto text_of = [&](OracleFunctions oracle) {
    backward.oracle = oracle;
    Ledger ledger(backward, DType::f32);
    check_gradient(backward, center_spec(), DType::f32, ledger);
    return failures(ledger.close());
  };
  EXPECT_EQ(text_of(oracles<CenterBackwardOracle<1>>()), "");
  EXPECT_NE(text_of(oracles<CenterBackwardOracle<-1>>()).find("gradient dx[0, 0]"), std::string::npos);
}

TEST(Check, RefusesOptionsThatNameNothing) {
  const auto sentence = [](auto change) -> std::string {
    CheckOptions o;
    change(o);
    try {
      check(o);
    } catch (const std::exception& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(
      sentence([](CheckOptions& o) { o.functions = {"sofmax"}; }).find("no function \"sofmax\"; there are"),
      std::string::npos);
  EXPECT_NE(sentence([](CheckOptions& o) { o.variants = {"fastest"}; }).find("no variant \"fastest\""),
            std::string::npos);
  EXPECT_NE(sentence([](CheckOptions& o) { o.isas = {"avx1024"}; }).find("avx1024"), std::string::npos);
}

TEST(Check, StopsWhenCancelled) {
  std::atomic<bool> cancel{false};
  CheckOptions o = options();
  o.cancel = &cancel;
  std::int64_t most = 0, total = 0;
  o.progress = [&](const Progress& p) {
    most = p.done;
    total = p.total;
    if (p.done == 3) cancel = true;
  };
  check_spec(center_spec(), o);
  EXPECT_EQ(most, 3);
  EXPECT_GT(total, 50);
}

TEST(Cases, CoverWhatTheyPromise) {
  const std::vector<Case> cases = standard_cases(center_spec(), DType::f32);
  const auto any = [&](auto predicate) { return std::any_of(cases.begin(), cases.end(), predicate); };
  for (std::int64_t n : {0, 1, 2, 3, 4, 30, 31, 32, 33, 100, 127, 129, 255, 257})
    EXPECT_TRUE(any([&](const Case& c) { return c.shape[1] == n; })) << n;
  for (int layout = 0; layout <= static_cast<int>(Layout::broadcast); ++layout)
    EXPECT_TRUE(any([&](const Case& c) { return static_cast<int>(c.layout) == layout; })) << layout;
  for (int fill = 0; fill < static_cast<int>(Fill::far_rows);
       ++fill)  // far rows: of a spec that asks for them
    EXPECT_TRUE(any([&](const Case& c) { return static_cast<int>(c.fill) == fill; })) << fill;
  for (std::int64_t offset = 1; offset <= 15; ++offset)
    EXPECT_TRUE(any([&](const Case& c) { return c.layout == Layout::offset && c.offset == offset; }))
        << offset;
  EXPECT_TRUE(any([](const Case& c) { return c.in_place; }));
  EXPECT_TRUE(any([](const Case& c) { return c.shape[0] == 0; }));
}

}  // namespace
}  // namespace rooftile::harness
