// The checked build finds each planted defect at every order of threads, with its lines, and nothing in right
// programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "rooftile/backend/emulated/controls.h"
#include "tests/emulated/engine.h"
#include "tests/emulated/planted.h"

namespace rooftile::emulated::test {
namespace {

std::vector<Finding> take() {
  std::vector<Finding> all;
  Finding some[16];
  while (const std::size_t n = controls().take_findings(some, 16)) all.insert(all.end(), some, some + n);
  return all;
}
std::string told(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& f : findings) text += std::string(name(f.kind)) + ": " + f.sentence + "\n";
  return text;
}
/// The lines of planted.cu from the kernel's name to its end.
std::pair<int, int> lines_of(const std::string& kernel) {
  std::ifstream file(ROOFTILE_SOURCE_DIR "/tests/emulated/planted.cu");
  std::string line;
  int first = 0;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.find("__global__ void " + kernel + "(") != std::string::npos) first = number;
    if (first != 0 && line == "}") return {first, number};
  }
  return {first, 0};
}

struct Expected {
  Bug bug;
  FindingKind kind;
};
constexpr Expected kExpected[] = {
    {Bug::kOnlyBarrier, FindingKind::kRace},
    {Bug::kSecondBarrier, FindingKind::kRace},
    {Bug::kDivergentBarrier, FindingKind::kDivergentBarrier},
    {Bug::kTwoBarriers, FindingKind::kDivergentBarrier},
    {Bug::kMissingWait, FindingKind::kMissingWait},
    {Bug::kBarrierAfterWait, FindingKind::kRace},
    {Bug::kBarrierBeforeCopy, FindingKind::kRace},
    {Bug::kOverrun, FindingKind::kOutOfBounds},
    {Bug::kUnwritten, FindingKind::kUnwritten},
    {Bug::kMissingFence, FindingKind::kRace},
    {Bug::kBlocksCollide, FindingKind::kRace},
    {Bug::kMissingSyncwarp, FindingKind::kRace},
    {Bug::kClusterBarrier, FindingKind::kRace},
    {Bug::kSourceWritten, FindingKind::kMissingWait},
    {Bug::kTwoShuffles, FindingKind::kDivergentBarrier},
    {Bug::kVolatileTail, FindingKind::kRace},
    {Bug::kMisaligned, FindingKind::kMisaligned},
};

class Planted : public testing::TestWithParam<Expected> {};
INSTANTIATE_TEST_SUITE_P(Bugs, Planted, testing::ValuesIn(kExpected),
                         [](const auto& p) { return "bug" + std::to_string(static_cast<int>(p.param.bug)); });

TEST_P(Planted, IsFoundAtEveryOrderOfThreads) {
  const Bug bug = GetParam().bug;
  const FindingKind kind = GetParam().kind;
  std::vector<float> x(8192, 1), y(8192);
  for (const unsigned threads : {32u, 256u, 1024u})
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      std::vector<unsigned> counter(64);
      const Geometry g{.grid = 2, .block = threads, .cluster = bug == Bug::kClusterBarrier ? 2u : 1u};
      (void)launch_planted(bug, g, {.seed = seed}, x.data(), y.data(), counter.data());
      const std::vector<Finding> findings = take();
      const auto found =
          std::find_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.kind == kind; });
      ASSERT_NE(found, findings.end()) << threads << " threads, seed " << seed << ": " << told(findings);
      ASSERT_NE(std::string(found->first.file).find("planted.cu"), std::string::npos) << found->sentence;
      ASSERT_NE(std::string(found->second.file).find("planted.cu"), std::string::npos) << found->sentence;
      if (bug != Bug::kOverrun) {
        const auto [first, last] = lines_of(found->kernel);
        ASSERT_GT(last, first);
        for (const int line : {found->first.line, found->second.line}) {
          ASSERT_GE(line, first) << found->sentence;
          ASSERT_LE(line, last) << found->sentence;
        }
      }
    }
}

TEST(Checked, IsSilentOnRightPrograms) {
  std::vector<float> x(8192, 1), y(8192);
  for (int which = 0; which < kRightPrograms; ++which)
    for (const unsigned threads : {32u, 256u, 1024u})
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        std::vector<unsigned> counter(64);
        const Geometry g{.grid = 4, .block = threads, .cluster = which == 10 ? 2u : 1u};
        const Status s = launch_right(which, g, {.seed = seed}, x.data(), y.data(), counter.data());
        ASSERT_TRUE(s.ok()) << s.message();
        const std::vector<Finding> findings = take();
        ASSERT_TRUE(findings.empty())
            << "program " << which << ", " << threads << " threads, seed " << seed << ": " << told(findings);
      }
}

