// Charts of a machine and of what was measured on it, from a bench record:
//   levels    the copy rate of each level of memory: record=FILE.json threads=N
//   sizes     speed against size, as `rooftile bench --plot` draws it: record=FILE.json and filters
//   roofline  the machine's roofs and a mark for each record: record=FILE.json and filters with threads=N
//   memory    by how much it grows with the length, a line for each "form": record=FILE.json and filters
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rooftile/harness/drawing/speed.h"
#include "tools/docs_figures.h"

namespace docs {
namespace {

using nlohmann::json;
using rooftile::drawing::bytes_text;
using rooftile::drawing::Scale;
using rooftile::drawing::threads_text;
constexpr double kWidth = 720, kRight = 16;

/// The record's file; where it was given none, or holds no `results` and `machine`, a sentence.
std::string open(const Repository& repository, const Settings& settings, json& document) {
  const std::string file = setting(settings, "record");
  if (file.empty()) return "a chart needs record=FILE.json";
  document = document_of(repository, "bench/" + file);
  if (!document.is_object() || !document.contains("results") || !document.contains("machine"))
    return "bench/" + file + " is no bench file with a machine";
  return "";
}

/// And its records, each with the numbers that the chart shows.
template <class... Keys>
std::string open(const Repository& repository, const Settings& settings, json& document,
                 std::vector<json>& records, Keys... keys) {
  if (const std::string error = open(repository, settings, document); !error.empty()) return error;
  Settings filters = settings;
  filters.erase("record");
  if (const std::string error = select(document["results"], filters, records); !error.empty()) return error;
  for (const json& record : records)
    for (const char* key : {keys...})
      if (number(record, key) <= 0) return fmt::format("a record has no {}", key);
  return "";
}

/// The machine's levels as measured with so many threads.
std::vector<json> levels_of(const json& document, const std::string& threads) {
  std::vector<json> levels;
  for (const json& level : document["machine"].value("levels", json::array()))
    if (text_of(level.value("threads", json())) == threads && number(level, "copy_gbs") > 0)
      levels.push_back(level);
  return levels;
}

/// The size of a level, "L1" or "memory"; `key` is "bytes", as reported, or "effective_bytes", as measured.
double size_of(const json& document, const std::string& level, const char* key) {
  const json& machine = document["machine"];
  if (level == "memory") return number(machine, "memory_bytes");
  for (const json& cache : machine.value("caches", json::array()))
    if (cache.value("kind", "") != "instruction" && "L" + text_of(cache.value("level", json())) == level)
      return number(cache, key);
  return 0;
}

/// The distinct ops of the records, in their order.
std::vector<std::string> ops_of(const std::vector<json>& records) {
  std::vector<std::string> ops;
  for (const json& record : records)
    if (std::find(ops.begin(), ops.end(), record.value("op", "")) == ops.end())
      ops.push_back(record.value("op", ""));
  return ops;
}

}  // namespace

std::string draw_levels(const Repository& repository, const Settings& settings, Figure& figure) {
  json document;
  if (const std::string error = open(repository, settings, document); !error.empty()) return error;
  const std::string threads = setting(settings, "threads");
  const std::vector<json> levels = levels_of(document, threads);
  if (levels.empty()) return "the record has no levels with threads=" + threads;
  constexpr double kLabels = 150, kRow = 34, kTop = 34;
  double most = 0;
  for (const json& level : levels) most = std::max(most, number(level, "copy_gbs"));
  const double unit = (kWidth - kLabels - 90) / most, bottom = kTop + kRow * double(levels.size());
  Svg svg(kWidth, bottom + 26);
  const std::string title = fmt::format("What {} can copy in each level of memory", threads_text(threads));
  svg.text(8, 20, title, "start", 14);
  std::string alternative = title;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const std::string name = levels[i].value("name", "");
    const double gbs = number(levels[i], "copy_gbs"), y = kTop + kRow * double(i);
    const std::string label = name + ", " + bytes_text(size_of(document, name, "bytes"));
    const std::string rate = three_digits(gbs) + " GB/s";
    svg.text(kLabels - 8, y + 20, label, "end");
    svg.rect(kLabels, y + 6, std::max(1., unit * gbs), kRow - 12, "main");
    svg.text(kLabels + unit * gbs + 6, y + 20, rate, "start", 12);
    alternative += fmt::format("{} {} {}", i ? ";" : ":", label, rate);
  }
  svg.text(8, bottom + 18,
           "Measured: " + machine_of(document) + ". A copy's bytes count twice: read, and written.", "start",
           11);
  figure = {svg.file(title, alternative + "."), alternative + ".", {}};
  return "";
}

