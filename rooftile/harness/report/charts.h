#pragma once

#include "rooftile/harness/report/sections.h"
#include "rooftile/harness/report/views.h"

/// What page.js draws, as JSON with known types, so that the script holds no parsing of its own. Part of
/// report.cpp.
namespace rooftile::harness::report {

inline double threads_or_one(Number threads) { return threads.value_or(1); }

/// The colour and the mark of a kernel in every chart; backward has its forward's colour and another mark.
inline Json look_of(const std::vector<std::string>& ops, const Result& r) {
  const std::size_t place = place_of(ops, r.op);
  return {{"colour", place % kKernelColours},
          {"mark", 2 * (place / kKernelColours) + (r.direction == "backward" ? 1 : 0)}};
}

inline Json roofline_data(const Record& record) {
  const std::vector<std::string> ops = ops_of(record);
  Json shown = Json::array();
  for (const View& view : views(record)) {
    Json points = Json::array();
    for (const Result* result : view.results) {
      const Result& r = *result;
      if (!in_roofline(r)) continue;
      Json lines = {fmt::format("{}: {}", r.where(), time_us(r.median_us)),
                    fmt::format("{} GFLOP/s at {} flops/byte", digits(r.gflops()), digits(r.intensity()))};
      if (r.of_limit) lines.push_back(percent(r.of_limit) + " of the " + limit_name(r.limit));
      points.push_back({{"x", *r.intensity()},
                        {"y", *r.gflops()},
                        {"series", r.name()},
                        {"look", look_of(ops, r)},
                        {"title", fmt::format("{} · {}{}", r.problem(), r.variant,
                                              r.isa.empty() ? "" : " (" + r.isa + ")")},
                        {"lines", std::move(lines)}});
    }
    if (!points.empty())
      shown.push_back({{"name", view.label()}, {"threads", view.threads}, {"points", std::move(points)}});
  }
  if (shown.empty()) return nullptr;
  Json levels = Json::array(), peaks = Json::array();
  for (const Level& l : record.levels)
    if (l.copy_gbs)
      levels.push_back({{"name", l.name},
                        {"label", l.name + " copy " + gbs(l.copy_gbs)},
                        {"threads", threads_or_one(l.threads)},
                        {"gbs", *l.copy_gbs}});
  // A GPU's roof is its largest copy.
  const DeviceCopy* largest = nullptr;
  for (const DeviceCopy& c : record.copies)
    if (c.bytes && c.median_us && (!largest || *c.bytes > *largest->bytes)) largest = &c;
  if (const Number copied = largest ? ratio(largest->bytes, largest->median_us) : Number())
    levels.push_back({{"name", "copy"},
                      {"label", "copy " + gbs(*copied / 1e3)},
                      {"threads", threads_or_one({})},
                      {"gbs", *copied / 1e3}});
  // Other ISAs' and types' peaks are in the table: a dozen level lines would hide the marks.
  const std::string isa = text(record.machine, "isa");
  for (const Peak& p : record.peaks)
    if (p.gflops && (isa.empty() || p.isa.empty() || p.isa == isa))
      peaks.push_back(
          {{"label", fmt::format("{}: {} GFLOP/s", p.name.empty() ? "peak" : p.name, digits(p.gflops))},
           {"threads", threads_or_one(p.threads)},
           {"gflops", *p.gflops}});
  return {{"levels", std::move(levels)}, {"peaks", std::move(peaks)}, {"views", std::move(shown)}};
}

inline Json speed_data(const Record& record) {
  const std::vector<std::string> ops = ops_of(record);
  std::map<std::pair<std::string, double>, Json> series;
  for (const Result& r : record.results) {
    if (!in_speed_chart(r)) continue;
    const std::string name = r.name() + " " + r.dtype + (r.cache == "cold" ? " (cold)" : "");
    Json& one = series[{name, threads_or_one(r.threads)}];
    if (one.is_null())
      one = {{"name", name},
             {"look", look_of(ops, r)},
             {"threads", threads_or_one(r.threads)},
             {"points", Json::array()}};
    one["points"].push_back({{"x", *r.bytes},
                             {"y", *r.rate_gbs()},
                             {"title", fmt::format("{} · {}", r.problem(), r.variant)},
                             {"lines",
                              {fmt::format("{}: {}", r.where(), time_us(r.median_us)),
                               fmt::format("{} moved at {}", bytes(r.bytes), gbs(r.rate_gbs()))}}});
  }
  if (series.empty()) return nullptr;
  Json all = Json::array();
  for (auto& [key, one] : series) {
    std::sort(one["points"].begin(), one["points"].end(),
              [](const Json& a, const Json& b) { return a["x"] < b["x"]; });
    all.push_back(std::move(one));
  }
  Json caches = Json::array(), levels = Json::array();
  for (const Cache& c : record.caches)
    if (c.data && c.bytes) {
      const std::string name = c.name.substr(0, c.name.find(' '));
      caches.push_back({{"label", name + " " + bytes(c.bytes)}, {"bytes", *c.bytes}});
    }
  for (const Level& l : record.levels)
    if (l.copy_gbs)
      levels.push_back({{"label", l.name + " copy " + gbs(l.copy_gbs)},
                        {"threads", threads_or_one(l.threads)},
                        {"gbs", *l.copy_gbs}});
  return {{"series", std::move(all)}, {"caches", std::move(caches)}, {"levels", std::move(levels)}};
}

/// Of the types checked, those that the chart shows: more bars than three would hide each other.
inline std::vector<std::string> drawn_dtypes(std::vector<std::string> dtypes) {
  const auto place = [](const std::string& dtype) {
    constexpr std::string_view kFirst[] = {"f32", "bf16", "f16"};
    return std::find(std::begin(kFirst), std::end(kFirst), dtype) - std::begin(kFirst);
  };
  std::stable_sort(dtypes.begin(), dtypes.end(),
                   [&](const std::string& a, const std::string& b) { return place(a) < place(b); });
  dtypes.resize(std::min<std::size_t>(dtypes.size(), 3));
  return dtypes;
}

inline Json ulp_data(const Record& record) {
  std::vector<std::string> labels, kernels = {"all kernels"}, dtypes;
  std::map<std::string, std::map<std::string, std::map<std::string, double>>> counts;  // kernel, dtype, label
  const auto note = [](std::vector<std::string>& all, const std::string& one) {
    if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
  };
  for (const Check& c : record.checks) {
    if (c.bins.empty()) continue;
    note(kernels, c.name());
    note(dtypes, c.dtype);
    for (const Bin& bin : c.bins) {
      note(labels, bin.ulp);
      counts["all kernels"][c.dtype][bin.ulp] += bin.count;
      if (c.name() != "all kernels") counts[c.name()][c.dtype][bin.ulp] += bin.count;
    }
  }
  if (labels.empty()) return nullptr;
  dtypes = drawn_dtypes(std::move(dtypes));
  Json groups = Json::array();
  for (const std::string& kernel : kernels) {
    Json series = Json::array();
    for (std::size_t place = 0; place < dtypes.size(); ++place) {
      const auto found = counts[kernel].find(dtypes[place]);
      if (found == counts[kernel].end()) continue;
      double total = 0;
      for (const auto& [label, n] : found->second) total += n;
      if (total <= 0) continue;
      Json shares = Json::array(), texts = Json::array();
      for (const std::string& label : labels) {
        const auto bin = found->second.find(label);
        const double n = bin == found->second.end() ? 0 : bin->second;
        shares.push_back(n / total * 100);
        texts.push_back(fmt::format("{}: {} ({})", found->first, percent(n / total), count(n)));
      }
      // `place` keeps a type's colour and pattern the same whichever kernel is chosen.
      series.push_back({{"name", found->first},
                        {"place", place},
                        {"shares", std::move(shares)},
                        {"texts", std::move(texts)}});
    }
    if (!series.empty()) groups.push_back({{"name", kernel}, {"series", std::move(series)}});
  }
  if (groups.empty()) return nullptr;
  return {{"labels", labels}, {"groups", std::move(groups)}};
}

inline Json chart_data(const Record& record) {
  return {{"roofline", roofline_data(record)}, {"speed", speed_data(record)}, {"ulp", ulp_data(record)}};
}

}  // namespace rooftile::harness::report
