// The bench's peers: compared before they are believed, left out with a sentence where they are broken.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "rooftile/harness/bench_row.h"
#include "rooftile/harness/peers.h"

namespace rooftile::harness {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

TEST(Peers, AreComparedLoosely) {
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

/// A folder of peers that is gone after the test, and what the environment says during it.
struct PeerFolder {
  fs::path path;
  PeerFolder(const std::string& script, const char* python) {
    path = fs::temp_directory_path() / ("rooftile-peers-" + std::to_string(now_ns()));
    fs::create_directories(path);
    if (!script.empty()) std::ofstream(path / "rooftile-peers.py") << script;
    setenv("ROOFTILE_PYTHON", python, 1);
  }
  ~PeerFolder() {
    unsetenv("ROOFTILE_PYTHON");
    fs::remove_all(path);
  }
};

std::string joined(const Peers& peers) {
  std::string all;
  for (const std::string& note : peers.notes()) all += note + "\n";
  return all;
}

TEST(Peers, AFolderWithoutPeersIsNoError) {
  const PeerFolder folder("", "/bin/sh");
  EXPECT_EQ(joined(Peers(folder.path.string())), "");
  EXPECT_NE(joined(Peers("/nowhere/at/all")).find("is no folder"), std::string::npos);
}

TEST(Peers, BrokenOnesAreLeftOutWithASentence) {
  const PeerFolder folder("", "/bin/sh");
  std::ofstream(folder.path / "rooftile-peer-broken.so") << "not a library";
  EXPECT_NE(joined(Peers(folder.path.string())).find("rooftile-peer-broken.so cannot be loaded"),
            std::string::npos);
  for (const auto& [script, word] :
       {std::pair{"exit 3", "ended"},
        {"while read line; do echo 'I am not JSON'; done", "something else than JSON"},
        {"while read line; do echo '{\"peers\": []}'; done", "neither torch nor cv2"}}) {
    const PeerFolder other(script, "/bin/sh");
    EXPECT_NE(joined(Peers(other.path.string())).find(word), std::string::npos) << script;
  }
  const PeerFolder none("exit 0", "/nowhere/python");
  EXPECT_NE(joined(Peers(none.path.string())).find("cannot be started"), std::string::npos);
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
  const PeerFolder folder(fake_python(results), "/bin/sh");
  Peers peers(folder.path.string());
  const Machine machine = describe_machine();
  BenchSession session(shared_roofs(), machine, &peers);
  BenchRow row;
  row.spec = find_spec("softmax");
  row.c = {{2, 1}, DType::f32, {}};
  row.peers = true;
  row.cache = cache;
  Outcome outcome = session.measure(row, 0.02, 5);
  notes = joined(peers);
  return outcome;
}

TEST(Peers, OneThatComputesTheSameIsTimed) {
  std::string notes;
  const Outcome outcome = with_fake("[1, 1]", notes);
  ASSERT_TRUE(outcome.result) << outcome.error;
  ASSERT_EQ((*outcome.result)["peers"].size(), 1u) << notes;
  const json& peer = (*outcome.result)["peers"][0];
  EXPECT_EQ(peer["name"], "Fake");
  EXPECT_EQ(peer["call_us"], 0.5);
  EXPECT_NEAR(peer["median_us"].get<double>(), 1000, 1);
  EXPECT_EQ(notes, "");
}

TEST(Peers, AreToldToEmptyTheirCachesForAColdRow) {
  std::string notes;
  const Outcome outcome = with_fake("[1, 1]", notes, CacheState::kCold);
  ASSERT_TRUE(outcome.result) << outcome.error;
  ASSERT_EQ((*outcome.result)["peers"].size(), 1u) << notes;
  EXPECT_NEAR((*outcome.result)["peers"][0]["median_us"].get<double>(), 2000, 1);
}

TEST(Peers, OneThatComputesSomethingElseIsLeftOut) {
  std::string notes;
  const Outcome outcome = with_fake("[1, 0.5]", notes);
  ASSERT_TRUE(outcome.result) << outcome.error;
  EXPECT_EQ((*outcome.result)["peers"], json::array());
  EXPECT_NE(notes.find("computes 0.5 where the kernel computes 1"), std::string::npos) << notes;
}

}  // namespace
}  // namespace rooftile::harness
