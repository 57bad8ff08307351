#include "rooftile/harness/report/report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "rooftile/harness/report/text.h"

namespace rooftile::harness {
namespace {

using Json = nlohmann::json;

std::filesystem::path source_root() { return ROOFTILE_SOURCE_DIR; }

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << "cannot read " << path;
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

Json load(const char* name) { return Json::parse(read_file(source_root() / "tests" / "data" / name)); }

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

/// The page without its scripts and styles, whose own text is not the record's.
std::string markup(const std::string& page) {
  std::string out = page.substr(page.find("</style>"));
  return out.substr(0, out.find("<script type=\"application/json\""));
}

std::string data_block(const std::string& page) {
  const std::size_t tag = page.find("<script type=\"application/json\"");
  const std::size_t start = page.find('>', tag) + 1;
  return page.substr(start, page.find("</script", start) - start);
}

/// A page that a browser would take apart as intended: as many scripts as the template has, nothing left to
/// expand, and data that parses.
void expect_sound(const std::string& page) {
  // The page's own styles and scripts are long and the same in each, so only what lies between is looked
  // through.
  const std::string body = markup(page);
  for (const char* tag : {"<script", "</script", "<style", "<!--"})
    EXPECT_EQ(occurrences(body, tag), 0u) << tag;
  EXPECT_EQ(occurrences(body, "</style"), 1u);
  EXPECT_EQ(occurrences(body, "<section"), 10u);
  EXPECT_EQ(occurrences(body, "</section>"), 10u);
  EXPECT_EQ(page.rfind("</html>\n"), page.size() - 8);
  const std::string data = data_block(page);
  EXPECT_EQ(data.find_first_of("<>&"), data.npos);
  EXPECT_TRUE(Json::accept(data)) << data.substr(0, 200);
}

void for_each_string(Json& json, const std::function<void(std::string&)>& visit) {
  if (json.is_string()) visit(json.get_ref<std::string&>());
  if (json.is_structured())
    for (Json& element : json) for_each_string(element, visit);
}

/// Every place in the record, as a JSON pointer; of lists, their first element stands for all.
void list_places(const Json& json, const Json::json_pointer& at, std::vector<Json::json_pointer>& out) {
  if (!at.empty()) out.push_back(at);
  if (json.is_object())
    for (const auto& [key, value] : json.items()) list_places(value, at / key, out);
  if (json.is_array() && !json.empty()) list_places(json[0], at / std::size_t{0}, out);
}

TEST(Report, ShowsTheSample) {
  const std::string page = render_report(load("report_sample.json"));
  expect_sound(page);
  EXPECT_EQ(occurrences(page, "<script"), 3u);
  EXPECT_EQ(occurrences(page, "</script"), 3u);
  EXPECT_NE(page.find("<title>rooftile report: Example CPU 8th generation, 2.6 GHz</title>"), page.npos);
  EXPECT_NE(page.find("21 November 2026, 07:00 UTC"), page.npos);
  EXPECT_NE(page.find("<strong>All 624 cases passed</strong>: 6 kernels on avx2, avx512"), page.npos);
  EXPECT_NE(page.find("Faster than the best baseline in 19 of 23 measurements"), page.npos);
  EXPECT_EQ(occurrences(page, "<canvas"), 3u);
  EXPECT_EQ(occurrences(page, "<img"), 2u);
  EXPECT_EQ(occurrences(page, "class=\"empty\""), 1u) << "only the noscript sentence";
  EXPECT_NE(page.find("<summary>transpose f32 64×64, naive</summary>"), page.npos);
  EXPECT_NE(page.find("144\u00a0KiB</td><td class=\"n\">32\u00a0KiB</td><td class=\"n\">32\u00a0KiB</td>"
                      "<td class=\"n\">4.5×"),
            page.npos);
  EXPECT_NE(page.find("<code>naive.cu:15</code></th><td>global load</td><td class=\"n\">128</td>"
                      "<td class=\"n\">4.00</td><td class=\"n\">100%</td>"),
            page.npos);
  EXPECT_NE(page.find("<td class=\"n\">32.0</td><td class=\"n\">3\u202f968</td><td>tile[i][j] = value;</td>"),
            page.npos);
  const Json data = Json::parse(data_block(page));
  EXPECT_EQ(data["roofline"]["levels"].size(), 8u);
  EXPECT_EQ(data["speed"]["series"].size(), 4u) << "copy and softmax, with one thread and two";
  EXPECT_EQ(data["speed"]["caches"].size(), 3u) << "the instruction cache holds no data";
  EXPECT_EQ(data["ulp"]["groups"][0]["name"], "all kernels");
}

TEST(Report, TellsAGpusRungWhatItAsksFor) {
  Json record = load("report_sample.json");
  record["traces"][0]["op"] = "softmax";
  const char* words = "asks memory for 4.5× the bytes stated";
  EXPECT_EQ(occurrences(render_report(record), words), 0u) << "the rungs of that name are a CPU's";
  for (Json& result : record["results"]) result["backend"] = "cuda";
  EXPECT_GE(occurrences(render_report(record), words), 1u);
}

TEST(Report, DrawsAGpusLargestCopyAsItsRoof) {
  Json record = load("report_sample.json");
  record["machine"].erase("levels");
  record["runs"] = Json::array(
      {{{"id", "one"},
        {"copies", {{{"bytes", 16e6}, {"median_us", 8.0}}, {{"bytes", 2e9}, {"median_us", 500.0}}}}}});
  for (Json& result : record["results"]) result["backend"] = "cuda", result["isa"] = "sm_90";
  record["notes"] = {"Liger is left out", "time was short", "Liger is left out"};
  const std::string page = render_report(record);
  const Json levels = Json::parse(data_block(page))["roofline"]["levels"];
  ASSERT_EQ(levels.size(), 1u) << levels;
  EXPECT_EQ(levels[0]["gbs"], 4000.0);
  EXPECT_EQ(levels[0]["name"], "copy");
  EXPECT_EQ(occurrences(page, "<li>Liger is left out</li>"), 1u) << "two records may say the same";
  EXPECT_EQ(occurrences(markup(page), "sm_90, cold, sm_90"), 0u);
  EXPECT_GE(occurrences(markup(page), "<td>sm_90, cold</td>"), 1u);
}

TEST(Report, FoldsManyNotes) {
  Json record = load("report_sample.json");
  for (const std::size_t count : {4, 5}) {
    record["notes"] = Json::array();
    for (std::size_t i = 0; i < count; ++i) record["notes"].push_back(fmt::format("note {}", i));
    const std::string page = markup(render_report(record));
    EXPECT_EQ(occurrences(page, "<li>note 3</li>"), 1u);
    EXPECT_EQ(occurrences(page, "<summary>5 notes</summary>"), count > 4 ? 1u : 0u);
  }
}

TEST(Report, StandsAlone) {
  const std::string page = render_report(load("report_sample.json"));
  for (const char* attribute : {"src=\"http", "href=\"http", "src=\"//", "url(http", "@import", "fetch("})
    EXPECT_EQ(markup(page).find(attribute), std::string::npos) << attribute;
  EXPECT_NE(page.find("default-src 'none'"), page.npos);
  EXPECT_NE(page.find(" Chart.js Contributors\n"), page.npos);
  EXPECT_NE(page.find("The above copyright notice and this permission notice shall be included"), page.npos);
  // The embedded files come through CMake byte for byte.
  for (const char* name : {"page.js", "page.css"})
    EXPECT_NE(page.find(read_file(source_root() / "rooftile/harness/report" / name)), page.npos) << name;
}

TEST(Report, IsTheSameForTheSameRecord) {
  const Json record = load("report_sample.json");
  EXPECT_EQ(render_report(record), render_report(record));
}

TEST(Report, EscapesEveryText) {
  for (const std::string payload :
       {"</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\"><b onclick='x'>",
        "<!--<script>", "{{css}}{{js}}", "' onmouseover='alert(1)", "&lt;\x1b[31m",
        "</title></style></section>", "\xff\xfe<\xc3"}) {
    Json record = load("report_sample.json");
    const std::string before = render_report(record);
    for_each_string(record, [&](std::string& text) {
      // "sweep", "image/png" and the like choose what is shown, so they stay.
      static const std::set<std::string> kKept = {"sweep", "copy", "softmax", "image/png", "forward"};
      if (!kKept.count(text)) text = payload;
    });
    const std::string page = render_report(record);
    SCOPED_TRACE(payload);
    expect_sound(page);
    for (const char* tag : {"<b ", "<b>", "<img src=x", "</title></style>", "{{css}}{{js}}\""})
      EXPECT_EQ(markup(page).find(tag), std::string::npos) << tag;
    // No new tag anywhere: as many of each as before, or fewer where a picture is refused.
    for (const char* tag : {"<title", "<style", "<section", "<table", "<h3", "<a ", "<canvas"})
      EXPECT_LE(occurrences(page, tag), occurrences(before, tag)) << tag;
    EXPECT_EQ(occurrences(page, "<img"), 0u) << "base64 that is none must not reach an attribute";
  }
}

TEST(Report, EscapesAHostileRecord) {
  const Json record = load("report_hostile.json");
  EXPECT_TRUE(validate_record(record)) << validate_record(record).message();
  const std::string page = render_report(record);
  expect_sound(page);
  EXPECT_EQ(occurrences(page, "<img"), 0u);
  EXPECT_NE(page.find("&lt;img src=x onerror=alert(1)&gt;"), page.npos);
  EXPECT_NE(page.find("{{css}} {{js}}</code>"), page.npos) << "braces of the record are text, not a template";
  EXPECT_NE(page.find("FAILED: 1 of 4 cases"), page.npos);
  EXPECT_NE(page.find("row 3: &lt;script&gt;"), page.npos);
}

TEST(Report, EscapesInsideAttributes) {
  Json record = load("report_sample.json");
  record["gallery"][0]["title"] = "\" onerror=\"alert(1)";
  const std::string page = render_report(record);
  EXPECT_EQ(occurrences(page, "<img"), 2u);
  EXPECT_NE(page.find("alt=\"&quot; onerror=&quot;alert(1)\""), page.npos);
  EXPECT_EQ(markup(page).find("onerror=\""), std::string::npos);
}

TEST(Report, ScriptsNeedTheRecordsToken) {
  const std::string page = render_report(load("report_sample.json"));
  const std::size_t at = page.find("script-src 'nonce-") + 18;
  const std::string token = page.substr(at, 16);
  EXPECT_EQ(occurrences(page, "nonce=\"" + token + "\""), 3u);
  EXPECT_EQ(render_report(Json{{"schema", 1}}).find(token), std::string::npos)
      << "another record, another token";
}

TEST(Report, SaysWhatWouldFillAMissingPart) {
  const std::string page = render_report(Json{{"schema", 1}});
  expect_sound(page);
  for (const char* sentence :
       {"Nothing was checked", "does not say which machine", "No level’s speed", "No arithmetic peak",
        "No measured kernel calculates", "no sweep over sizes", "No ladder was measured",
        "No baselines found", "No picture was processed", "Nothing was measured"})
    EXPECT_NE(page.find(sentence), page.npos) << sentence;
  EXPECT_EQ(occurrences(page, "<canvas"), 0u);
  EXPECT_EQ(occurrences(page, "<table"), 1u) << "the commands";
}

TEST(Report, BearsAnyFieldMissingEmptyOrOfAnotherType) {
  Json sample = load("report_sample.json");
  // A few of each group, or it takes seconds: the fields are the same in all of them.
  Json few = Json::array();
  std::map<std::string, int> taken;
  for (const Json& result : sample["results"])
    if (++taken[result["group"]] <= 2) few.push_back(result);
  sample["results"] = few;
  sample["checks"].erase(sample["checks"].begin() + 2, sample["checks"].end());
  sample["gallery"].erase(1);
  std::vector<Json::json_pointer> places;
  list_places(sample, Json::json_pointer(), places);
  ASSERT_GT(places.size(), 80u);
  for (const Json::json_pointer& place : places) {
    std::vector<Json> replacements = {nullptr, Json::array(), Json::object(), "text",
                                      -1,      1e308,         true,           Json{nullptr}};
    for (const Json& replacement : replacements) {
      Json record = sample;
      record[place] = replacement;
      SCOPED_TRACE(place.to_string() + " = " + replacement.dump());
      expect_sound(render_report(record));
    }
    Json record = sample;
    Json& parent = record[place.parent_pointer()];
    if (!parent.is_object()) continue;
    parent.erase(place.back());
    SCOPED_TRACE(place.to_string() + " erased");
    expect_sound(render_report(record));
    EXPECT_EQ(validate_record(record).ok(), place.back() != "schema") << validate_record(record).message();
  }
  for (const Json& record : {Json(), Json("text"), Json::array({1, 2}), Json(3)})
    expect_sound(render_report(record));
}

TEST(Report, ShowsNoNumberThatIsNone) {
  Json record = load("report_sample.json");
  for (Json& result : record["results"])
    for (const char* name : {"median_us", "bytes", "flops", "of_limit", "limit_us", "copy_us"})
      result[name] = std::numeric_limits<double>::quiet_NaN();
  record["machine"]["levels"][0]["copy_gbs"] = std::numeric_limits<double>::infinity();
  const std::string none = render_report(record);
  EXPECT_TRUE(Json::parse(data_block(none))["roofline"].is_null());

  // Times of 0, and quotients beyond what a double can hold.
  record = load("report_sample.json");
  int i = 0;
  for (Json& result : record["results"]) {
    result["median_us"] = ++i % 2 ? 0 : 1e-300;
    result["of_limit"] = nullptr;
    for (Json& baseline : result["peers"]) baseline["median_us"] = 0;
    result["bytes"] = result["flops"] = i % 3 ? 1e300 : 1e-300;
  }
  const std::string extreme = render_report(record);
  for (const std::string& page : {none, extreme}) {
    expect_sound(page);
    for (const char* text : {">nan", ">inf", "nan\u00a0", "inf\u00a0", "nan%", "inf%", "nan×", "inf×"})
      EXPECT_EQ(markup(page).find(text), std::string::npos) << text;
  }
}

TEST(Report, HeadlineFollowsTheData) {
  Json record = load("report_sample.json");
  record["checks"][0]["passed"] = record["checks"][0]["cases"].get<int>() - 2;
  record["checks"][0]["failures"] = {"softmax 3x5 f32: y[2][4] is 0.5, expected 0.25"};
  record["results"][0]["throttled"] = true;
  const std::string page = render_report(record);
  EXPECT_NE(page.find("FAILED: 2 of 624 cases, in 1 of 26 checks."), page.npos);
  EXPECT_EQ(page.find("cases passed</strong>"), page.npos);
  EXPECT_NE(page.find("y[2][4] is 0.5, expected 0.25"), page.npos);
  EXPECT_NE(page.find("1 measurement was throttled"), page.npos);
}

TEST(Report, BandwidthTableTakesWhatCalculatesNothing) {
  Json record = load("report_sample.json");
  const std::string page = render_report(record);
  const std::size_t at = page.find("Measurements that only move data</caption>");
  ASSERT_NE(at, page.npos);
  const std::string table = page.substr(at, page.find("</table>", at) - at);
  EXPECT_EQ(occurrences(table, "<th scope=\"row\">copy f32"), 4u);
  EXPECT_EQ(occurrences(table, "softmax"), 0u);
}

/// The text between two marks, both included in the page.
std::string between(const std::string& page, const std::string& from, const std::string& to) {
  const std::size_t start = page.find(from);
  if (start == page.npos) return "";
  return page.substr(start, page.find(to, start) - start);
}

TEST(Report, BeginsWithOneChartAndItsClaim) {
  const Json record = load("report_sample.json");
  const std::string page = markup(render_report(record));
  const std::string claim = between(page, "<p class=\"claim\">", "</p>");
  ASSERT_FALSE(claim.empty());
  EXPECT_EQ(occurrences(claim, "."), 1u) << "one sentence: " << claim;
  EXPECT_LT(page.find("class=\"claim\""), page.find("class=\"shares\""));
  EXPECT_LT(page.find("class=\"shares\""), page.find("<table"));

  // Its figures are the record's: in memory, on both threads.
  std::map<std::string, double> first;  // a kernel's first dtype stands for it
  for (const Json& r : record["results"])
    if (r["group"] == "best" && r["cache"] == "cold" && r["threads"] == 2 && r["bytes"] > 4 * 33554432.0)
      first.try_emplace(r["op"].get<std::string>() + r["direction"].get<std::string>(), r["of_limit"]);
  std::vector<double> shares;
  for (const auto& [kernel, share] : first) shares.push_back(share);
  ASSERT_FALSE(shares.empty());
  std::sort(shares.begin(), shares.end());
  EXPECT_NE(claim.find("In memory, 2 threads: "), claim.npos) << claim;
  EXPECT_NE(claim.find(report::percent(shares.front())), claim.npos) << claim;
  EXPECT_NE(claim.find(report::percent(shares.back())), claim.npos) << claim;
  EXPECT_EQ(occurrences(between(page, "class=\"shares\"", "</ol>"), "<li>"), shares.size());
  EXPECT_EQ(render_report(Json{{"schema", 1}}).find("<p class=\"claim\">"), std::string::npos);
}

TEST(Report, DrawsAKernelOnceUnderEachConditionInOneColour) {
  const Json data = Json::parse(data_block(render_report(load("report_sample.json"))));
  ASSERT_GE(data["roofline"]["views"].size(), 2u);
  EXPECT_EQ(data["roofline"]["views"][0]["name"], "in memory, 2 threads");
  std::map<std::string, Json> looks;
  for (const Json& view : data["roofline"]["views"]) {
    std::set<std::string> kernels;
    for (const Json& point : view["points"]) {
      EXPECT_TRUE(kernels.insert(point["series"]).second) << point["series"] << " twice in " << view["name"];
      EXPECT_EQ(looks.try_emplace(point["series"], point["look"]).first->second, point["look"]);
    }
  }
  ASSERT_TRUE(looks.count("softmax") && looks.count("softmax backward"));
  EXPECT_EQ(looks["softmax"]["colour"], looks["softmax backward"]["colour"]);
  EXPECT_NE(looks["softmax"]["mark"], looks["softmax backward"]["mark"]);
  bool swept = false;
  for (const Json& series : data["speed"]["series"])
    if (series["name"].get<std::string>().starts_with("softmax")) {
      swept = true;
      EXPECT_EQ(series["look"], looks["softmax"]) << "the same in every chart";
    }
  EXPECT_TRUE(swept);
}

TEST(Report, HasNoRooflineWhereOnlyRungsCalculate) {
  Json record = load("report_sample.json");
  for (Json& r : record["results"])
    if (!r.contains("rung")) r["flops"] = 0;
  const std::string page = render_report(record);
  EXPECT_TRUE(Json::parse(data_block(page))["roofline"].is_null());
  EXPECT_EQ(page.find("<canvas id=\"roofline\""), page.npos) << "an empty chart";
  EXPECT_NE(page.find("Every measurement with arithmetic"), page.npos);
}

TEST(Report, SaysThatRoofsContradictEachOther) {
  Json record = load("report_sample.json");
  EXPECT_EQ(render_report(record).find("contradict each other"), std::string::npos);
  record["machine"]["levels"][0]["read_gbs"] = 80.0;
  const std::string page = markup(render_report(record));
  EXPECT_EQ(occurrences(page, "L1 reads 80.0 GB/s with 1 thread, slower than L2 (104.0)"), 2u)
      << "in the summary and beside the levels";
}

TEST(Report, MarksDoubtfulTimesAndExplainsTheMarks) {
  Json record = load("report_sample.json");
  for (Json& r : record["results"]) r["p5_us"] = r["p95_us"] = r["median_us"], r["copy_us"] = nullptr;
  const std::string calm = markup(render_report(record));
  EXPECT_EQ(calm.find("class=\"tag\">~<"), calm.npos);
  EXPECT_EQ(calm.find("measurements varied"), calm.npos);
  record["results"][0]["p95_us"] = 3 * record["results"][0]["median_us"].get<double>();
  const std::string page = markup(render_report(record));
  EXPECT_NE(page.find("<strong>1 of "), page.npos);
  EXPECT_EQ(occurrences(between(page, "<section id=\"results\"", "</section>"), "class=\"tag\">~<"), 2u)
      << "the row and the legend";
  EXPECT_EQ(page.find("This machine was busy"), page.npos) << "one row";
}

TEST(Report, MarksBarsThatVariedAndSaysWhenTheMachineWasBusy) {
  Json record = load("report_sample.json");
  for (Json& r : record["results"]) r["p5_us"] = r["p95_us"] = r["median_us"], r["copy_us"] = nullptr;
  EXPECT_EQ(between(markup(render_report(record)), "class=\"shares\"", "</ol>").find("class=\"tag\">~<"),
            std::string::npos);
  for (Json& r : record["results"]) r["p95_us"] = 3 * r["median_us"].get<double>();
  const std::string page = markup(render_report(record));
  const std::string bars = between(page, "class=\"shares\"", "</ol>");
  EXPECT_EQ(occurrences(bars, "class=\"tag\">~<"), occurrences(bars, "<li>"));
  EXPECT_LT(page.find("This machine was busy: "), page.find("class=\"claim\"")) << "above all figures";
}

TEST(Report, DrawsThreeTypesAtMost) {
  Json record = load("report_dtypes.json");
  const Json data = Json::parse(data_block(render_report(record)));
  std::set<std::string> checked, drawn;
  for (const Json& c : record["checks"])
    if (c.contains("ulp_histogram")) checked.insert(c["dtype"]);
  for (const Json& group : data["ulp"]["groups"])
    for (const Json& series : group["series"]) drawn.insert(series["name"]);
  ASSERT_GT(checked.size(), 3u);
  EXPECT_EQ(drawn, (std::set<std::string>{"bf16", "f16", "f32"}));
}

TEST(Report, LinksToLessonsWhereTheyAre) {
  const Json record = load("report_sample.json");
  EXPECT_EQ(render_report(record).find("README.md"), std::string::npos) << "nobody said where they are";
  const std::string page = markup(render_report(record, {.docs_url = "https://example.org/a&b/"}));
  EXPECT_GE(occurrences(page, "<a href=\"https://example.org/a&amp;b/rooftile/ops/softmax/README.md\">"), 3u)
      << "in the first chart, over a ladder, in the results";
  EXPECT_GE(occurrences(page, "rooftile/ops/blas1/README.md"), 1u) << "the folder's name, not the op's";
}

TEST(Report, TellsWhatDoesNotApplyFromWhatPassed) {
  Json record = load("report_sample.json");
  record["checks"][0]["cases"] = record["checks"][0]["passed"] = 0;
  record["checks"][1]["impostors"] = 12;
  record["checks"][1]["impostors_rejected"] = 11;
  const std::string page = markup(render_report(record));
  EXPECT_EQ(occurrences(page, ">not applicable</td>"), 1u);
  EXPECT_EQ(page.find(">0 of 0<"), page.npos);
  EXPECT_EQ(occurrences(page, ">11 of 12</td>"), 1u);
  EXPECT_NE(page.find("The checks rejected 11 of 12 wrong results"), page.npos);
  EXPECT_EQ(render_report(load("report_sample.json")).find("Wrong results rejected"), std::string::npos)
      << "no column where no check was shown any";
}

TEST(Report, ExplainsTheErrorsInASentence) {
  Json record = load("report_sample.json");
  record["checks"] = {
      {{"op", "softmax"},
       {"dtype", "f32"},
       {"cases", 1},
       {"passed", 1},
       {"ulp_histogram",
        {{{"ulp", "0"}, {"count", 90}}, {{"ulp", "≤1"}, {"count", 5}}, {{"ulp", "≤2"}, {"count", 5}}}}}};
  EXPECT_NE(render_report(record).find("95% of 100 results are at most one step from the exact one."),
            std::string::npos);
}

TEST(Report, EndsWithTheCommands) {
  const std::string page = markup(render_report(Json{{"schema", 1}, {"results", Json::array()}}));
  EXPECT_LT(page.find("<section id=\"results\""), page.find("<section id=\"commands\""));
  EXPECT_EQ(page.find("<section", page.find("<section id=\"commands\"") + 1), page.npos);
  for (const char* command :
       {"check", "bench", "why", "list", "devices", "trace", "profile", "asm", "report"})
    EXPECT_NE(page.find(fmt::format("<code>rooftile {}", command)), page.npos) << command;
}

TEST(Report, ComparesRungsOfTheSameThreads) {
  Json record = load("report_sample.json");
  Json rung = record["results"][0];
  rung["group"] = "ladder", rung["op"] = "dot", rung["layout"] = "contiguous", rung["shape"] = {7};
  record["results"] = Json::array();
  for (const auto& [us, threads] : {std::pair{80.0, 1}, {20.0, 1}, {10.0, 2}}) {
    rung["median_us"] = us, rung["threads"] = threads, rung["rung"] = record["results"].size() + 1;
    record["results"].push_back(rung);
  }
  const std::string page = markup(render_report(record));
  EXPECT_NE(
      page.find("<strong>4.0× faster</strong> from the first rung of its ladder to the fastest, both on 1 "
                "thread"),
      page.npos);
}

}  // namespace
}  // namespace rooftile::harness
