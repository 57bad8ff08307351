// The bench's table: spread, marks with their legend, and roofs that contradict each other.
#include "cli/bench_table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "rooftile/harness/bench/doubts.h"

namespace rooftile {
namespace {

using Json = nlohmann::json;
using harness::LevelRate;

LevelRate level(const char* name, int threads, double gbs) {
  return {name, 0, threads, gbs, gbs, gbs, "", "", ""};
}

TEST(Contradictions, NoneWhereEachLevelIsFasterThanTheNext) {
  EXPECT_TRUE(harness::contradictions({level("L1", 1, 200), level("L1", 2, 400), level("L2", 1, 100),
                                       level("L2", 2, 201), level("memory", 1, 20), level("memory", 2, 19.5)})
                  .empty())
      << "19.5 and 20 are equal within 5%";
  EXPECT_TRUE(harness::contradictions({level("L1", 1, 0), level("L2", 1, 100)}).empty()) << "0: not measured";
}

TEST(Contradictions, NameLevelsThreadsAndRates) {
  LevelRate slow = level("L1", 1, 200);
  slow.write_gbs = 70;
  EXPECT_EQ(harness::contradictions({slow, level("L2", 1, 100)}),
            (std::vector<std::string>{"L1 writes 70.0 GB/s with 1 thread, slower than L2 (100.0)"}));
  const std::vector<std::string> threads =
      harness::contradictions({level("L2", 1, 100), level("L2", 2, 80), level("memory", 1, 20)});
  ASSERT_EQ(threads.size(), 3u) << "reads, writes and copies";
  EXPECT_EQ(threads[0], "L2 reads 80.0 GB/s with 2 threads, slower than with 1 thread (100.0)");
  EXPECT_EQ(harness::contradictions({level("L2", 1, 100), level("memory", 2, 150)}).size(), 0u)
      << "one thread's L2 may be slower than two threads' memory";
}

TEST(Contradictions, AreInTheRecord) {
  harness::Machine machine;
  machine.levels = {level("L1", 1, 80), level("L2", 1, 100)};
  const Json json = harness::to_json(machine)["contradictions"];
  ASSERT_EQ(json.size(), 3u) << json;
  EXPECT_EQ(json[0], "L1 reads 80.0 GB/s with 1 thread, slower than L2 (100.0)");
}

Json row(double p5, double median, double p95, double copy_us) {
  return {{"op", "softmax"},       {"variant", "tile"}, {"shape", {64, 1024}}, {"dtype", "f32"},
          {"threads", 1},          {"cache", "warm"},   {"bytes", 524288},     {"p5_us", p5},
          {"median_us", median},   {"p95_us", p95},     {"copy_us", copy_us},  {"copy_p5_us", copy_us},
          {"copy_p95_us", copy_us}};
}

TEST(BenchTable, ShowsTheSpreadAndNoLegendWithoutMarks) {
  const std::string table = cli::bench_table({{"results", {row(11.5, 12, 13.25, 10)}}});
  for (const char* part : {" µs ", " 5% ", " 95% ", " 12.00 ", " 11.50 ", " 13.25 "})
    EXPECT_NE(table.find(part), table.npos) << part << "\n" << table;
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 2) << table;
}

TEST(BenchTable, ShowsParametersInWhichRowsOfAFunctionDiffer) {
  Json plain = row(12, 12, 12, 10), turned = plain, other = plain;
  turned["parameters"] = {{"turned", 2.0}, {"bias", 1.0}};
  other["op"] = "gemm";
  other["parameters"] = {{"p", 0.5}};
  const std::string table = cli::bench_table({{"results", {plain, turned, other}}});
  EXPECT_NE(table.find(" bias=1 turned=2 "), table.npos) << table;
  EXPECT_EQ(table.find("p=0.5"), table.npos) << "no other row of gemm\n" << table;
}

TEST(BenchTable, MarksAWideSpreadAndACopyThatMoved) {
  const std::string wide = cli::bench_table({{"results", {row(10, 12, 16.1, 10), row(12, 12, 12, 10)}}});
  EXPECT_NE(wide.find(" 16.10  ~ "), wide.npos) << wide;
  EXPECT_NE(wide.find(std::string("\n~ ") + harness::kSpreadDoubt), wide.npos) << wide;
  EXPECT_EQ(wide.find("\nc "), wide.npos) << wide;

  const std::string moved = cli::bench_table({{"results", {row(12, 12, 12, 10), row(12, 12, 12.5, 12.1)}}});
  EXPECT_NE(moved.find(" 12.50  c "), moved.npos) << moved;
  EXPECT_NE(moved.find(std::string("\nc ") + harness::kCopyDoubt), moved.npos) << moved;
  EXPECT_EQ(moved.find("\n~ "), moved.npos) << moved;

  Json restless = row(12, 12, 12, 10);
  restless["copy_p95_us"] = 15.5;
  Json results = {restless};
  harness::write_doubts(results);
  EXPECT_EQ(results[0]["doubts"], Json::array({"copy"}));

  Json other_size = row(12, 12, 12, 20);
  other_size["bytes"] = 1048576;
  EXPECT_FALSE(harness::doubts_of({row(12, 12, 12, 10), other_size})[1].any()) << "more bytes take longer";
}

TEST(BenchTable, SaysThatRoofsContradictEachOther) {
  Json record = {{"results", {row(12, 12, 12, 10)}}};
  record["machine"]["levels"] = {{{"name", "L1"}, {"threads", 1}, {"read_gbs", 80.0}},
                                 {{"name", "L2"}, {"threads", 1}, {"read_gbs", 100.0}}};
  const std::string table = cli::bench_table(record);
  EXPECT_NE(
      table.find("contradict each other:\n  L1 reads 80.0 GB/s with 1 thread, slower than L2 (100.0)\n"),
      table.npos)
      << table;
  record["machine"]["levels"][0]["read_gbs"] = 120.0;
  EXPECT_EQ(cli::bench_table(record).find("contradict"), table.npos);
}

TEST(BenchTable, BearsARecordWithoutFigures) {
  EXPECT_FALSE(cli::bench_table(Json::object()).empty());
  EXPECT_FALSE(cli::bench_table({{"results", {Json::object()}}}).empty());
}

}  // namespace
}  // namespace rooftile
