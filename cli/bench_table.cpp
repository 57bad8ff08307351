#include "cli/bench_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/record.h"
#include "cli/table.h"
#include "rooftile/harness/bench/doubts.h"

namespace rooftile::cli {
namespace {

using Json = nlohmann::json;

std::string microseconds(double us) {
  return us < 100      ? fmt::format("{:.2f}", us)
         : us < 10'000 ? fmt::format("{:.1f}", us)
                       : fmt::format("{:.0f}", us);
}

std::string ratio(double above, double below) {
  return above > 0 && below > 0 ? fmt::format("{:.2f}", above / below) : "";
}

std::string baselines(const Json& row) {
  const double us = number(row, "median_us");
  std::string all;
  for (const Json& baseline : row.value("peers", Json::array()))
    if (const std::string times = ratio(number(baseline, "median_us"), us); !times.empty()) {
      all += (all.empty() ? "" : ", ") + text(baseline, "name") + " " + times;
      if (const double of_copy = number(baseline, "of_copy"); of_copy > 0)
        all += fmt::format(" ({:.0f}%)", 100 * of_copy);
    }
  return all;
}

/// A row's parameters, where another row of its function has others: "turned=2".
std::string parameters(const Json& row, const Json& results) {
  const auto of = [](const Json& r) { return r.value("parameters", Json::object()); };
  const Json its = of(row);
  const bool differ = std::any_of(results.begin(), results.end(), [&](const Json& r) {
    return text(r, "op") == text(row, "op") && text(r, "direction") == text(row, "direction") && of(r) != its;
  });
  std::string all;
  for (const auto& item : its.items())
    if (differ)
      all += fmt::format("{}{}={:g}", all.empty() ? "" : " ", item.key(), number(its, item.key().c_str()));
  return all;
}

std::vector<harness::LevelRate> levels_of(const Json& record) {
  std::vector<harness::LevelRate> levels;
  for (const Json& level : record.value("machine", Json::object()).value("levels", Json::array()))
    levels.push_back({text(level, "name"), 0, static_cast<int>(number(level, "threads", 1)),
                      number(level, "read_gbs"), number(level, "write_gbs"), number(level, "copy_gbs"), "",
                      "", ""});
  return levels;
}

}  // namespace

std::string contradictions_text(const std::vector<harness::LevelRate>& levels) {
  const std::vector<std::string> sentences = harness::contradictions(levels);
  if (sentences.empty()) return "";
  return fmt::format("{}\n  {}\n{}\n", harness::kContradictions, fmt::join(sentences, "\n  "),
                     harness::kContradictionsAdvice);
}

std::string bench_table(const Json& record) {
  const Json results = record.value("results", Json::array());
  Table table({"op", "variant", "isa", "shape", "dtype", "layout", "with", ">threads", "cache", ">µs", ">5%",
               ">95%", "", ">GB/s", ">of copy", ">of limit", "limit", "", "baselines (their time / ours)"});
  bool one_isa = true, spread = false, copy = false;
  for (const Json& r : results) one_isa = one_isa && text(r, "isa") == text(results.front(), "isa");
  const std::vector<harness::Doubts> doubts = harness::doubts_of(results);
  for (std::size_t i = 0; i < doubts.size(); ++i) {
    const Json& r = results[i];
    const double us = number(r, "median_us"), of_limit = number(r, "of_limit");
    harness::Shape shape;
    for (const Json& size : r.value("shape", Json::array())) shape.push_back(size.get<std::int64_t>());
    const std::string layout = text(r, "layout");
    spread = spread || doubts[i].spread;
    copy = copy || doubts[i].copy;
    table.add({text(r, "op") + (text(r, "direction") == "backward" ? " backward" : ""), text(r, "variant"),
               one_isa ? "" : text(r, "isa"), to_text(shape), text(r, "dtype"),
               layout == "contiguous" ? "" : layout, parameters(r, results),
               fmt::format("{:.0f}", number(r, "threads", 1)), text(r, "cache"), microseconds(us),
               microseconds(number(r, "p5_us")), microseconds(number(r, "p95_us")),
               std::string(doubts[i].spread ? "~" : "") + (doubts[i].copy ? "c" : ""),
               us > 0 ? fmt::format("{:.1f}", number(r, "bytes") / us / 1e3) : "",
               ratio(number(r, "copy_us"), us), of_limit > 0 ? fmt::format("{:.2f}", of_limit) : "",
               text(r, "limit"), r.value("throttled", Json()) == true ? "throttled" : "", baselines(r)});
  }
  std::string out = table.text();
  if (spread) out += fmt::format("~ {}\n", harness::kSpreadDoubt);
  if (copy) out += fmt::format("c {}\n", harness::kCopyDoubt);
  return out + contradictions_text(levels_of(record));
}

}  // namespace rooftile::cli
