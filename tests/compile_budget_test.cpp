// What an op costs to compile for one instruction set: its kernels, rungs, oracle, cases and validation; for
// the emulated device, plain or checked, and by nvcc, for one architecture of GPUs: its kernels and rungs; as
// scripts/compile_seconds.sh recorded it while the build compiled them. Nothing is compiled here.
//
// Core-seconds are those of the machine that the budget was written on (Zen 4, 2.6 GHz, g++ 12.2). There
// compile_reference.cpp takes kReferenceSeconds; the same build compiled it three times, and where that took
// twice as long, each op may, too. So the machine's speed and its load cancel, and an op's growth does not:
// the two came apart by up to a tenth when two other builds ran beside this one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rooftile/core/op.h"
#include "rooftile/harness/spec.h"

namespace rooftile::harness {
namespace {

constexpr double kAverageBudget = 5, kReferenceSeconds = 1.0;
/// Times the average, of one op.
constexpr double kOpBudget = 4;
/// nvcc's, for one architecture.
constexpr double kCudaBudget = 25;
/// Of the emulated device, which a build has twice.
constexpr double kEmulatedBudget = 10;
double budget_of(const std::string& isa) {
  return isa == "cuda" ? kCudaBudget : isa.starts_with("emulated") ? kEmulatedBudget : kAverageBudget;
}

using Seconds = std::map<std::string, double>;

/// The sentences that say where `isa` takes more than `most`, on average, or kOpBudget times that; empty:
/// nowhere.
std::string over_budget(const std::string& isa, const Seconds& ops, double most = kAverageBudget) {
  char line[512];
  std::string text, all;
  double sum = 0;
  for (const auto& [op, seconds] : ops) {
    sum += seconds;
    std::snprintf(line, sizeof line, "%s%s %.1f", all.empty() ? "" : ", ", op.c_str(), seconds);
    all += line;
    if (seconds <= kOpBudget * most) continue;
    std::snprintf(line, sizeof line,
                  "%s takes %.1f core-seconds to compile for %s; no op may take more than %.0f\n", op.c_str(),
                  seconds, isa.c_str(), kOpBudget * most);
    text += line;
  }
  const double average = ops.empty() ? 0 : sum / static_cast<double>(ops.size());
  if (average > most) {
    std::snprintf(line, sizeof line,
                  "an op takes %.1f core-seconds on average to compile for %s; it may take %.0f: ", average,
                  isa.c_str(), most);
    text += line + all + "\n";
  }
  return text;
}

/// The names of each folder's ops, a forward and its backward being one.
std::map<std::string, std::set<std::string>> folders() {
  std::map<std::string, std::set<std::string>> names;
  for (const Spec& spec : all_specs())
    if (const Op* op = find_op(spec.function)) names[spec.folder].insert(op->name);
  return names;
}

/// What the launcher wrote beside an object; negative: nothing; kCached: a compiler cache had it.
constexpr double kCached = 1e9;
double recorded(const std::string& object) {
  std::ifstream file(object + ".seconds");
  std::string user, system;
  if (file >> user && user == "cached") return kCached;
  file.seekg(0);
  if (!(file >> user >> system)) return -1;
  for (std::string* text : {&user, &system})
    if (const auto comma = text->find(','); comma != std::string::npos) (*text)[comma] = '.';
  return std::stod(user) + std::stod(system);
}

/// rooftile/ops/<folder>/…, or generated from there: folder; empty for other objects.
std::string folder_of(const std::string& object) {
  const std::string place = "/ops/";
  const auto target = object.find(".dir/");
  const auto at = target == std::string::npos ? target : object.find(place, target);
  if (at == std::string::npos) return "";
  const auto begin = at + place.size();
  return object.substr(begin, object.find('/', begin) - begin);
}

/// The headers that an object's target reads precompiled; they are no object of the target's.
double precompiled(const std::string& object) {
  const std::string headers = object.substr(0, object.find(".dir/") + 5) + "cmake_pch.hxx.";
  return std::max(0., std::max(recorded(headers + "gch"), recorded(headers + "pch")));
}

TEST(CompileBudget, SaysWhichOpIsOver) {
  EXPECT_EQ(over_budget("cpu-avx2", {{"add", 2}, {"softmax", 8}}), "");
  EXPECT_EQ(over_budget("cpu-avx2", {{"add", 2}, {"softmax", 8.4}}),
            "an op takes 5.2 core-seconds on average to compile for cpu-avx2; it may take 5: add 2.0, "
            "softmax 8.4\n");
  EXPECT_EQ(over_budget("cpu-avx2", {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"softmax", 20.5}}),
            "softmax takes 20.5 core-seconds to compile for cpu-avx2; no op may take more than 20\n");
  EXPECT_EQ(over_budget("cuda", {{"add", 2}, {"softmax", 48}}, kCudaBudget), "");
  EXPECT_EQ(over_budget("cuda", {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"softmax", 101}}, kCudaBudget),
            "softmax takes 101.0 core-seconds to compile for cuda; no op may take more than 100\n");
}

