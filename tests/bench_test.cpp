// The bench itself: what it counts, what it plans, what it believes, and what it writes.
#include "rooftile/harness/bench/bench.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "rooftile/harness/bench/bench_plan.h"
#include "rooftile/harness/bench/bench_race.h"
#include "rooftile/harness/bench/bench_row.h"
#include "rooftile/harness/check/standard_cases.h"
#include "rooftile/harness/report/report.h"
#include "rooftile/runtime/queue_state.h"

namespace rooftile::harness {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// ---------------------------------------------------------------------------------------------------- race

Contender made_up(const char* name, double seconds_a_call, std::vector<std::string>& log) {
  Contender c;
  c.name = name;
  c.prepare = [&log, name] { log.push_back(std::string("prepare ") + name); };
  c.time = [&log, name, seconds_a_call](int calls) {
    log.push_back(name);
    return seconds_a_call * calls + clock_floor_ns() * 1e-9;
  };
  return c;
}

TEST(Race, StatisticsAreThoseOfTheTimes) {
  std::vector<std::string> log;
  int turn = 0;
  Contender c = made_up("a", 0, log);
  c.time = [&turn](int) { return (1 + turn++ % 101) * 1e-3 + clock_floor_ns() * 1e-9; };  // 1 … 101 ms
  std::vector<Contender> contenders = {c};
  race(contenders, {.seconds = 1e9, .least = 101, .most = 101, .repeat = false});
  const Samples& us = contenders[0].us;
  EXPECT_EQ(us.size(), 101u);
  EXPECT_NEAR(us.median(), 51000, 1e-3);
  EXPECT_NEAR(us.p5(), 6000, 1e-3);
  EXPECT_NEAR(us.p95(), 96000, 1e-3);
}

TEST(Race, TakesTurnsAndEndsWithTheLast) {
  std::vector<std::string> log;
  std::vector<Contender> contenders = {made_up("copy", 1e-3, log), made_up("kernel", 2e-3, log)};
  race(contenders, {.seconds = 0, .least = 3, .most = 9, .repeat = false});
  const std::vector<std::string> round = {"prepare copy", "copy", "prepare kernel", "kernel"};
  ASSERT_EQ(log.size(), 12u);
  for (std::size_t i = 0; i < log.size(); ++i) EXPECT_EQ(log[i], round[i % 4]);
  EXPECT_EQ(contenders[0].us.size(), 3u);
  EXPECT_NEAR(contenders[1].us.median(), 2000, 1e-3);
}

TEST(Race, RepeatsShortCallsUntilASampleLasts) {
  std::vector<std::string> log;
  std::vector<Contender> contenders = {made_up("short", 50e-9, log), made_up("long", 1e-3, log)};
  race(contenders, {.seconds = 0, .least = 5, .most = 5});
  EXPECT_GE(contenders[0].calls, 400);  // 20 us
  EXPECT_LE(contenders[0].calls, 2000);
  EXPECT_EQ(contenders[1].calls, 1);
  EXPECT_NEAR(contenders[0].us.median(), 0.05, 1e-3);
}

TEST(Race, StopsWhenCancelled) {
  std::vector<std::string> log;
  std::atomic<bool> cancel{true};
  std::vector<Contender> contenders = {made_up("a", 1e-3, log)};
  race(contenders, {.cancel = &cancel});
  EXPECT_TRUE(log.empty());
}

TEST(Race, ClockIsThatOfACpuOrUnknown) {
  const double mhz = clock_mhz();
  if (mhz == 0) GTEST_SKIP() << "unknown on this architecture";
  EXPECT_GT(mhz, 100);  // sanitizers do not reach into the assembly
  EXPECT_LT(mhz, 10000);
}

// ------------------------------------------------------------------------------------------ what it believes

TEST(Row, CallsALaddersLastStepAllThreads) {
  const Machine machine = describe_machine();
  BenchSession session{shared_roofs(), machine, nullptr};
  BenchRow row;
  row.spec = find_spec("softmax");
  row.c = {{8, 64}, DType::f32, {}};
  row.group = "ladder";
  row.rung = 6;
  const auto title = [&](int threads) {
    row.threads = threads;
    const Outcome outcome = session.measure(row, 0.02, 7);
    return outcome.result ? (*outcome.result)["title"].get<std::string>() : outcome.error;
  };
  EXPECT_EQ(title(2), "all threads");
  EXPECT_NE(title(1), "all threads");
}

Machine described() {
  Machine machine = describe_machine();
  return machine;
}

struct Measuring {
  Machine machine = described();
  BenchSession session{shared_roofs(), machine, nullptr};
  Outcome operator()(const Spec& spec, Shape shape = {8, 64}) {
    BenchRow row;
    row.spec = &spec;
    row.c = {std::move(shape), DType::f32, {}};
    row.group = "best";
    return session.measure(row, 0.02, 7);
  }
};

TEST(Row, IsMeasured) {
  Measuring measure;
  const Outcome outcome = measure(*find_spec("softmax"));
  ASSERT_TRUE(outcome.result) << outcome.error;
  EXPECT_EQ((*outcome.result)["variant"], "tile");
  EXPECT_GT((*outcome.result)["median_us"], 0);
}

TEST(Row, EachFunctionHasOneOfEachDtype) {
  Measuring measure;
  for (const Spec& spec : all_specs())
    for (const DType dtype : spec.dtypes) {
      if (!is_floating(dtype)) continue;
      BenchRow row;
      row.spec = &spec;
      row.c = {shape_of(spec, 8, 64), dtype, {}};
      const Outcome outcome = measure.session.measure(row, 0.001, 2);
      EXPECT_TRUE(outcome.result || !outcome.refused.empty()) << spec.function << ": " << outcome.error;
    }
}

TEST(Row, AnImpossibleTimeIsAnError) {
  Roofs& roofs = shared_roofs();
  const double bytes = 65536;
  EXPECT_EQ(impossible(roofs, bytes, 1e3, 1e-3, 65536, DType::f32, 1), "");
  EXPECT_NE(impossible(roofs, bytes, 0, 1e-9, 65536, DType::f32, 1).find("GB/s"), std::string::npos);
  EXPECT_NE(impossible(roofs, 0, 1e12, 1e-6, 65536, DType::f32, 1).find("GFLOP/s"), std::string::npos);

  Spec liar = *find_spec("softmax");
  liar.flops = [](const Case&) { return 1e12; };
  Measuring measure;
  const Outcome outcome = measure(liar);
  EXPECT_FALSE(outcome.result);
  EXPECT_NE(outcome.error.find("impossible"), std::string::npos) << outcome.error;
}

/// A spec whose call is the test's own: y = 1, but for what `misdeed` says.
enum class Misdeed { none, skips_the_last, differs, differs_later, nan, fails };
Misdeed misdeed = Misdeed::none;
int calls_so_far = 0;
Spec faulty(Misdeed kind) {
  misdeed = kind;
  calls_so_far = 0;
  Spec spec = *find_spec("softmax");
  spec.call = [](const Queue&, const Case&, const Arguments& a, const char*, Workspace) -> Status {
    const View y = a.out("y");
    float* to = static_cast<float*>(y.mutable_data());
    const std::int64_t n = y.size() - (misdeed == Misdeed::skips_the_last ? 1 : 0);
    for (std::int64_t i = 0; i < n; ++i) to[i] = 1;
    ++calls_so_far;
    if (misdeed == Misdeed::differs) to[0] = static_cast<float>(calls_so_far);
    if (misdeed == Misdeed::differs_later && calls_so_far > 5) to[n - 1] = 2;
    if (misdeed == Misdeed::nan) to[5] = std::nanf("");
    if (misdeed == Misdeed::fails) return Status::error("softmax: no");
    return {};
  };
  return spec;
}

TEST(Row, WhatCannotBeBelievedIsAnError) {
  Measuring measure;
  EXPECT_TRUE(measure(faulty(Misdeed::none)).result);
  const auto error = [&](Misdeed kind) {
    const Outcome outcome = measure(faulty(kind));
    EXPECT_FALSE(outcome.result);
    return outcome.error;
  };
  EXPECT_NE(error(Misdeed::skips_the_last).find("not written whole"), std::string::npos);
  EXPECT_NE(error(Misdeed::differs).find("two runs gave different outputs"), std::string::npos);
  EXPECT_NE(error(Misdeed::differs_later).find("changed while it was timed"), std::string::npos);
  EXPECT_NE(error(Misdeed::nan).find("element 5 of y is nan"), std::string::npos);
  EXPECT_NE(error(Misdeed::fails).find("softmax: no"), std::string::npos);
}

TEST(Row, SaysWhyAVariantRefuses) {
  Measuring measure;
  BenchRow row;
  row.spec = find_spec("softmax");
  row.c = {{4, 64}, DType::f16, {}};
  row.variant = "01_scalar";
  const Outcome outcome = measure.session.measure(row, 0.02, 7);
  EXPECT_FALSE(outcome.result);
  EXPECT_EQ(outcome.error, "");
  EXPECT_NE(outcome.refused.find("f32"), std::string::npos);
}

TEST(Row, InPlaceAndColdWorkToo) {
  Measuring measure;
  BenchRow row;
  row.spec = find_spec("softmax");
  row.c = {{4, 64}, DType::bf16, {}};
  row.c.in_place = true;
  row.cache = CacheState::kCold;
  row.threads = 2;
  const Outcome outcome = measure.session.measure(row, 0.02, 7);
  ASSERT_TRUE(outcome.result) << outcome.error;
  EXPECT_EQ((*outcome.result)["cache"], "cold");
  EXPECT_EQ((*outcome.result)["limit"], "memory");
}

TEST(Row, HasTheCopyThatTookTurnsAsItsLimit) {
  Measuring measure;
  BenchRow row;
  row.c = {{16384}, DType::f32, {}};
  for (const char* function : {"copy", "asum"}) {
    row.spec = find_spec(function);
    const Outcome outcome = measure.session.measure(row, 0.02, 7);
    ASSERT_TRUE(outcome.result) << outcome.error;
    const double limit = (*outcome.result)["limit_us"], copied = (*outcome.result)["copy_us"];
    if (std::string(function) == "copy")
      EXPECT_NEAR(limit, copied, 0.01 * copied) << "not a roof of another moment";
    else
      EXPECT_LE(limit, 1.01 * copied) << "what only reads may be faster than a copy";
  }
}

// ------------------------------------------------------------------------------------------------- the
// record

BenchOptions small() {
  BenchOptions options;
  options.functions = {"softmax", "softmax_backward"};
  options.shapes = {{4, 64}};
  options.dtypes = {DType::f32};
  options.threads = {1};
  options.scope = Scope::report;
  options.baselines = false;
  options.roofs = false;
  return options;
}

TEST(Record, HoldsTheWholeSchema) {
  const json record = bench(small());
  const Status valid = validate_record(record);
  EXPECT_TRUE(valid) << valid.message();
  for (const char* key :
       {"schema", "rooftile", "date", "command", "machine", "overheads", "results", "errors", "notes"})
    EXPECT_TRUE(record.contains(key)) << key;
  EXPECT_EQ(record["schema"], 1);
  EXPECT_NE(record["machine"]["isa"], "");
  EXPECT_EQ(record["errors"], json::array()) << record["errors"];
  ASSERT_EQ(record["results"].size(), 2u) << record["notes"];
  EXPECT_EQ(record["results"][1]["direction"], "backward");
  for (const json& result : record["results"])
    for (const char* key : {"op",         "direction", "variant",  "backend", "isa",      "dtype",
                            "shape",      "layout",    "threads",  "cache",   "n",        "median_us",
                            "p5_us",      "p95_us",    "floor_us", "bytes",   "flops",    "workspace_bytes",
                            "peak_bytes", "copy_us",   "limit_us", "limit",   "of_limit", "clock_mhz",
                            "power_w",    "throttled", "peers",    "group"})
      EXPECT_TRUE(result.contains(key)) << key;
  const json& softmax = record["results"][0];
  EXPECT_EQ(softmax["bytes"], 2048);
  EXPECT_EQ(softmax["peak_bytes"], 2048);
  EXPECT_LE(softmax["p5_us"], softmax["median_us"]);
  EXPECT_LE(softmax["median_us"], softmax["p95_us"]);
  EXPECT_GT(softmax["copy_us"], 0);
  EXPECT_GT(softmax["limit_us"], 0);
  EXPECT_GT(softmax["floor_us"], 0);
  ASSERT_GE(record["overheads"].size(), 2u);
  EXPECT_EQ(record["overheads"][0]["name"], "call");
  EXPECT_GT(record["overheads"][0]["whole_ns"], record["overheads"][0]["kernel_ns"]);
}

TEST(Record, IsFlatAsCsv) {
  json record = {{"results",
                  {{{"op", "soft,max"},
                    {"shape", {64, 1024}},
                    {"bytes", 524288.0},
                    {"throttled", nullptr},
                    {"peers", {{{"name", "oneDNN"}, {"median_us", 13.5}}}}},
                   {{"op", "=cmd"}, {"peers", json::array()}}}}};
  const std::string csv = to_csv(record);
  std::vector<std::string> lines;
  for (std::size_t at = 0, end; (end = csv.find('\n', at)) != csv.npos; at = end + 1)
    lines.push_back(csv.substr(at, end - at));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(lines[0].starts_with("op,direction,"));
  EXPECT_TRUE(lines[0].ends_with(",oneDNN_us"));
  EXPECT_TRUE(lines[1].starts_with("\"soft,max\",,"));
  EXPECT_NE(lines[1].find(",64x1024,"), std::string::npos);
  EXPECT_NE(lines[1].find(",524288,"), std::string::npos);
  EXPECT_TRUE(lines[1].ends_with(",13.5"));
  EXPECT_TRUE(lines[2].starts_with("'=cmd,"));
  const auto commas = [](const std::string& s) { return std::count(s.begin(), s.end(), ','); };
  EXPECT_EQ(commas(lines[2]), commas(lines[0]));
}

TEST(Record, EndsInTimeAndSaysWhatIsMissing) {
  BenchOptions options = small();
  options.shapes.clear();
  options.seconds = 3;
  const std::int64_t start = now_ns();
  const json record = bench(options);
  // One row may begin at the last moment; a sanitized build on a busy machine is slow.
  EXPECT_LT(static_cast<double>(now_ns() - start) * 1e-9, 3 + 10);
  const std::string notes = record["notes"].dump();
  EXPECT_NE(notes.find("time was short: "), std::string::npos) << notes;
}

TEST(Record, StopsWhenCancelled) {
  std::atomic<bool> cancel{false};
  BenchOptions options = small();
  options.cancel = &cancel;
  options.shapes = {{4, 64}, {5, 64}, {6, 64}};
  options.progress = [&](const Progress& p) {
    if (p.done == 2) cancel = true;
  };
  std::vector<std::size_t> saved;
  options.save = [&](const json& so_far) {
    EXPECT_TRUE(validate_record(so_far));
    saved.push_back(so_far["results"].size());
  };
  const json record = bench(options);
  EXPECT_EQ(record["results"].size(), 2u);
  EXPECT_EQ(saved, (std::vector<std::size_t>{1, 2}));
  EXPECT_NE(record["notes"].dump().find("stopped early: 2 of "), std::string::npos);
  EXPECT_TRUE(validate_record(record));
}

}  // namespace
}  // namespace rooftile::harness
