#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "rooftile/harness/drawing/axis.h"
#include "rooftile/harness/drawing/speed.h"
#include "rooftile/harness/json_number.h"

namespace rooftile::drawing {
namespace {

using harness::number;
using nlohmann::json;

std::string text(const json& row, const char* name) {
  const auto found = row.is_object() ? row.find(name) : row.end();
  return found != row.end() && found->is_string() ? found->get<std::string>() : "";
}

json part(const json& of, const char* name) {
  const auto found = of.is_object() ? of.find(name) : of.end();
  return found != of.end() ? *found : json();
}

/// "1024×512".
std::string shape_of(const json& row) {
  const json shape = part(row, "shape");
  if (shape.is_string()) return shape.get<std::string>();
  std::string all;
  for (const json& size : shape)
    if (size.is_number()) all += (all.empty() ? "" : "×") + size.dump();
  return all;
}

/// A point where `times` has a time that can be drawn.
bool point_of(const json& row, const json& times, const char* median, const char* p5, const char* p95,
              SpeedPoint& to) {
  to = {number(row, "bytes"), number(times, median), number(times, p5), number(times, p95), shape_of(row)};
  // Records come from files: nothing beyond what a machine could measure.
  return to.bytes >= 1 && to.bytes < 1e18 && to.us > 1e-6 && to.us < 1e15;
}

bool smaller(const SpeedPoint& a, const SpeedPoint& b) { return a.bytes < b.bytes; }

/// Letters that every file system takes.
std::string file_name(const std::string& name) {
  std::string out;
  for (const char c : name.substr(0, 100)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    const bool after_plain = !out.empty() && out.back() != '_';
    if (plain || (after_plain && (c == '-' || c == '.')))
      out += c;
    else if (after_plain)
      out += '_';
  }
  return out.empty() ? "plot" : out;
}

/// How much of each cache serves these threads, with what a copy reaches there; on a GPU the largest copy.
std::vector<SpeedLevel> levels_of(const json& record, int threads) {
  const json machine = part(record, "machine");
  std::vector<SpeedLevel> levels;
  for (const json& level : part(machine, "levels")) {
    if (number(level, "threads", 1) != threads || number(level, "copy_gbs") <= 0) continue;
    SpeedLevel one{text(level, "name"), 0, number(level, "copy_gbs")};
    for (const json& cache : part(machine, "caches")) {
      const double bytes = number(cache, "effective_bytes", number(cache, "bytes"));
      if (text(cache, "kind") == "instruction" || fmt::format("L{:.0f}", number(cache, "level")) != one.name)
        continue;
      one.bytes = bytes * std::ceil(threads / std::max(1., number(cache, "shared_by", 1)));
    }
    if (one.bytes > 0 || one.name == "memory") levels.push_back(one);
  }
  if (!levels.empty()) return levels;
  double most = 0;
  for (const json& run : part(record, "runs"))
    for (const json& copy : part(run, "copies"))
      if (number(copy, "bytes") > most && number(copy, "median_us") > 0) {
        most = number(copy, "bytes");
        levels = {{"memory", 0, most / number(copy, "median_us") * 1e-3}};
      }
  return levels;
}

struct Key {
  std::string op, direction, dtype, backend;
  int threads;  // 0: not said
  auto operator<=>(const Key&) const = default;
};

Key key_of(const json& row) {
  const double threads = number(row, "threads");
  return {text(row, "op"), text(row, "direction"), text(row, "dtype"), text(row, "backend"),
          threads >= 1 && threads <= 1e6 ? static_cast<int>(threads) : 0};
}

/// The chart without lines.
SpeedChart titled(const json& record, const Key& key, const std::set<std::string>& isas, bool cold) {
  SpeedChart chart;
  const bool on_cpu = key.backend.empty() || key.backend == "cpu";
  const std::string threads = std::to_string(key.threads);
  chart.name = key.op + (key.direction == "backward" ? "_backward" : "");
  chart.title = key.op + (key.direction == "backward" ? " backward" : "");
  if (!key.dtype.empty()) chart.name += "_" + key.dtype, chart.title += ", " + key.dtype;
  if (!on_cpu) chart.name += "_" + key.backend;
  if (on_cpu && key.threads > 0) {
    chart.name += "_" + threads + (key.threads == 1 ? "_thread" : "_threads");
    chart.title += ", " + threads_text(threads);
  }
  chart.name = file_name(chart.name);
  const json machine = part(record, "machine");
  chart.measured = text(machine, "gpu");
  if (on_cpu || chart.measured.empty()) chart.measured = text(machine, "cpu");
  if (chart.measured.empty()) chart.measured = "a machine without a name";
  if (const std::string date = text(record, "date").substr(0, 10); !date.empty())
    chart.measured += ", " + date;
  for (const std::string& isa : isas) chart.measured += ", " + isa;
  if (cold && key.backend != "emulated") chart.measured += ", caches flushed before each call";
  if (key.backend != "emulated") chart.levels = levels_of(record, key.threads);
  return chart;
}

}  // namespace

json series_of(const json& record) {
  json series = json::array();
  for (const json& row : part(record, "results"))
    if (text(row, "group") == "sweep") series.push_back(row);
  return series;
}

std::vector<SpeedChart> speed_charts(const json& record, const json& results) {
  std::vector<std::string> names;  // of all pictures: a line has one colour in all
  std::vector<Key> keys;
  for (const json& row : results)
    if (const Key key = key_of(row); std::find(keys.begin(), keys.end(), key) == keys.end())
      keys.push_back(key);
  std::vector<SpeedChart> charts;
  std::set<std::string> files;
  for (const Key& key : keys) {
    std::vector<SpeedLine> lines;
    std::vector<SpeedPoint> copy;
    std::set<std::string> isas;
    std::set<double> sizes;
    bool cold = false;
    const auto add = [&](const std::string& name, const SpeedPoint& point) {
      auto line =
          std::find_if(lines.begin(), lines.end(), [&](const SpeedLine& l) { return l.name == name; });
      if (line == lines.end()) {
        const auto known = std::find(names.begin(), names.end(), name);
        const auto place = static_cast<std::size_t>(known - names.begin());
        if (known == names.end()) names.push_back(name);
        line = lines.insert(lines.end(), {name, place, {}});
      }
      line->points.push_back(point);
      sizes.insert(point.bytes);
    };
    SpeedPoint point{};
    for (const json& row : results) {
      if (key_of(row) != key) continue;
      const std::string series = text(row, "series");
      if (point_of(row, row, "median_us", "p5_us", "p95_us", point))
        add(series.empty() ? "rooftile" : series, point);
      for (const json& peer : part(row, "peers"))
        if (!text(peer, "name").empty() && point_of(row, peer, "median_us", "p5_us", "p95_us", point))
          add(text(peer, "name"), point);
      const bool seen = std::any_of(copy.begin(), copy.end(),
                                    [&](const auto& p) { return p.bytes == number(row, "bytes"); });
      if (!seen && point_of(row, row, "copy_us", "copy_p5_us", "copy_p95_us", point)) copy.push_back(point);
      if (!text(row, "isa").empty()) isas.insert(text(row, "isa"));
      cold = cold || text(row, "cache") == "cold";
    }
    if (sizes.size() < 2) continue;
    SpeedChart chart = titled(record, key, isas, cold);
    for (SpeedLine& line : lines) std::stable_sort(line.points.begin(), line.points.end(), smaller);
    std::stable_sort(copy.begin(), copy.end(), smaller);
    chart.lines = std::move(lines);
    chart.copy = std::move(copy);
    const std::string name = chart.name;
    for (int again = 2; !files.insert(chart.name).second; ++again)
      chart.name = fmt::format("{}_{}", name, again);
    charts.push_back(std::move(chart));
  }
  return charts;
}

}  // namespace rooftile::drawing
