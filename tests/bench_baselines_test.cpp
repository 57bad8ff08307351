// The bench's baselines: compared before they are believed, left out with a sentence where they are broken.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "rooftile/harness/bench/baselines.h"
#include "rooftile/harness/bench/bench_row.h"

namespace rooftile::harness {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

TEST(Baselines, AreComparedLoosely) {
  const std::vector<double> ours = {1, -2, 0.5};
  EXPECT_EQ(disagreement(ours, {1.0005, -2, 0.5}, DType::f32), "");
  EXPECT_NE(disagreement(ours, {1.01, -2, 0.5}, DType::f32), "");
  EXPECT_EQ(disagreement(ours, {1.01, -2, 0.5}, DType::bf16), "");
  EXPECT_NE(disagreement(ours, {1, -2, std::nan("")}, DType::f32), "");
  EXPECT_NE(disagreement(ours, {1, -2}, DType::f32), "");
  EXPECT_EQ(disagreement(ours, {}, DType::f32), "") << "not computed";
  EXPECT_EQ(disagreement({100}, {101}, DType::u8), "");
  EXPECT_NE(disagreement({100}, {104}, DType::u8), "");
}

/// A folder of baselines that is gone after the test, and what the environment says during it.
struct BaselineFolder {
  fs::path path;
  BaselineFolder(const std::string& script, const char* python) {
    path = fs::temp_directory_path() / ("rooftile-baselines-" + std::to_string(now_ns()));
    fs::create_directories(path);
    if (!script.empty()) std::ofstream(path / "baselines.py") << script;
    setenv("ROOFTILE_PYTHON", python, 1);
  }
  ~BaselineFolder() {
    unsetenv("ROOFTILE_PYTHON");
    fs::remove_all(path);
  }
};

std::string joined(const Baselines& baselines) {
  std::string all;
  for (const std::string& note : baselines.notes()) all += note + "\n";
  return all;
}

TEST(Baselines, AFolderWithoutBaselinesIsNoError) {
  const BaselineFolder folder("", "/bin/sh");
  EXPECT_EQ(joined(Baselines(folder.path.string())), "");
  EXPECT_NE(joined(Baselines("/nowhere/at/all")).find("is no folder"), std::string::npos);
}

TEST(Baselines, BrokenOnesAreLeftOutWithASentence) {
  const BaselineFolder folder("", "/bin/sh");
  std::ofstream(folder.path / "rooftile-baseline-broken.so") << "not a library";
  EXPECT_NE(joined(Baselines(folder.path.string())).find("rooftile-baseline-broken.so cannot be loaded"),
            std::string::npos);
  for (const auto& [script, word] :
       {std::pair{"exit 3", "ended"},
        {"while read line; do echo 'I am not JSON'; done", "something else than JSON"},
        {"while read line; do echo '{\"peers\": []}'; done", "neither torch nor cv2"}}) {
    const BaselineFolder other(script, "/bin/sh");
    EXPECT_NE(joined(Baselines(other.path.string())).find(word), std::string::npos) << script;
  }
  const BaselineFolder none("exit 0", "/nowhere/python");
  EXPECT_NE(joined(Baselines(none.path.string())).find("cannot be started"), std::string::npos);
}

/// Speaks the protocol in sh; its results are what `results` holds.
std::string fake_python(const std::string& results) {
  return "while read -r line; do case \"$line\" in\n"
         "*hello*) echo '{\"peers\": [{\"name\": \"Fake\", \"version\": \"1\"}]}';;\n"
         "*prepare*) echo '{\"calls\": [{\"id\": 1, \"name\": \"Fake\", \"version\": \"1\", \"call_us\": "
         "0.5}]}';;\n"
         "*results*) echo '{\"results\": [" +
         results +
         "]}';;\n"
         "*evict*) echo '{\"seconds\": 0.002}';;\n"
         "*time*) echo '{\"seconds\": 0.001}';;\n"
         "*) echo '{}';;\n"
         "esac; done\n";
}

Outcome with_fake(const std::string& results, std::string& notes, CacheState cache = CacheState::kWarm) {
  const BaselineFolder folder(fake_python(results), "/bin/sh");
  Baselines baselines(folder.path.string());
  const Machine machine = describe_machine();
  BenchSession session(shared_roofs(), machine, &baselines);
  BenchRow row;
  row.spec = find_spec("softmax");
  row.c = {{2, 1}, DType::f32, {}};
  row.baselines = true;
  row.cache = cache;
  Outcome outcome = session.measure(row, 0.02, 5);
  notes = joined(baselines);
  return outcome;
}

TEST(Baselines, OneThatComputesTheSameIsTimed) {
  std::string notes;
  const Outcome outcome = with_fake("[1, 1]", notes);
  ASSERT_TRUE(outcome.result) << outcome.error;
  ASSERT_EQ((*outcome.result)["peers"].size(), 1u) << notes;
  const json& baseline = (*outcome.result)["peers"][0];
  EXPECT_EQ(baseline["name"], "Fake");
  EXPECT_EQ(baseline["call_us"], 0.5);
  EXPECT_NEAR(baseline["median_us"].get<double>(), 1000, 1);
  EXPECT_EQ(notes, "");
}

TEST(Baselines, AreToldToEmptyTheirCachesForAColdRow) {
  std::string notes;
  const Outcome outcome = with_fake("[1, 1]", notes, CacheState::kCold);
  ASSERT_TRUE(outcome.result) << outcome.error;
  ASSERT_EQ((*outcome.result)["peers"].size(), 1u) << notes;
  EXPECT_NEAR((*outcome.result)["peers"][0]["median_us"].get<double>(), 2000, 1);
}

TEST(Baselines, OneThatComputesSomethingElseIsLeftOut) {
  std::string notes;
  const Outcome outcome = with_fake("[1, 0.5]", notes);
  ASSERT_TRUE(outcome.result) << outcome.error;
  EXPECT_EQ((*outcome.result)["peers"], json::array());
  EXPECT_NE(notes.find("computes 0.5 where the kernel computes 1"), std::string::npos) << notes;
}

}  // namespace
}  // namespace rooftile::harness
