#include "rooftile/harness/bench/doubts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "rooftile/harness/json_number.h"

namespace rooftile::harness {
namespace {

using nlohmann::json;

// A record of a quiet GPU has spreads up to 0.07 and copies within 3% (H200); one of a shared virtual machine
// (Zen 4) 0.26 at the median, 0.75 for one row in ten, and copies 30% apart for one in ten.
constexpr double kWideSpread = 0.5, kSlowCopy = 1.2;
constexpr double kEqual = 0.95;

bool wide(double p5, double median, double p95) {
  return p5 > 0 && median > 0 && p95 - p5 > kWideSpread * median;
}

/// Copies that should take the same time.
using CopyKey = std::tuple<double, double, std::string>;
CopyKey copy_key(const json& row) {
  const auto cache = row.is_object() ? row.find("cache") : row.end();
  return {number(row, "bytes"), number(row, "threads"),
          cache != row.end() && cache->is_string() ? cache->get<std::string>() : ""};
}

std::string in_threads(int threads) {
  return fmt::format("with {} {}", threads, threads == 1 ? "thread" : "threads");
}

struct Way {
  const char* name;
  double LevelRate::*rate;
};
constexpr Way kWays[] = {
    {"reads", &LevelRate::read_gbs}, {"writes", &LevelRate::write_gbs}, {"copies", &LevelRate::copy_gbs}};

}  // namespace

std::vector<std::string> contradictions(const std::vector<LevelRate>& levels) {
  std::vector<std::string> sentences;
  const auto compare = [&](const LevelRate& faster, const LevelRate& slower, const std::string& than) {
    for (const Way& way : kWays) {
      const double more = faster.*way.rate, less = slower.*way.rate;
      if (more > 0 && less > 0 && more < kEqual * less)
        sentences.push_back(fmt::format("{} {} {:.1f} GB/s {}, slower than {} ({:.1f})", faster.name,
                                        way.name, more, in_threads(faster.threads), than, less));
    }
  };
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const LevelRate& level = levels[i];
    const auto outer = std::find_if(levels.begin() + static_cast<std::ptrdiff_t>(i) + 1, levels.end(),
                                    [&](const LevelRate& l) { return l.threads == level.threads; });
    if (outer != levels.end()) compare(level, *outer, outer->name);
    const auto one = std::find_if(levels.begin(), levels.end(), [&](const LevelRate& l) {
      return l.name == level.name && l.threads == 1 && level.threads > 1;
    });
    if (one != levels.end()) compare(level, *one, in_threads(1));
  }
  return sentences;
}

std::vector<Doubts> doubts_of(const json& results) {
  std::map<CopyKey, double> fastest;
  for (const json& row : results)
    if (const double us = number(row, "copy_us"); us > 0) {
      double& best = fastest[copy_key(row)];
      if (best == 0 || us < best) best = us;
    }
  std::vector<Doubts> all;
  for (const json& row : results) {
    const double copy_us = number(row, "copy_us");
    all.push_back({wide(number(row, "p5_us"), number(row, "median_us"), number(row, "p95_us")),
                   wide(number(row, "copy_p5_us"), copy_us, number(row, "copy_p95_us")) ||
                       (copy_us > 0 && copy_us > kSlowCopy * fastest[copy_key(row)])});
  }
  return all;
}

void write_doubts(json& results) {
  const std::vector<Doubts> all = doubts_of(results);
  for (std::size_t i = 0; i < all.size(); ++i) {
    json& doubts = results[i]["doubts"] = json::array();
    if (all[i].spread) doubts.push_back("spread");
    if (all[i].copy) doubts.push_back("copy");
  }
}

}  // namespace rooftile::harness
