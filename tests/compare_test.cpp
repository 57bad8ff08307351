// `bench --compare`: a row is slower or faster where the two spreads have nothing in common.
#include "cli/compare.h"

#include <gtest/gtest.h>

namespace rooftile::cli {
namespace {

using Json = nlohmann::json;

Json row(const char* op, double p5, double median, double p95) {
  return {
      {"op", op},      {"direction", "forward"}, {"variant", "tile"}, {"isa", "avx2"},   {"dtype", "f32"},
      {"shape", {64}}, {"layout", "contiguous"}, {"threads", 1},      {"cache", "warm"}, {"group", "best"},
      {"p5_us", p5},   {"median_us", median},    {"p95_us", p95}};
}
Json record(std::vector<Json> rows) {
  return {{"machine", {{"cpu", "one"}, {"isa", "avx2"}}}, {"commit", "abc"}, {"results", std::move(rows)}};
}

TEST(Compare, SaysWhatLeftTheSpread) {
  const Json before = record({row("copy", 9, 10, 11), row("add", 9, 10, 11), row("dot", 9, 10, 11)});
  const Json now = record({row("copy", 11.1, 12, 13), row("add", 8, 8.5, 8.9), row("dot", 10.9, 12, 13)});
  const std::string text = comparison("old.json", before, now);
  EXPECT_NE(text.find("slower  copy tile 64 f32, 1 thread, warm"), std::string::npos) << text;
  EXPECT_NE(text.find("faster  add tile 64 f32, 1 thread, warm"), std::string::npos) << text;
  EXPECT_EQ(text.find("dot"), std::string::npos) << text;
  EXPECT_NE(text.find("1.20"), std::string::npos) << text;
  EXPECT_NE(text.find("beside old.json (abc): 1 slower, 1 faster, 1 within the spread\n"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("note"), std::string::npos) << text;
}
TEST(Compare, TellsRowsApartByAllButTheirTimes) {
  Json other = row("copy", 1, 1, 1);
  other["threads"] = 2;
  const std::string text = comparison("old.json", record({row("copy", 9, 10, 11)}), record({other}));
  EXPECT_NE(text.find("0 slower, 0 faster, 0 within the spread, 1 not in it\n"), std::string::npos) << text;
  // The library may choose another variant than it did.
  Json chosen = row("copy", 20, 21, 22);
  chosen["variant"] = "online";
  EXPECT_NE(comparison("old.json", record({row("copy", 9, 10, 11)}), record({chosen})).find("1 slower"),
            std::string::npos);
}
TEST(Compare, SaysWhereMachinesDiffer) {
  Json before = record({row("copy", 9, 10, 11)});
  before["machine"]["cpu"] = "another";
  const std::string text = comparison("old.json", before, record({row("copy", 9, 10, 11)}));
  EXPECT_NE(text.find("note: old.json was recorded with another cpu: another, here one\n"), std::string::npos)
      << text;
}
TEST(Compare, TakesRecordsThatLackThings) {
  EXPECT_NE(comparison("old.json", Json::object(), record({row("copy", 9, 10, 11)})).find("1 not in it"),
            std::string::npos);
  Json cut = row("copy", 9, 10, 11);
  cut.erase("p5_us");
  EXPECT_NE(comparison("old.json", record({cut}), record({row("copy", 9, 10, 11)})).find("1 not in it"),
            std::string::npos);
}

}  // namespace
}  // namespace rooftile::cli