TEST(Checked, IsSilentOnTheEnginesKernels) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Options o{.seed = seed};
    std::vector<float> x(20'000, 1), y(x.size()), partial(100);
    std::vector<int> out(4096);
    std::vector<unsigned> flags(64), counts(64);
    float sum = 0;
    unsigned counter = 0, lock = 0;
    int count = 0;
    const auto silent = [&](const char* kernel, const Status& s) {
      EXPECT_TRUE(s.ok()) << s.message();
      const auto findings = take();
      EXPECT_TRUE(findings.empty()) << kernel << ", seed " << seed << ": " << told(findings);
    };
    silent("reverse", launch_of::reverse({4, 256}, o, x.data(), y.data(), 3));
    silent("warp_functions", launch_of::warp_functions({1, 96}, o, out.data()));
    silent("last_block",
           launch_of::last_block({10, 256}, o, x.data(), partial.data(), &sum, &counter, 10'000));
    silent("wait_for_lower", launch_of::wait_for_lower({64, 32}, o, flags.data(), counts.data()));
    silent("spin_lock", launch_of::spin_lock({4, 64}, o, &lock, &count));
    silent("dynamic_sum", launch_of::dynamic_sum({1, 64, 1024}, o, out.data()));
    silent("async_double_buffer", launch_of::async_double_buffer({1, 32}, o, true, x.data(), y.data(), 5));
    silent("ring", launch_of::ring({1, 64}, o, x.data(), y.data(), 11));
    silent("cluster_send",
           launch_of::cluster_send({.grid = 8, .block = 32, .cluster = 4}, o, y.data(), 5, true));
    silent("cluster_sum", launch_of::cluster_sum({.grid = 16, .block = 64, .cluster = 8}, o, y.data()));
    silent("named", launch_of::named({1, 96}, o, out.data()));
  }
}

TEST(Checked, FindsWhatABlockSentAndNobodyWaitedFor) {
  std::vector<float> y(8 * 32);
  const Status s =
      launch_of::cluster_send({.grid = 8, .block = 32, .cluster = 4}, {.seed = 3}, y.data(), 2, false);
  EXPECT_FALSE(s.ok() && take().empty()) << s.message();
}

TEST(Checked, TellsOfDeadlocksWithBothLines) {
  const Status s = launch_of::deadlock({1, 64}, {});
  EXPECT_FALSE(s.ok());
  const auto findings = take();
  ASSERT_EQ(findings.size(), 1u) << told(findings);
  EXPECT_EQ(findings[0].kind, FindingKind::kDivergentBarrier);
  EXPECT_NE(findings[0].first.line, findings[0].second.line) << findings[0].sentence;
}

// As a learner would say it, where the memory has a name.
TEST(Checked, SaysWhichThreadsOfWhichBlocksRace) {
  std::vector<float> x(8192, 1), y(8192);
  std::vector<unsigned> counter(64);
  controls().register_global(x.data(), 8192 * sizeof(float), "x");
  controls().register_global(y.data(), 8192 * sizeof(float), "y");
  (void)launch_planted(Bug::kBlocksCollide, {.grid = 2, .block = 32}, {}, x.data(), y.data(), counter.data());
  (void)launch_planted(Bug::kVolatileTail, {.grid = 2, .block = 32}, {}, x.data(), y.data(), counter.data());
  const std::string text = told(take());
  controls().forget_globals();
  EXPECT_NE(
      text.find(
          "race on y[0]: thread 0 of block 0 and thread 0 of block 1 both write it, and nothing orders"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("volatile makes no lane wait, __syncwarp() does"), std::string::npos) << text;
}
TEST(Checked, KnowsRegisteredMemory) {
  std::vector<float> x(256, 1), y(64);
  EXPECT_TRUE(launch_past_the_end({1, 64}, x.data(), y.data(), 1).ok());
  EXPECT_TRUE(take().empty());  // nothing is registered
  controls().register_global(x.data(), 64 * sizeof(float), "x");
  controls().register_global(y.data(), 64 * sizeof(float), "y");
  EXPECT_TRUE(launch_past_the_end({1, 64}, x.data(), y.data(), 0).ok());
  EXPECT_TRUE(take().empty());
  EXPECT_TRUE(launch_past_the_end({1, 64}, x.data(), y.data(), 1).ok());
  const auto findings = take();
  controls().forget_globals();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, FindingKind::kOutOfBounds);
  EXPECT_NE(std::string(findings[0].sentence)
                .find("thread 63 reads 4 bytes of global memory out of bounds, 0 bytes past the end of x"),
            std::string::npos)
      << findings[0].sentence;
}
// A far address is blamed on no range, whatever lies before it.
TEST(Checked, NamesARangeThatIsNear) {
  std::vector<float> memory(16384);
  float *const y = memory.data(), *const x = memory.data() + 4096, *const longer = memory.data() + 8192;
  const auto told_of = [&](const float* at) {
    controls().register_global(x, 64 * sizeof(float), "x");
    controls().register_global(longer, 2048 * sizeof(float), "longer");
    controls().register_global(y, sizeof(float), "y");
    EXPECT_TRUE(launch_past_the_end({1, 1}, at, y, 0).ok());
    const auto findings = take();
    controls().forget_globals();
    const std::string text = findings.empty() ? "" : findings[0].sentence;
    return text.substr(std::min(text.find("out of bounds"), text.size()));
  };
  const std::string far = "out of bounds: the address belongs to no tensor, and none is near (";
  const std::pair<const float*, std::string> cases[] = {
      {x + 63, ""},
      {x + 64, "out of bounds, 0 bytes past the end of x ("},
      {x + 64 + 1023, "out of bounds, 4092 bytes past the end of x ("},
      {x + 64 + 1024, far},
      {x - 1, "out of bounds, 4 bytes before the beginning of x ("},
      {x - 1024, "out of bounds, 4096 bytes before the beginning of x ("},
      {x - 1025, far},
      {longer - 2048, "out of bounds, 8192 bytes before the beginning of longer ("},
      {longer + 4095, "out of bounds, 8188 bytes past the end of longer ("},
      {longer + 4096, far}};
  for (const auto& [at, text] : cases) {
    const std::string said = told_of(at);
    EXPECT_EQ(said.substr(0, text.size()), text) << at - memory.data();
    EXPECT_EQ(said.empty(), text.empty()) << said;
  }
}

}  // namespace
}  // namespace rooftile::emulated::test