std::string draw_sizes(const Repository& repository, const Settings& settings, Figure& figure) {
  json document;
  std::vector<json> records;
  if (const std::string error = open(repository, settings, document, records, "median_us", "bytes");
      !error.empty())
    return error;
  const auto charts = rooftile::drawing::speed_charts(document, records);
  if (charts.empty()) return "sizes needs records of several sizes";
  if (charts.size() > 1)
    return fmt::format("sizes draws one function, dtype and number of threads; the filters let {} through",
                       charts.size());
  const rooftile::drawing::Picture picture = draw(charts.front());
  figure = {picture.svg, picture.alternative, {}};
  return "";
}

std::string draw_roofline(const Repository& repository, const Settings& settings, Figure& figure) {
  json document;
  std::vector<json> records;
  if (const std::string error = open(repository, settings, document, records, "median_us", "bytes");
      !error.empty())
    return error;
  const std::string threads = setting(settings, "threads"), dtype = setting(settings, "dtype");
  const std::vector<json> levels = levels_of(document, threads);
  double peak = 0;
  for (const json& one : document["machine"].value("peaks", json::array()))
    if (one.value("name", "") == "fma" && one.value("dtype", "") == dtype &&
        text_of(one.value("threads", json())) == threads)
      peak = std::max(peak, number(one, "gflops"));
  if (levels.empty() || peak <= 0) return "a roofline needs threads=N dtype=D that the machine's roofs have";
  for (const json& record : records)
    if (number(record, "flops") <= 0) return "a roofline has no place for a kernel without flops";

  constexpr double kLeft = 56, kTop = 36, kBottom = 330;
  const Scale x{1. / 16, 16, kLeft, kWidth - kRight},
      y{1, std::exp2(std::ceil(std::log2(peak)) + 1), kBottom, kTop};
  Svg svg(kWidth, kBottom + 76);
  for (double value = 1; value <= y.high; value *= 4) {
    svg.line(kLeft, y.at(value), kWidth - kRight, y.at(value), "soft");
    svg.text(kLeft - 6, y.at(value) + 4, fmt::format("{:.0f}", value), "end", 11);
  }
  for (double value = x.low; value <= x.high; value *= 4)
    svg.text(x.at(value), kBottom + 16,
             value < 1 ? fmt::format("1/{:.0f}", 1 / value) : fmt::format("{:.0f}", value), "middle", 11);
  svg.text(kWidth - kRight, kBottom + 32, "flops per byte", "end", 12);
  svg.text(kLeft, kTop - 12, "GFLOP/s", "start", 12);
  double first_ridge = x.high;
  for (const json& level : levels) first_ridge = std::min(first_ridge, peak / number(level, "copy_gbs"));
  svg.line(x.at(first_ridge), y.at(peak), kWidth - kRight, y.at(peak), "ink");
  svg.text(kWidth - kRight, y.at(peak) - 26,
           fmt::format("{} multiply-adds: {} GFLOP/s", dtype, three_digits(peak)), "end", 12);
  std::string alternative;
  for (const json& level : levels) {
    const double gbs = number(level, "copy_gbs"), ridge = peak / gbs, begin = std::max(x.low, y.low / gbs);
    const std::string name = level.value("name", "");
    svg.line(x.at(begin), y.at(begin * gbs), x.at(ridge), y.at(peak), name == "memory" ? "warn" : "ink");
    svg.text(x.at(ridge), y.at(peak) - 8, name, name == "L2" ? "end" : name == "L3" ? "start" : "middle", 11);
    if (name != "memory") continue;
    svg.line(x.at(ridge), y.at(peak), x.at(ridge), kBottom, "ink", true);
    svg.text(x.at(ridge) + 6, kBottom - 8, fmt::format("memory's ridge: {:.2g}", ridge), "start", 11);
    alternative = fmt::format(
        "Roofline of {}: from memory {} GB/s, at most {} GFLOP/s in {}; the ridge is at {:.2g} flops per "
        "byte.",
        threads_text(threads), three_digits(gbs), three_digits(peak), dtype, ridge);
  }
  double last = 0;  // where the last op's name stands, so that no two of them cross
  for (const std::string& op : ops_of(records)) {
    double low = 1e300, high = 0, intensity = 0;
    for (const json& record : records) {
      if (record.value("op", "") != op) continue;
      intensity = number(record, "flops") / number(record, "bytes");
      const double gflops = number(record, "flops") / number(record, "median_us") / 1e3;
      if (intensity < x.low || intensity > x.high || gflops < y.low)
        return "a mark is off the roofline's axes";
      low = std::min(low, gflops), high = std::max(high, gflops);
      svg.circle(x.at(intensity), y.at(gflops), 5, record.value("cache", "") == "cold" ? "warn" : "main");
    }
    const double at = x.at(intensity);
    svg.text(at, kBottom + (std::abs(at - last) < 70 ? 46 : 32), op, "middle", 12);
    last = at;
    alternative += fmt::format(" {}: {:.3g} flops per byte, {}{} GFLOP/s.", op, intensity,
                               low < high ? three_digits(low) + " to " : "", three_digits(high));
  }
  svg.text(8, kBottom + 66,
           "Measured: " + machine_of(document) + ", " + threads_text(threads) +
               ". Orange: from memory; blue: data in a cache.",
           "start", 11);
  figure = {svg.file("Roofline", alternative), alternative, {}};
  return "";
}

