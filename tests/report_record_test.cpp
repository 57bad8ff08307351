// What a record may hold, and how the report writes its numbers.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "rooftile/harness/report/report.h"
#include "rooftile/harness/report/text.h"

namespace rooftile::harness {
namespace {

using Json = nlohmann::json;

Json load(const char* name) {
  std::ifstream file(std::filesystem::path(ROOFTILE_SOURCE_DIR) / "tests" / "data" / name);
  return Json::parse(file);
}

TEST(ValidateRecord, AcceptsTheSampleAndUnknownFields) {
  Json record = load("report_sample.json");
  EXPECT_TRUE(validate_record(record)) << validate_record(record).message();
  record["of_tomorrow"] = {1, 2};
  record["results"][0]["of_tomorrow"] = "x";
  EXPECT_TRUE(validate_record(record)) << validate_record(record).message();
  EXPECT_TRUE(validate_record(Json{{"schema", 1}}));
}

TEST(ValidateRecord, SaysWhatIsWrong) {
  const auto message = [](const Json& record) { return std::string(validate_record(record).message()); };
  EXPECT_EQ(message(Json::array()), "this is no rooftile record: it is an array ([]), expected an object");
  EXPECT_EQ(message(Json{{"name", "x"}}),
            "this is no rooftile record: it has no \"schema\" (records come from --json FILE)");
  EXPECT_EQ(message(Json{{"schema", 2}, {"rooftile", "9.1"}}),
            "record: schema is a number (2), written by rooftile \"9.1\"; this version reads schema 1");
  EXPECT_EQ(message(Json{{"schema", "1"}}),
            "record: schema is a string (\"1\"); this version reads schema 1");
  EXPECT_EQ(message(Json{{"schema", 1.5}}), "record: schema is a number (1.5); this version reads schema 1");
  EXPECT_EQ(message(Json{{"schema", 1}, {"results", 3}}),
            "record: results is a number (3), expected an array");
  EXPECT_EQ(message(Json{{"schema", 1}, {"machine", "x86"}}),
            "record: machine is a string (\"x86\"), expected an object");

  const auto broken = [&](const char* place, const Json& value) {
    Json record = load("report_sample.json");
    record[Json::json_pointer(place)] = value;
    return message(record);
  };
  EXPECT_EQ(broken("/traces/0/lines/1/sectors", "few"),
            "record: traces[0].lines[1].sectors is a string (\"few\"), expected a number");
  EXPECT_EQ(broken("/results/3/median_us", "fast"),
            "record: results[3].median_us is a string (\"fast\"), expected a number");
  EXPECT_EQ(
      broken("/results/0/shape/1", -4),
      "record: results[0].shape is an array ([64,-4]), expected an array of sizes (whole numbers from 0)");
  EXPECT_EQ(broken("/results/0/throttled", 0),
            "record: results[0].throttled is a number (0), expected true or false");
  EXPECT_EQ(broken("/results/0/peers/1/name", Json::array()),
            "record: results[0].peers[1].name is an array ([]), expected a string");
  EXPECT_EQ(broken("/machine/levels/2/read_gbs", true),
            "record: machine.levels[2].read_gbs is a boolean (true), expected a number");
  EXPECT_EQ(broken("/machine/cpu", 8086), "record: machine.cpu is a number (8086), expected a string");
  EXPECT_EQ(broken("/checks/1/ulp_histogram/0", "x"),
            "record: checks[1].ulp_histogram[0] is a string (\"x\"), expected an object");
  EXPECT_EQ(broken("/gallery/0/base64", Json::object()),
            "record: gallery[0].base64 is an object ({}), expected a string");
  EXPECT_EQ(broken("/notes", {"a", 1}),
            "record: notes is an array ([\"a\",1]), expected an array of strings");
  EXPECT_EQ(broken("/command", std::string(100, 'x') + "\n"), "") << "a long text is a text";
  const std::string cut = broken("/results/0/n", std::string(1000, '\xff'));
  EXPECT_LT(cut.size(), 120u);
  EXPECT_NE(cut.find("..."), cut.npos);
}

TEST(ReportText, WritesNumbersForPeople) {
  using namespace report;
  EXPECT_EQ(digits(0.01234), "0.0123");
  EXPECT_EQ(digits(1), "1.00");
  EXPECT_EQ(digits(9.996), "10.0");
  EXPECT_EQ(digits(99.96), "100");
  EXPECT_EQ(digits(1234.4), "1234");
  EXPECT_EQ(digits(Number()), "–");
  EXPECT_EQ(count(1234567.0), "1\u202f234\u202f567");
  EXPECT_EQ(count(-1234.0), "-1\u202f234");
  EXPECT_EQ(count(999.0), "999");
  EXPECT_EQ(bytes(49152.0), "48\u00a0KiB");
  EXPECT_EQ(bytes(1536.0 * 1024), "1.50\u00a0MiB");
  EXPECT_EQ(bytes(0.0), "0\u00a0B");
  EXPECT_EQ(time_us(0.87), "870\u00a0ns");
  EXPECT_EQ(time_us(0.9996), "1.00\u00a0µs");
  EXPECT_EQ(time_us(12.345), "12.3\u00a0µs");
  EXPECT_EQ(time_us(2.5e6), "2.50\u00a0s");
  EXPECT_EQ(percent(0.834), "83%");
  EXPECT_EQ(percent(0.0996), "10%");
  EXPECT_EQ(percent(0.0123), "1.2%");
  EXPECT_EQ(percent(0.00001), "under 0.01%");
  EXPECT_EQ(times(1.86), "1.9×");
  EXPECT_EQ(times(0.94), "0.94×");
  EXPECT_EQ(date("2026-11-21T07:00:00Z"), "21 November 2026, 07:00 UTC");
  EXPECT_EQ(date("2026-13-21T07:00:00Z"), "2026-13-21T07:00:00Z");
  EXPECT_EQ(escape("<a b=\"c\" d='e'>&\x07"), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp; ");
  EXPECT_EQ(escape_script_json("\"</script>&\""), "\"\\u003c/script\\u003e\\u0026\"");
}

}  // namespace
}  // namespace rooftile::harness
