// The bench of GPUs, on the emulated device: parts, going on after an end, records written on the way,
// baselines.
#include "rooftile/harness/bench/bench_gpu.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>

#include "rooftile/harness/bench/timing.h"
#include "rooftile/harness/report/report.h"

namespace rooftile::harness {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

/// By the build's word, not by trying: a device that fails must not pass for one that is absent.
constexpr bool kEmulatedIsBuilt = ROOFTILE_TEST_EMULATED;
#define SKIP_WITHOUT_EMULATED() \
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device"

/// A few quick rows.
BenchOptions few() {
  BenchOptions options;
  options.functions = {"copy", "add", "rgb_to_gray"};
  options.dtypes = {DType::f32, DType::bf16, DType::u8};
  options.baselines = false;
  return options;
}
json run(const BenchOptions& options) { return bench_gpu(options, Queue::emulated({.threads = 1})); }

std::set<std::string> names_of(const json& record) {
  std::set<std::string> names;
  for (const json& r : record["results"])
    EXPECT_TRUE(names.insert(r["op"].get<std::string>() + " " + r["dtype"].get<std::string>()).second)
        << "twice: " << r.dump();
  return names;
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

TEST(BenchGpu, ARecordSaysWhatEachFigureIsFrom) {
  SKIP_WITHOUT_EMULATED();
  const json record = run(few());
  EXPECT_EQ(names_of(record),
            (std::set<std::string>{"copy f32", "copy bf16", "add f32", "add bf16", "rgb_to_gray u8"}));
  EXPECT_TRUE(validate_record(record)) << validate_record(record).message();
  EXPECT_EQ(record["errors"], json::array());
  ASSERT_EQ(record["runs"].size(), 1u);
  EXPECT_GT(record["runs"][0]["copies"].at(0)["median_us"], 0);
  EXPECT_EQ(record["build"].get<std::string>().size(), 16u);
  for (const json& r : record["results"]) {
    EXPECT_EQ(r["run"], record["runs"][0]["id"]);
    EXPECT_GT(r["copy_us"], 0);
    EXPECT_GE(r["p95_us"], r["median_us"]);
    EXPECT_TRUE(r["throttled"].is_null()) << "the emulated device has no sensors";
  }
  ASSERT_EQ(record["overheads"].size(), 3u);
  for (const json& line : record["overheads"])
    EXPECT_NEAR(line["ns"].get<double>(), line["whole_ns"].get<double>() - line["bare_ns"].get<double>(),
                10 + 1e-4 * line["whole_ns"].get<double>())  // each has five digits
        << line.dump();
}

TEST(BenchGpu, PartsAreDisjointAndMakeTheWhole) {
  SKIP_WITHOUT_EMULATED();
  const std::set<std::string> whole = names_of(run(few()));
  std::vector<json> parts;
  std::set<std::string> together;
  for (int part = 1; part <= 3; ++part) {
    BenchOptions options = few();
    options.part = part;
    options.parts = 3;
    parts.push_back(run(options));
    for (const std::string& name : names_of(parts.back()))
      EXPECT_TRUE(together.insert(name).second) << name << " is in two parts";
  }
  EXPECT_EQ(together, whole);
  const json merged = merge_parts(parts);
  EXPECT_EQ(names_of(merged), whole);
  EXPECT_EQ(merged["runs"].size(), 3u);
  for (const json& r : merged["results"])
    EXPECT_TRUE(std::any_of(merged["runs"].begin(), merged["runs"].end(), [&](const json& one) {
      return one["id"] == r["run"];
    })) << r["run"];

  const json twice = merge_parts({parts[0], parts[1], parts[0]});
  EXPECT_EQ(twice["results"].size(), parts[0]["results"].size() + parts[1]["results"].size());
  EXPECT_NE(twice["notes"].dump().find("stood in several parts"), std::string::npos);
  json other = parts[1];
  other["build"] = "0123456789abcdef";
  EXPECT_EQ(refusal([&] {
              (void)merge_parts({parts[0], other});
            }).rfind("these records are of another build", 0),
            0u);
  other = parts[1];
  other["machine"]["device"] = "device 0, a GPU of somebody else's";
  EXPECT_EQ(refusal([&] {
              (void)merge_parts({parts[0], other});
            }).rfind("these records are of another machine", 0),
            0u);
}

TEST(BenchGpu, GoesOnWithWhatARecordLacks) {
  SKIP_WITHOUT_EMULATED();
  const std::set<std::string> whole = names_of(run(few()));
  std::atomic<bool> stop{false};
  json kept;  // as a file would hold it when the process is ended after two rows
  BenchOptions options = few();
  options.cancel = &stop;
  options.save = [&](const json& so_far) {
    EXPECT_EQ(so_far["results"].size(), kept.is_null() ? 1u : kept["results"].size() + 1) << "after each row";
    kept = so_far;
    stop = kept["results"].size() == 2;
  };
  (void)run(options);
  ASSERT_EQ(kept["results"].size(), 2u);
  kept["results"][0]["median_us"] = 12345;  // measured again, it would be another
  kept["errors"] = {"one that is tried again"};

  BenchOptions rest = few();
  rest.resumed = kept;
  const json record = run(rest);
  EXPECT_EQ(names_of(record), whole);
  EXPECT_EQ(record["results"][0], kept["results"][0]);
  EXPECT_EQ(record["results"][1], kept["results"][1]);
  EXPECT_EQ(record["errors"], json::array());
  EXPECT_EQ(record["runs"].size(), 2u);
  EXPECT_NE(record["results"][2]["run"], json());

  rest.resumed = record;
  const json again = run(rest);
  EXPECT_EQ(again["results"], record["results"]);
  EXPECT_NE(again["notes"].dump().find("nothing was left"), std::string::npos);

  rest.resumed["build"] = "0123456789abcdef";
  EXPECT_EQ(refusal([&] { (void)run(rest); }).rfind("the record to go on with is of another build", 0), 0u);
}

TEST(BenchGpu, ALaddersTopAndTheBestRowAreTwoRows) {
  SKIP_WITHOUT_EMULATED();
  BenchOptions options = few();
  options.functions = {"add"};
  options.dtypes = {DType::f32};
  options.scope = Scope::full;
  const json record = run(options);
  options.resumed = record;
  EXPECT_EQ(run(options)["results"], record["results"]);
}

// ---------------------------------------------------------------------------------------------------
// baselines

/// Speaks the protocol in sh and counts the blocks it times; its results are what `results` holds.
struct FakeBaselines {
  fs::path folder = fs::temp_directory_path() / ("rooftile-gpu-baselines-" + std::to_string(now_ns()));
  explicit FakeBaselines(const std::string& results,
                         const std::string& timing = R"({"copy": [50, 51, 52],)"
                                                     R"( "calls": {"Fake": [100, 101, 102]},)"
                                                     R"( "throttled": true})") {
    fs::create_directories(folder);
    std::ofstream(folder / "gpu_baselines.py")
        << "while read -r line; do case \"$line\" in\n"
           "*hello*) echo '{\"peers\": [{\"name\": \"Fake\", \"version\": \"1\"}, {\"name\": "
           "\"Other\"}]}';;\n"
           "*'\"warm\"'*) echo '{\"warmed\": 1}'; echo \"$line\" >"
        << (folder / "warm").string()
        << ";;\n"
           "*'\"prepare\"'*) echo '{\"calls\": [{\"name\": \"Fake\", \"version\": \"1\", \"way\": \"graph\", "
           "\"results\": "
        << results << "}], \"errors\": [\"Other is left out: it is a fake\"]}';;\n"
        << "*'\"time\"'*) echo x >>" << (folder / "blocks").string() << "; echo '" << timing << "';;\n"
        << "*) echo '{}';;\nesac; done\n";
    setenv("ROOFTILE_PYTHON", "/bin/sh", 1);
  }
  ~FakeBaselines() {
    unsetenv("ROOFTILE_PYTHON");
    fs::remove_all(folder);
  }
  std::size_t blocks() const {
    return fs::exists(folder / "blocks") ? fs::file_size(folder / "blocks") / 2 : 0;
  }
};

/// A softmax of one column is 1 in each row.
BenchOptions ones(const FakeBaselines& fake) {
  BenchOptions options;
  options.functions = {"softmax"};
  options.dtypes = {DType::f32};
  options.shapes = {{2, 1}};
  options.baselines_folder = fake.folder.string();
  return options;
}

TEST(BenchGpuBaselines, AlternateInBlocksAndStandBesideTheirOwnCopy) {
  SKIP_WITHOUT_EMULATED();
  const FakeBaselines fake("[[1, 1]]");
  const json record = run(ones(fake));
  ASSERT_EQ(record["results"].size(), 1u) << record.dump();
  ASSERT_EQ(record["results"][0]["peers"].size(), 1u) << record["notes"].dump();
  const json& baseline = record["results"][0]["peers"][0];
  EXPECT_EQ(baseline["name"], "Fake");
  EXPECT_EQ(baseline["way"], "graph");
  EXPECT_EQ(baseline["median_us"], 101);
  EXPECT_EQ(baseline["copy_us"], 51);
  EXPECT_NEAR(baseline["of_copy"].get<double>(), 51 / 101., 1e-4);
  EXPECT_EQ(baseline["throttled"], true);
  EXPECT_EQ(fake.blocks(), 2u);
  EXPECT_EQ(baseline["n"], 6);
  EXPECT_NE(record["notes"].dump().find("Other is left out"), std::string::npos);
  EXPECT_TRUE(fs::exists(fake.folder / "warm")) << "kernels are compiled ahead";
  const std::string page = render_report(record);
  for (const char* word : {"Fake 1", "Copies on the GPU", "call layer_norm", "throttled"})
    EXPECT_NE(page.find(word), std::string::npos) << word;
}

TEST(BenchGpuBaselines, OneThatComputesSomethingElseIsLeftOut) {
  SKIP_WITHOUT_EMULATED();
  for (const auto& [results, word] : {std::pair{"[[1, 0.5]]", "computes 0.5 where the kernel computes 1"},
                                      {"[[1, null]]", "computes nan"},
                                      {"[[1]]", "1 values instead of 2"},
                                      {"[]", "it gave no results"},
                                      {"7", "baselines of softmax"}}) {
    const FakeBaselines fake(results);
    const json record = run(ones(fake));
    ASSERT_EQ(record["results"].size(), 1u) << record.dump();
    EXPECT_EQ(record["results"][0]["peers"], json::array()) << results;
    EXPECT_NE(record["notes"].dump().find(word), std::string::npos) << record["notes"].dump();
    EXPECT_EQ(fake.blocks(), 0u);
  }
}

TEST(BenchGpuBaselines, ThatDieOrAreNotThereCostNoRow) {
  SKIP_WITHOUT_EMULATED();
  {
    const FakeBaselines fake("[[1, 1]]", "not JSON");
    const json record = run(ones(fake));
    ASSERT_EQ(record["results"].size(), 1u);
    EXPECT_EQ(record["results"][0]["peers"], json::array());
    EXPECT_NE(record["notes"].dump().find("something else than JSON"), std::string::npos)
        << record["notes"].dump();
  }
  const FakeBaselines fake("[[1, 1]]");
  BenchOptions options = ones(fake);
  options.baseline_names = {"fake"};
  EXPECT_EQ(run(options)["results"][0]["peers"].size(), 1u);
  options.baseline_names = {"Nobody"};
  EXPECT_EQ(refusal([&] { (void)run(options); }), "no baseline \"Nobody\" is here; there are Fake, Other");
  options.baselines_folder = "/nowhere/at/all";
  EXPECT_EQ(refusal([&] { (void)run(options); }), "/nowhere/at/all holds no gpu_baselines.py");
  options.baseline_names = {};
  const json record = run(options);
  EXPECT_EQ(record["results"].size(), 1u);
  EXPECT_NE(record["notes"].dump().find("/nowhere/at/all holds no gpu_baselines.py"), std::string::npos);
}

}  // namespace
}  // namespace rooftile::harness
