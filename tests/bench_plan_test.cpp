// Which rows a bench measures.
#include "rooftile/harness/bench/bench_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace rooftile::harness {
namespace {

constexpr std::size_t kLast = std::size_t{32} << 20;
const PlanOptions kMachine{kLast, 2, {"avx2", "baseline"}};

std::size_t count(const std::vector<BenchRow>& rows, const std::string& group) {
  return static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(), [&](const BenchRow& r) { return r.group == group; }));
}

TEST(Plan, ReportHoldsEveryOpOnceInCacheAndOnceInMemory) {
  BenchOptions options;
  options.scope = Scope::report;
  PlanOptions machine = kMachine;
  machine.isas = {"avx2"};
  const std::vector<BenchRow> rows = plan_rows(options, machine, all_specs());
  for (const Spec& spec : all_specs()) {
    const BenchCases cases = spec.bench();
    std::size_t cached = 0, memory = 0;
    for (const BenchRow& row : rows) {
      if (row.spec != &spec || row.group != "best") continue;
      ++(row.in_memory ? memory : cached);
      EXPECT_EQ(row.threads, row.in_memory ? 2 : 1) << describe(row);
      EXPECT_GE(spec.bytes(row.c), row.in_memory ? 4.0 * kLast : 1) << describe(row);
      EXPECT_TRUE(row.baselines);
    }
    EXPECT_EQ(cached, cases.cache.empty() ? 0 : 1) << spec.function;
    EXPECT_EQ(memory, cases.memory.empty() ? 0 : 1) << spec.function;
  }
  std::set<std::string> swept, climbed;
  for (const BenchRow& row : rows) {
    if (row.group == "sweep") swept.insert(row.spec->function);
    if (row.group == "ladder") climbed.insert(row.spec->function);
    EXPECT_EQ(row.rung > 0, row.group == "ladder") << describe(row);
  }
  EXPECT_GE(swept.size(), 1u);
  EXPECT_LE(swept.size(), 2u);
  EXPECT_TRUE(swept.count("softmax")) << "the speed chart shows copy and softmax";
  EXPECT_GE(climbed.size(), 1u);
  EXPECT_LE(climbed.size(), 2u);
}

TEST(Plan, LaddersGoUpwardsAndEndWithTheLibrary) {
  BenchOptions options;
  options.scope = Scope::report;
  options.functions = {"softmax"};
  const Op* op = find_op("softmax");
  ASSERT_NE(op, nullptr);
  std::vector<std::string> rungs;
  for (const Variant& v : op->variants)
    if (v.role == Role::rung) rungs.insert(rungs.begin(), v.name);
  std::vector<BenchRow> ladder;
  for (const BenchRow& row : plan_rows(options, kMachine, all_specs()))
    if (row.group == "ladder" && !row.in_memory) ladder.push_back(row);
  ASSERT_EQ(ladder.size(), rungs.size() + 2);
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    EXPECT_EQ(ladder[i].variant, rungs[i]);
    EXPECT_EQ(ladder[i].rung, static_cast<int>(i) + 1);
    EXPECT_EQ(ladder[i].threads, 1);
  }
  for (std::size_t i = rungs.size(); i < ladder.size(); ++i) {
    EXPECT_EQ(ladder[i].variant, "");
    EXPECT_EQ(ladder[i].rung, static_cast<int>(i) + 1);
  }
  EXPECT_EQ(ladder[rungs.size()].threads, 1) << "each step but the last is on one thread";
  EXPECT_EQ(ladder.back().threads, 2);

  options.threads = {1};
  std::size_t alone = 0;
  for (const BenchRow& row : plan_rows(options, kMachine, all_specs()))
    if (row.group == "ladder" && !row.in_memory) ++alone;
  EXPECT_EQ(alone, rungs.size() + 1) << "one thread is all there are";
}

TEST(Plan, ReportBeginsWithTheLadderOfSoftmax) {
  BenchOptions options;
  options.scope = Scope::report;
  const std::vector<BenchRow> rows = plan_rows(options, kMachine, all_specs());
  EXPECT_EQ(rows.front().group, "ladder");
  EXPECT_EQ(std::string(rows.front().spec->function), "softmax");
  options.variants = {"tile"};
  for (const BenchRow& row : plan_rows(options, kMachine, all_specs())) EXPECT_EQ(row.group, "full");
}

TEST(Plan, BaselinesRunBesideTheFirstOfTheVariants) {
  BenchOptions options;
  options.functions = {"softmax"};
  options.variants = {"tile", "04_accumulators"};
  std::size_t beside_tile = 0;
  for (const BenchRow& row : plan_rows(options, kMachine, all_specs())) {
    EXPECT_EQ(row.baselines, row.variant == "tile") << describe(row);
    beside_tile += row.baselines;
  }
  EXPECT_GT(beside_tile, 0u);
}

TEST(Plan, FullIsAllOfItAndTwoGibibytes) {
  BenchOptions options;
  options.scope = Scope::full;
  options.functions = {"softmax"};
  const std::vector<BenchRow> full = plan_rows(options, kMachine, all_specs());
  options.scope = Scope::standard;
  const std::vector<BenchRow> standard = plan_rows(options, kMachine, all_specs());
  EXPECT_GT(full.size(), standard.size());
  EXPECT_GT(count(full, "sweep"), 0u);
  std::set<std::string> isas, variants;
  bool cold = false;
  for (const BenchRow& row : full) {
    isas.insert(row.isa);
    variants.insert(row.variant);
    cold = cold || (row.cache == CacheState::kCold && !row.in_memory);
    const bool in_ladder = row.group == "ladder";
    EXPECT_GE(row.spec->bytes(row.c), row.in_memory && !in_ladder ? 2147483648.0 : 1) << describe(row);
  }
  EXPECT_EQ(isas.size(), 2u);
  EXPECT_TRUE(cold);
  for (const Variant& v : find_op("softmax")->variants)
    EXPECT_EQ(variants.count(v.name), v.role == Role::oracle || v.role == Role::gpu_rung ? 0 : 1) << v.name;
}

