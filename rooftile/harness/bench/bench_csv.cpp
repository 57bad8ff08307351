#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "rooftile/harness/bench/bench.h"

namespace rooftile::harness {
namespace {

using nlohmann::json;

constexpr const char* kColumns[] = {"op",         "direction",   "variant",         "backend",    "isa",
                                    "dtype",      "shape",       "layout",          "threads",    "cache",
                                    "n",          "median_us",   "p5_us",           "p95_us",     "floor_us",
                                    "bytes",      "flops",       "workspace_bytes", "peak_bytes", "copy_us",
                                    "copy_p5_us", "copy_p95_us", "limit_us",        "limit",      "of_limit",
                                    "clock_mhz",  "power_w",     "throttled",       "group",      "rung"};

std::string cell(const json& value) {
  if (value.is_null()) return "";
  if (value.is_array()) {  // a shape
    std::string sizes;
    for (const json& size : value) sizes += (sizes.empty() ? "" : "x") + size.dump();
    return sizes;
  }
  if (value.is_number_float() && value.get<double>() == std::int64_t(value.get<double>()))
    return fmt::format("{:.0f}", value.get<double>());
  if (!value.is_string()) return value.dump();
  std::string text = value.get<std::string>();
  // A spreadsheet runs what begins like a formula.
  if (!text.empty() && std::string_view("=+-@").find(text[0]) != std::string_view::npos) text.insert(0, "'");
  if (text.find_first_of(",\"\n\r") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string to_csv(const json& record) {
  const json none = json::array();
  const json& results = record.contains("results") ? record["results"] : none;
  std::vector<std::string> baselines;
  for (const json& result : results)
    for (const json& baseline : result.value("peers", none))
      if (const std::string name = baseline.value("name", "");
          std::find(baselines.begin(), baselines.end(), name) == baselines.end())
        baselines.push_back(name);

  std::string out = fmt::format("{}", fmt::join(kColumns, ","));
  for (const std::string& baseline : baselines) out += "," + cell(baseline + "_us");
  out += "\n";
  for (const json& result : results) {
    std::string line;
    for (const char* column : kColumns)
      line += (column == kColumns[0] ? "" : ",") + cell(result.contains(column) ? result[column] : json());
    for (const std::string& name : baselines) {
      line += ",";
      for (const json& baseline : result.value("peers", none))
        if (baseline.value("name", "") == name) line += cell(baseline.value("median_us", json()));
    }
    out += line + "\n";
  }
  return out;
}

}  // namespace rooftile::harness