TEST(CompileBudget, EveryOpHasAFolder) {
  std::set<std::string> known;
  for (const auto& [folder, ops] : folders()) {
    EXPECT_FALSE(folder.empty());
    known.insert(ops.begin(), ops.end());
  }
  for (const Op* op : all_ops()) EXPECT_TRUE(known.count(op->name)) << op->name << " has no cases";
}

TEST(CompileBudget, Holds) {
  if (!ROOFTILE_TEST_BUDGET) GTEST_SKIP() << "not a release build";
  double reference = 0, references = 0, cases = 0;
  Seconds validation;                      // by folder
  std::map<std::string, Seconds> kernels;  // by ISA and folder; "" is shared by all ops
  std::ifstream manifest(ROOFTILE_TEST_OBJECTS);
  for (std::string kind, object; manifest >> kind && std::getline(manifest >> std::ws, object);) {
    object = std::filesystem::path(object).lexically_normal().string();  // CMake 3.25 writes x.dir/./y.o
    const bool cuda = kind == "rooftile-cuda", gpu = cuda || kind.starts_with("rooftile-emulated");
    if (gpu && (folder_of(object).empty() || !object.ends_with(".cu.o"))) continue;
    const double seconds = recorded(object);
    if (std::max(seconds, gpu ? 0 : precompiled(object)) >= kCached)
      GTEST_SKIP() << object << " is from a compiler cache, like others perhaps";
    ASSERT_GE(seconds, 0) << object << " has no record of its compile; build it again";
    if (kind == "reference") {
      reference += seconds;
      references += 1;
    } else if (kind == "library") {
      validation[folder_of(object)] += seconds;
    } else if (kind == "harness") {
      if (object.find("/generated/cases/") != std::string::npos) cases += seconds;
    } else {
      Seconds& isa = kernels[kind.substr(std::string("rooftile-").size())];
      if (isa.empty()) isa[""] = gpu ? 0 : precompiled(object);
      isa[folder_of(object)] += seconds / (cuda ? std::max(1, ROOFTILE_TEST_ARCHITECTURES) : 1);
    }
  }
  ASSERT_GT(reference, 0);
  ASSERT_GT(cases, 0);
  ASSERT_FALSE(kernels.empty());
  const double pace = kReferenceSeconds * references / reference;

  const auto names = folders();
  double count = 0;
  for (const auto& [folder, ops] : names) count += static_cast<double>(ops.size());
  for (auto& [isa, seconds] : kernels) {
    Seconds each;
    for (const auto& [folder, ops] : names) {
      const bool gpu = budget_of(isa) != kAverageBudget;
      // A folder may have no kernels for GPUs, or share the objects of another's, and so its budget.
      const auto its = seconds.find(folder);
      if (its == seconds.end()) continue;
      ASSERT_GT(its->second, 0) << folder;
      double own = its->second / static_cast<double>(ops.size());
      if (!gpu) own += validation[folder] / static_cast<double>(ops.size()) + (cases + seconds[""]) / count;
      for (const std::string& op : ops) each[op] = pace * own;
    }
    EXPECT_GT(each.size(), count / 2) << isa << ": few folders have a record of their compile";
    double sum = 0;
    std::printf("%s:", isa.c_str());
    for (const auto& [op, s] : each) {
      std::printf(" %s %.1f", op.c_str(), s);
      sum += s;
    }
    std::printf("; average %.2f core-seconds (measured ones times %.2f)\n",
                sum / static_cast<double>(each.size()), pace);
    const std::string over = over_budget(isa, each, budget_of(isa));
    EXPECT_TRUE(over.empty()) << over;
  }
}

}  // namespace
}  // namespace rooftile::harness