std::string draw_memory(const Repository& repository, const Settings& settings, Figure& figure) {
  json document;
  std::vector<json> records;
  if (const std::string error = open(repository, settings, document, records, "mib"); !error.empty())
    return error;
  std::vector<std::string> forms;
  double low = 1e300, high = 0, shortest = 1e300, longest = 0;
  for (const json& record : records) {
    const std::string form = record.value("form", "");
    if (std::find(forms.begin(), forms.end(), form) == forms.end()) forms.push_back(form);
    low = std::min(low, number(record, "mib")), high = std::max(high, number(record, "mib"));
    shortest = std::min(shortest, number(record, "length"));
    longest = std::max(longest, number(record, "length"));
  }
  if (forms.size() > 3 || shortest == longest) return "memory draws up to three forms, of several lengths";

  constexpr double kLeft = 64, kTop = 66, kBottom = 300, kNames = 130;
  const Scale x{shortest, longest, kLeft + 8, kWidth - kNames},
      y{std::exp2(std::floor(std::log2(low))), std::exp2(std::ceil(std::log2(high))), kBottom, kTop};
  Svg svg(kWidth, kBottom + 62);
  const std::string title = fmt::format("{}, {}, {}: memory against length", records[0].value("op", ""),
                                        records[0].value("direction", ""), records[0].value("dtype", ""));
  svg.text(8, 20, title, "start", 14);
  svg.text(kLeft - 6, kTop - 16, "MiB", "end", 11);
  for (double mib = y.low; mib <= y.high; mib *= 16) {
    svg.line(kLeft, y.at(mib), kWidth - kNames, y.at(mib), "soft");
    svg.text(kLeft - 6, y.at(mib) + 4, fmt::format("{:g}", mib), "end", 11);
  }
  for (double length = shortest; length <= longest; length *= 4)
    svg.text(x.at(length), kBottom + 17, fmt::format("{:g}", length), "middle", 11);
  svg.text(kWidth - kNames, kBottom + 34, "queries, and as many keys", "end", 12);
  std::string alternative = title + ".";
  const char* const colors[] = {"warn", "main", "other"};
  for (std::size_t i = 0; i < forms.size(); ++i) {
    std::vector<std::pair<double, double>> points;
    alternative += (i ? "; " : " ") + forms[i] + ":";
    for (const json& record : records) {
      if (record.value("form", "") != forms[i]) continue;
      const double length = number(record, "length"), mib = number(record, "mib");
      alternative += fmt::format("{} {} MiB at {:g}", points.empty() ? "" : ",", three_digits(mib), length);
      points.emplace_back(x.at(length), y.at(mib));
    }
    svg.polyline(points, colors[i]);
    for (const auto& [across, up] : points) svg.mark(across, up, static_cast<int>(i), colors[i]);
    svg.text(points.back().first + 10, points.back().second + 4, forms[i]);
  }
  svg.text(8, kBottom + 54,
           "Measured: " + machine_of(document) + ". Both axes are logarithmic; inputs are not counted.",
           "start", 11);
  figure = {svg.file(title, alternative + "."), alternative + ".", {}};
  return "";
}

}  // namespace docs
