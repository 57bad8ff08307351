// ncu's CSV: tests/data/ncu_raw_by_hand.csv was written by hand after ncu's documentation, no GPU was
// measured; tests/data/ncu_raw_h200.csv is what ncu wrote on an H200 for `rooftile profile softmax --shape
// 8192x4096
// --dtype bf16 --csv FILE`.
#include "rooftile/harness/bench/ncu.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace rooftile::harness {
namespace {

std::string read(const char* name) {
  std::ifstream file(std::string(ROOFTILE_SOURCE_DIR "/tests/data/") + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}
std::string by_hand() { return read("ncu_raw_by_hand.csv"); }

TEST(Ncu, ReadsALineForEachLaunch) {
  const std::vector<NcuKernel> kernels = parse_ncu(by_hand());
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].name, "void dot_chunks<float, true>(DotProblem, bool, long, double *)");
  EXPECT_EQ(kernels[0].grid, "(1024, 1, 1)");
  EXPECT_EQ(kernels[0].block, "(256, 1, 1)");
  EXPECT_EQ(kernels[0].value("gpu__time_duration.sum"), 20000);
  EXPECT_EQ(kernels[0].value("dram__bytes_read.sum"), 1048576);
  EXPECT_EQ(kernels[0].ratio("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
                             "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"),
            4);
  EXPECT_EQ(kernels[0].value("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"), 7936);
  EXPECT_EQ(kernels[1].value("launch__registers_per_thread"), 32);
  EXPECT_EQ(kernels[1].value("sm__inst_issued.avg.pct_of_peak_sustained_active"), 1.25);
}
TEST(Ncu, ReadsWhatItWroteOnAGpu) {
  const std::vector<NcuKernel> kernels = parse_ncu(read("ncu_raw_h200.csv"));
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].grid, "(8192, 1, 1)");
  EXPECT_EQ(kernels[0].block, "(128, 1, 1)");
  EXPECT_EQ(kernels[0].value("gpu__time_duration.sum"), 36800);
  EXPECT_EQ(kernels[0].ratio("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
                             "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"),
            16);
  EXPECT_EQ(kernels[0].value("launch__registers_per_thread"), 64);
  EXPECT_EQ(ncu_limiter(kernels[0]), "registers");
  EXPECT_EQ(ncu_stalls(kernels[0]).at(0).first, "long scoreboard");
}
TEST(Ncu, TellsWaitsAndWhatLimitsOccupancy) {
  const std::vector<NcuKernel> kernels = parse_ncu(by_hand());
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(ncu_limiter(kernels[0]), "registers");
  EXPECT_EQ(ncu_limiter(kernels[1]), "warps");
  using Stalls = std::vector<std::pair<std::string, double>>;
  EXPECT_EQ(ncu_stalls(kernels[0]),
            (Stalls{{"long scoreboard", 9.75}, {"wait", 2}, {"barrier", 0.5}, {"not selected", 0.25}}));
  EXPECT_EQ(ncu_stalls(kernels[1]), (Stalls{{"long scoreboard", 30.5}, {"wait", 3.5}}));
  EXPECT_EQ(ncu_limiter({}), "");
}
TEST(Ncu, LeavesOutWhatHasNoValue) {
  const NcuKernel kernel = parse_ncu(by_hand()).at(0);
  EXPECT_FALSE(kernel.has("smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio"));
  EXPECT_FALSE(kernel.has("no__such.metric"));
}
TEST(Ncu, AsksForEveryMetricThatTheFileHolds) {
  const std::vector<std::string> asked = ncu_metrics();
  for (const NcuKernel& kernel : parse_ncu(by_hand()))
    for (const auto& [metric, value] : kernel.values)
      EXPECT_NE(std::find(asked.begin(), asked.end(), metric), asked.end()) << metric;
}
TEST(Ncu, ReadsUnitsAndTheOtherPage) {
  const std::vector<NcuKernel> wide = parse_ncu(
      "noise\n\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\",\"dram__bytes_read.sum\"\n"
      "\"\",\"\",\"usecond\",\"Mbyte\"\n\"0\",\"k \"\"a\"\", b\",\"1.5\",\"2\"\n");
  ASSERT_EQ(wide.size(), 1u);
  EXPECT_EQ(wide[0].name, "k \"a\", b");
  EXPECT_EQ(wide[0].value("gpu__time_duration.sum"), 1500);
  EXPECT_EQ(wide[0].value("dram__bytes_read.sum"), 2e6);
  const std::vector<NcuKernel> tall = parse_ncu(
      "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"
      "\"0\",\"a\",\"gpu__time_duration.sum\",\"ns\",\"1,000\"\n\"0\",\"a\",\"launch__grid_size\",\"\","
      "\"7\"\n"
      "\"1\",\"b\",\"gpu__time_duration.sum\",\"ns\",\"5\"\n");
  ASSERT_EQ(tall.size(), 2u);
  EXPECT_EQ(tall[0].value("gpu__time_duration.sum"), 1000);
  EXPECT_EQ(tall[0].value("launch__grid_size"), 7);
  EXPECT_EQ(tall[1].value("gpu__time_duration.sum"), 5);
}
TEST(Ncu, FindsNoTableInOtherText) {
  for (const char* text :
       {"", "\n", "==PROF== nothing", "\"ID\"", "\"ID\",\"Kernel Name\"\n", "\"0\",\"x\"\n"})
    EXPECT_TRUE(parse_ncu(text).empty()) << text;
  // A line cut short has what it has.
  EXPECT_EQ(
      parse_ncu("\"ID\",\"Kernel Name\",\"a__b.sum\",\"c__d.sum\"\n\"0\",\"k\",\"1\"").at(0).values.size(),
      1u);
}
TEST(Ncu, TellsWhyItFailed) {
  EXPECT_EQ(ncu_error("==PROF== a\n==ERROR== ERR_NVGPUCTRPERM - no permission\n==ERROR== later\n"),
            "ERR_NVGPUCTRPERM - no permission");
  EXPECT_EQ(ncu_error("rooftile: softmax: x is 2x3\n==ERROR== The application returned an error code (3).\n"),
            "softmax: x is 2x3");
  EXPECT_EQ(ncu_error("all is well"), "");
}

}  // namespace
}  // namespace rooftile::harness