TEST(Plan, APlotHasSizesOfEveryFunction) {
  BenchOptions options;
  options.series = true;
  PlanOptions machine = kMachine;
  machine.isas = {"avx2"};
  machine.series = {4096, 67108864};
  const std::vector<BenchRow> rows = plan_rows(options, machine, all_specs());
  for (const Spec& spec : all_specs()) {
    if (spec.bench().memory.empty()) continue;  // of one size
    std::map<std::pair<DType, int>, std::vector<double>> sizes;
    for (const BenchRow& row : rows) {
      if (row.spec != &spec) continue;
      EXPECT_EQ(row.group, "sweep");
      EXPECT_EQ(row.series, "rooftile");
      EXPECT_EQ(row.variant, "");
      EXPECT_EQ(row.cache, CacheState::kWarm);
      EXPECT_TRUE(row.baselines);
      sizes[{row.c.dtype, row.threads}].push_back(spec.bytes(row.c));
    }
    const std::vector<DType> dtypes = series_dtypes(spec, options);
    EXPECT_EQ(sizes.size(), 2 * dtypes.size()) << spec.function;  // 1 thread and both
    for (const auto& [key, bytes] : sizes) {
      EXPECT_GE(bytes.size(), 10u) << spec.function << " " << name(key.first);
      EXPECT_EQ(std::adjacent_find(bytes.begin(), bytes.end(), std::greater_equal<>()), bytes.end())
          << spec.function;
      EXPECT_GE(bytes.front(), 4096 / 1.02) << spec.function;
      EXPECT_LE(bytes.front(), 65536) << spec.function;
      EXPECT_GE(bytes.back(), 67108864 / 2.5) << spec.function;
      EXPECT_LE(bytes.back(), 67108864 * 1.02) << spec.function;
      for (std::size_t i = 1; i < bytes.size(); ++i) EXPECT_LE(bytes[i], 2.6 * bytes[i - 1]) << spec.function;
    }
  }
}

TEST(Plan, APlotHasALineForEachVariantAndInstructionSet) {
  BenchOptions options;
  options.series = true;
  options.functions = {"add"};
  options.dtypes = {DType::f32, DType::f32, DType::u8};  // once, and what the op takes
  options.shapes = {{64}, {4096}};
  options.variants = {"tile", "01_scalar"};
  const auto lines = [&] {
    std::map<std::string, int> rows, beside;
    for (const BenchRow& row : plan_rows(options, kMachine, all_specs())) {
      ++rows[row.series];
      beside[row.series] += row.baselines;
      EXPECT_EQ(row.c.dtype, DType::f32);
    }
    EXPECT_EQ(std::count_if(beside.begin(), beside.end(), [](const auto& one) { return one.second > 0; }), 2)
        << "the baselines run once for each instruction set";
    return rows;
  };
  using Lines = std::map<std::string, int>;
  EXPECT_EQ(lines(), (Lines{{"rooftile tile, avx2", 4},  // two sizes, 1 thread and both
                            {"rooftile 01_scalar, avx2", 4},
                            {"rooftile tile, baseline", 4},
                            {"rooftile 01_scalar, baseline", 4}}));
  options.variants.clear();
  EXPECT_EQ(lines(), (Lines{{"rooftile, avx2", 4}, {"rooftile, baseline", 4}}));
  options.scope = Scope::full;
  const Lines all = lines();
  EXPECT_EQ(all.at("rooftile tile, avx2"), 4);
  EXPECT_EQ(all.at("rooftile 01_scalar, avx2"), 2) << "rungs run on one thread";
  EXPECT_EQ(all.count("rooftile 01_one_element, avx2"), 0u) << "a GPU's rung";
}

TEST(Plan, MemoryRowsAreScaledByTheirFirstDimension) {
  const Spec& softmax = *find_spec("softmax");
  const Case c = scale_memory(softmax, {{65536, 4096}, DType::f32, {}}, 8.0 * kLast);
  EXPECT_EQ(c.shape, (Shape{8192, 4096}));
  EXPECT_EQ(scale_memory(softmax, {{3, 1000}, DType::f32, {}}, 8e6 + 1).shape, (Shape{1001, 1000}));
}

TEST(Plan, RefusesWhatItDoesNotKnow) {
  const auto sentence = [](BenchOptions options) -> std::string {
    try {
      plan_rows(options, kMachine, all_specs());
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  BenchOptions options;
  options.functions = {"sotfmax"};
  EXPECT_NE(sentence(options).find("no op \"sotfmax\""), std::string::npos);
  options.functions = {"softmax"};
  options.variants = {"tiel"};
  EXPECT_NE(sentence(options).find("no variant \"tiel\""), std::string::npos);
  options.variants = {};
  options.shapes = {{7}};
  EXPECT_NE(sentence(options).find("rows x columns"), std::string::npos);
  options.shapes = {};
  options.threads = {0};
  EXPECT_NE(sentence(options).find("threads is 0"), std::string::npos);
  options.threads = {};
  EXPECT_EQ(sentence(options), "");
}

}  // namespace
}  // namespace rooftile::harness
