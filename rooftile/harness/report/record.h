#pragma once

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rooftile/harness/bench/doubts.h"
#include "rooftile/harness/report/text.h"

/// The record as the report reads it: a field that is missing, null or of another type is empty. Part of
/// report.cpp.
namespace rooftile::harness::report {

using Json = nlohmann::json;

inline const Json& field(const Json& object, const char* name) {
  static const Json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(name);
  return found == object.end() ? kNone : *found;
}

inline const Json& list(const Json& object, const char* name) {
  static const Json kEmpty = Json::array();
  const Json& value = field(object, name);
  return value.is_array() ? value : kEmpty;
}

inline std::string text(const Json& object, const char* name) {
  const Json& value = field(object, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

inline Number number(const Json& object, const char* name) {
  const Json& value = field(object, name);
  if (!value.is_number()) return {};
  const double out = value.get<double>();
  return std::isfinite(out) ? Number(out) : Number();
}

inline Number positive(const Json& object, const char* name) {
  const Number value = number(object, name);
  return value && *value > 0 ? value : Number();
}

inline Number finite(double value) { return std::isfinite(value) ? Number(value) : Number(); }

inline Number ratio(Number a, Number b) { return a && b && *b > 0 ? finite(*a / *b) : Number(); }

struct Baseline {
  std::string name, version;
  Number median_us, of_copy;  // of_copy: of a copy in the baseline's own process, where it has one
};

struct Result {
  std::string op, direction, variant, backend, isa, dtype, shape, layout, cache, limit, group, series, title;
  std::vector<double> sizes;
  Number threads, n, median_us, p5_us, p95_us, floor_us, bytes, flops, workspace_bytes, peak_bytes, copy_us;
  Number limit_us, of_limit, clock_mhz, power_w, rung;
  std::optional<bool> throttled;
  std::vector<Baseline> baselines;
  Doubts doubts;

  /// "softmax backward"; the direction is said only where it is not the forward one.
  std::string name() const { return direction.empty() || direction == "forward" ? op : op + " " + direction; }
  std::string problem() const {
    const bool plain = layout.empty() || layout == "contiguous";
    return name() + " " + dtype + " " + shape + (plain ? "" : ", " + layout);
  }
  std::string where() const {
    if (backend == "cuda" || backend == "emulated") return isa + (cache.empty() ? "" : ", " + cache);
    return (threads ? plural(*threads, "thread", "threads") : "") + (cache.empty() ? "" : ", " + cache);
  }
  Number rate_gbs() const { return median_us && bytes ? finite(*bytes / *median_us / 1e3) : Number(); }
  Number gflops() const { return median_us && flops ? finite(*flops / *median_us / 1e3) : Number(); }
  Number intensity() const { return ratio(flops, bytes); }
  bool has_flops() const { return flops && *flops > 0; }
};

inline Result parse_result(const Json& json) {
  Result r;
  for (const auto& [name, target] : {std::pair{"op", &r.op},
                                     {"direction", &r.direction},
                                     {"variant", &r.variant},
                                     {"backend", &r.backend},
                                     {"isa", &r.isa},
                                     {"dtype", &r.dtype},
                                     {"layout", &r.layout},
                                     {"cache", &r.cache},
                                     {"limit", &r.limit},
                                     {"group", &r.group},
                                     {"series", &r.series},
                                     {"title", &r.title}})
    *target = text(json, name);
  for (const auto& [name, target] : {std::pair{"threads", &r.threads},
                                     {"n", &r.n},
                                     {"floor_us", &r.floor_us},
                                     {"bytes", &r.bytes},
                                     {"flops", &r.flops},
                                     {"workspace_bytes", &r.workspace_bytes},
                                     {"peak_bytes", &r.peak_bytes},
                                     {"of_limit", &r.of_limit},
                                     {"clock_mhz", &r.clock_mhz},
                                     {"power_w", &r.power_w},
                                     {"rung", &r.rung}})
    *target = number(json, name);
  // A time of 0 is no measurement, and nothing may be divided by it.
  for (const auto& [name, target] : {std::pair{"median_us", &r.median_us},
                                     {"p5_us", &r.p5_us},
                                     {"p95_us", &r.p95_us},
                                     {"copy_us", &r.copy_us},
                                     {"limit_us", &r.limit_us}})
    *target = positive(json, name);
  if (r.op.empty()) r.op = "unnamed op";
  if (!r.of_limit) r.of_limit = ratio(r.limit_us, r.median_us);
  const Json& throttled = field(json, "throttled");
  if (throttled.is_boolean()) r.throttled = throttled.get<bool>();
  for (const Json& size : list(json, "shape")) {
    if (!size.is_number()) continue;
    r.sizes.push_back(size.get<double>());
    r.shape += (r.shape.empty() ? "" : "×") + fmt::format("{:.0f}", r.sizes.back());
  }
  for (const Json& baseline : list(json, "peers"))
    if (const std::string name = text(baseline, "name"); !name.empty())
      r.baselines.push_back(
          {name, text(baseline, "version"), positive(baseline, "median_us"), positive(baseline, "of_copy")});
  return r;
}

struct Bin {
  std::string ulp;
  double count = 0;
};

struct Check {
  std::string op, direction, variant, isa, dtype;
  double cases = 0, passed = 0, wrong_results = 0, rejected = 0;
  Number worst, rms;
  std::vector<Bin> bins;
  std::vector<std::string> failures;
  std::string name() const { return direction.empty() || direction == "forward" ? op : op + " " + direction; }
  bool ok() const { return failures.empty() && passed >= cases; }
};

inline Check parse_check(const Json& json) {
  Check c;
  c.op = text(json, "op"), c.direction = text(json, "direction"), c.variant = text(json, "variant");
  c.isa = text(json, "isa"), c.dtype = text(json, "dtype");
  if (c.op.empty()) c.op = "unnamed op";
  c.cases = number(json, "cases").value_or(0);
  c.passed = number(json, "passed").value_or(0);
  c.wrong_results = number(json, "impostors").value_or(0);
  c.rejected = number(json, "impostors_rejected").value_or(0);
  c.worst = number(json, "worst_of_tolerance");
  c.rms = number(json, "rms_of_tolerance");
  for (const Json& bin : list(json, "ulp_histogram")) {
    const Json& label = field(bin, "ulp");
    c.bins.push_back(
        {label.is_string() ? label.get<std::string>() : label.dump(), number(bin, "count").value_or(0)});
  }
  for (const Json& failure : list(json, "failures"))
    if (failure.is_string()) c.failures.push_back(failure.get<std::string>());
  return c;
}

/// A line of a trace: `place` is "softmax.cu:12".
struct TraceLine {
  std::string place, source, access;
  Number requests, sectors, used_bytes, wavefronts, conflicts;
};

/// What a kernel asks of a GPU's memory, counted on the emulated device.
struct Trace {
  std::string op, direction, variant, dtype, shape;
  Number launches, stated_bytes, moved_bytes, different_bytes;
  std::vector<TraceLine> lines;
  std::string name() const { return direction.empty() || direction == "forward" ? op : op + " " + direction; }
  std::string problem() const { return name() + " " + dtype + " " + shape; }
  std::string title() const { return problem() + ", " + variant; }
  Number moved_of_stated() const { return ratio(moved_bytes, stated_bytes); }
};

inline Trace parse_trace(const Json& json) {
  Trace t;
  t.op = text(json, "op"), t.direction = text(json, "direction"), t.variant = text(json, "variant");
  t.dtype = text(json, "dtype");
  if (t.op.empty()) t.op = "unnamed op";
  for (const Json& size : list(json, "shape"))
    if (size.is_number()) t.shape += (t.shape.empty() ? "" : "×") + fmt::format("{:.0f}", size.get<double>());
  t.launches = number(json, "launches");
  t.stated_bytes = positive(json, "bytes");
  t.moved_bytes = number(json, "moved_bytes");
  t.different_bytes = number(json, "different_bytes");
  for (const Json& line : list(json, "lines")) {
    const std::string file = text(line, "file");
    t.lines.push_back({file.substr(file.rfind('/') + 1) + ":" + count(number(line, "line")),
                       text(line, "text"), text(line, "access"), positive(line, "requests"),
                       number(line, "sectors"), number(line, "used_bytes"), number(line, "wavefronts"),
                       number(line, "conflicts")});
  }
  return t;
}

struct Level {
  std::string name;
  Number footprint_bytes, threads, read_gbs, write_gbs, copy_gbs;
};

struct Peak {
  std::string name, dtype, isa;
  Number threads, gflops;
};

struct Cache {
  std::string name;
  Number bytes, shared_by, line_bytes;
  bool data = true;
};

/// On a GPU: a device copy, and what calls cost the host.
struct DeviceCopy {
  std::string run;
  Number bytes, median_us;
};
struct HostCost {
  std::string name;
  Number whole_ns, bare_ns;
};

struct Record {
  Json machine;
  std::vector<DeviceCopy> copies;
  std::vector<HostCost> host_costs;
  std::string date, command, version;
  std::vector<Cache> caches;
  std::vector<Level> levels;
  std::vector<Peak> peaks;
  std::vector<Result> results;
  std::vector<Check> checks;
  std::vector<Trace> traces;
  std::vector<std::string> contradictions;
  std::optional<std::string> docs_url;  ///< of the lessons, with its last slash; none: no links
};

inline Record parse_record(const Json& json) {
  Record record;
  record.machine = field(json, "machine");
  record.date = text(json, "date");
  record.command = text(json, "command");
  record.version = text(json, "rooftile");
  if (const std::string commit = text(json, "commit"); !commit.empty() && !record.version.empty())
    record.version += " (" + commit + ")";
  for (const Json& cache : list(record.machine, "caches")) {
    Cache c;
    const std::string kind = text(cache, "kind");
    c.name = "L" + count(number(cache, "level")) + (kind.empty() || kind == "unified" ? "" : " " + kind);
    c.bytes = positive(cache, "bytes");
    c.shared_by = number(cache, "shared_by");
    c.line_bytes = number(cache, "line_bytes");
    c.data = kind != "instruction";
    record.caches.push_back(std::move(c));
  }
  for (const Json& level : list(record.machine, "levels"))
    record.levels.push_back({text(level, "name"), positive(level, "footprint_bytes"),
                             positive(level, "threads"), positive(level, "read_gbs"),
                             positive(level, "write_gbs"), positive(level, "copy_gbs")});
  for (const Json& peak : list(record.machine, "peaks"))
    record.peaks.push_back({text(peak, "name"), text(peak, "dtype"), text(peak, "isa"),
                            positive(peak, "threads"), positive(peak, "gflops")});
  for (const Json& run : list(json, "runs"))
    for (const Json& copy : list(run, "copies"))
      record.copies.push_back({text(run, "id"), positive(copy, "bytes"), positive(copy, "median_us")});
  for (const Json& line : list(json, "overheads"))
    if (const Number bare = positive(line, "bare_ns"))
      record.host_costs.push_back({text(line, "name"), positive(line, "whole_ns"), bare});
  const Json& results = list(json, "results");
  const std::vector<Doubts> doubts = doubts_of(results);
  for (std::size_t i = 0; i < results.size(); ++i) {
    record.results.push_back(parse_result(results[i]));
    record.results.back().doubts = doubts[i];
  }
  std::vector<LevelRate> rates;
  for (const Level& l : record.levels)
    rates.push_back({l.name, 0, static_cast<int>(std::min(l.threads.value_or(1), 1e6)),
                     l.read_gbs.value_or(0), l.write_gbs.value_or(0), l.copy_gbs.value_or(0), "", "", ""});
  record.contradictions = contradictions(rates);
  for (const Json& check : list(json, "checks")) record.checks.push_back(parse_check(check));
  for (const Json& trace : list(json, "traces")) record.traces.push_back(parse_trace(trace));
  return record;
}

}  // namespace rooftile::harness::report
