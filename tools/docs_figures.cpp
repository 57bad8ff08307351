// Figures, drawn anew by make docs between
//   <!-- figure: NAME KIND key=value[,value…]… -->  and  <!-- /figure -->
// into docs/figures/NAME.svg, and the image with its text alternative. Kinds: ladder (bars of a bench record:
// record=FILE.json and filters as a table's), sectors, banks, shuffle (docs_pictures.cpp), registers, cover,
// timeline, pages (docs_layouts.cpp), levels, sizes, roofline, memory (docs_charts.cpp), coalescing
// (docs_animation.cpp), terminal (docs_terminal.cpp).
#include "tools/docs_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace docs {
namespace {

using nlohmann::json;

struct Bar {
  std::string label;
  double us, share;
  std::string color;
};

std::string with_times(std::string shape) {
  for (std::size_t at; (at = shape.find('x')) != std::string::npos;) shape.replace(at, 1, "×");
  return shape;
}

// Rungs in the order in which one climbs them, then the library's kernels.
bool climbs(const json& a, const json& b) {
  const auto rank = [](const json& record) {
    const std::string name = record.value("variant", "");
    return std::pair(name.empty() || name[0] < '0' || name[0] > '9', name);
  };
  return rank(a) < rank(b);
}

}  // namespace

std::string draw_ladder(const Repository& repository, const Settings& settings, Figure& figure) {
  Settings filters = settings;
  filters.erase("record");
  filters.erase("baselines");
  const auto named = settings.find("record");
  if (named == settings.end() || named->second.size() != 1) return "a ladder needs record=FILE.json";
  const std::string file = "bench/" + named->second[0];
  const json document = document_of(repository, file);
  if (!document.is_object() || !document.contains("results")) return file + " is no bench file";
  std::vector<json> records;
  if (const std::string error = select(document["results"], filters, records); !error.empty())
    return file + ": " + error;
  std::stable_sort(records.begin(), records.end(), climbs);
  for (const json& record : records)
    if (record["shape"] != records[0]["shape"] || record["dtype"] != records[0]["dtype"] ||
        record.value("cache", "") != records[0].value("cache", ""))
      return "a ladder has one shape, dtype and cache state: choose by filters";

  // What flops limit is not compared with a copy.
  const bool of_flops = records[0].value("limit", "") == "rated flops";
  const auto limit_of = [&](const json& record) { return number(record, of_flops ? "limit_us" : "copy_us"); };
  std::vector<Bar> bars;
  for (const json& record : records) {
    const double us = number(record, "median_us"), limit = limit_of(record);
    if (us <= 0 || limit <= 0) return "a record has no time or no limit beside it";
    const int threads = static_cast<int>(number(record, "threads"));
    const bool is_rung = climbs(record, json{{"variant", "a"}});
    bars.push_back({record.value("variant", "") + (threads > 1 ? fmt::format(", {} threads", threads) : ""),
                    us, limit / us, is_rung ? "main" : "other"});
  }
  const auto baselines = settings.find("baselines");
  for (const std::string& name :
       baselines == settings.end() ? std::vector<std::string>{} : baselines->second) {
    // In any group: baselines are timed beside the library's choice.
    bool found = false;
    for (const json& record : document["results"]) {
      const auto same = [&](const char* key) {
        return record.contains(key) == records[0].contains(key) &&
               (!record.contains(key) || record[key] == records[0][key]);
      };
      if (found || !same("op") || !same("direction") || !same("shape") || !same("dtype") || !same("cache") ||
          !same("layout") || !same("backend"))
        continue;
      for (const json& baseline : record.value("peers", json::array())) {
        if (baseline.value("name", "") != name || number(baseline, "median_us") <= 0) continue;
        const double us = number(baseline, "median_us"), own = of_flops ? 0 : number(baseline, "copy_us");
        bars.push_back({name, us, (own > 0 ? own : limit_of(record)) / us, "warn"});
        found = true;
        break;
      }
    }
    if (!found) return "no record of this shape has the baseline " + name;
  }

  constexpr double kWidth = 720, kLabels = 190, kRow = 26, kTop = 46, kRight = 130;
  double most = 1;
  for (const Bar& bar : bars) most = std::max(most, bar.share);
  const double unit = (kWidth - kLabels - kRight) / most, bottom = kTop + kRow * double(bars.size());
  Svg svg(kWidth, bottom + 26);
  const std::string what =
      fmt::format("{} {}, {}", records[0].value("op", ""), with_times(text_of(records[0]["shape"])),
                  records[0].value("dtype", ""));
  const bool gpu = records[0].value("backend", "") == "cuda";
  const std::string cache = gpu                                       ? ""
                            : records[0].value("cache", "") == "warm" ? ", in cache"
                                                                      : ", from memory";
  const char* const of = of_flops ? "the rated flops" : "a copy";
  svg.text(
      8, 20,
      fmt::format("{}{}: speed as a share of {}{}", what, cache, of, of_flops ? "" : " of the same bytes"),
      "start", 14);
  svg.line(kLabels + unit, kTop - 14, kLabels + unit, bottom, "ink", true);
  svg.text(kLabels + unit, kTop - 16, "100%", "middle", 11);
  std::string alternative = fmt::format("Bar chart of {}{}, speed as a share of {}:", what, cache, of);
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const Bar& bar = bars[i];
    const double y = kTop + kRow * double(i);
    svg.text(kLabels - 8, y + 15, bar.label, "end", 13, bar.color != "warn");
    svg.rect(kLabels, y + 3, std::max(1., unit * bar.share), kRow - 8, bar.color);
    const std::string value = fmt::format("{:.0f}%, {} µs", 100 * bar.share, three_digits(bar.us));
    const double at = kLabels + unit * bar.share + 6, end = at + 6.8 * double(value.size() - 1);
    if (at < kLabels + unit && kLabels + unit < end)  // the line at 100% would cross the words
      svg.rect(kLabels + unit - 2, y + 3, 4, kRow - 8, "ground");
    svg.text(at, y + 15, value, "start", 12);
    figure.times.push_back(three_digits(bar.us));
    alternative += fmt::format("{} {} {:.0f}%", i ? "," : "", bar.label, 100 * bar.share);
  }
  svg.text(8, bottom + 18,
           fmt::format("Measured: {}. Blue: rungs; purple: the library's kernel{}.", machine_of(document),
                       baselines == settings.end() ? "" : "; orange: baselines"),
           "start", 11);
  figure.svg = svg.file(what, alternative + ".");
  figure.alternative = alternative + ".";
  return "";
}

namespace {

std::string draw(const Repository& repository, const std::string& arguments, std::string& path,
                 Figure& figure) {
  const std::vector<std::string> words = words_of(arguments);
  if (words.size() < 2) return "a figure's marker reads <!-- figure: NAME KIND key=value… -->";
  path = "docs/figures/" + words[0] + ".svg";
  Settings settings;
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    if (equals == std::string::npos) return "'" + words[i] + "' is not of the form key=value";
    settings[words[i].substr(0, equals)] = split(words[i].substr(equals + 1), ',');
  }
  using Draw = std::string(const Repository&, const Settings&, Figure&);
  static const std::map<std::string, Draw*> kKinds = {
      {"ladder", draw_ladder},         {"sectors", draw_sectors},   {"banks", draw_banks},
      {"coalescing", draw_coalescing}, {"shuffle", draw_shuffle},   {"registers", draw_registers},
      {"cover", draw_cover},           {"timeline", draw_timeline}, {"levels", draw_levels},
      {"sizes", draw_sizes},           {"roofline", draw_roofline}, {"terminal", draw_terminal},
      {"memory", draw_memory},         {"pages", draw_pages}};
  const auto kind = kKinds.find(words[1]);
  if (kind != kKinds.end()) return kind->second(repository, settings, figure);
  return "there is no figure of kind " + words[1];
}

}  // namespace

namespace {

/// Sentences of a page with a ladder name its times: each "… µs", and the one before an arrow, is a bar of
/// one of the page's ladders or a cell of its tables.
void check_times(const Page& page, const std::vector<std::string>& shown, Problems& problems) {
  const auto is_shown = [&](const std::string& time) {
    if (std::find(shown.begin(), shown.end(), time) != shown.end()) return true;
    return std::any_of(page.lines.begin(), page.lines.end(), [&](const std::string& line) {
      return !line.empty() && line[0] == '|' && line.find("| " + time + " |") != line.npos;
    });
  };
  const std::vector<bool> fenced = fenced_lines(page.lines);
  const std::string kUnit = " µs", kArrow = " → ";
  const auto number_before = [](const std::string& line, std::size_t end) {
    std::size_t begin = end;
    while (begin > 0 && (std::isdigit(static_cast<unsigned char>(line[begin - 1])) || line[begin - 1] == '.'))
      --begin;
    return line.substr(begin, end - begin);
  };
  for (std::size_t i = 0; i < page.lines.size(); ++i) {
    const std::string& line = page.lines[i];
    if (fenced[i] || line.empty() || line[0] == '|') continue;
    for (std::size_t at = line.find(kUnit); at != line.npos; at = line.find(kUnit, at + 1)) {
      const std::string time = number_before(line, at);
      std::vector<std::string> times = {time};
      const std::size_t arrow = at - time.size();
      if (arrow >= kArrow.size() && line.compare(arrow - kArrow.size(), kArrow.size(), kArrow) == 0)
        times.push_back(number_before(line, arrow - kArrow.size()));
      for (const std::string& one : times)
        if (!one.empty() && !is_shown(one))
          problems.add(page, i, fmt::format("{} µs is in no ladder and no table of this page", one));
    }
  }
}

}  // namespace

Page with_figures(const Repository& repository, const Page& page, Problems& problems,
                  std::map<std::string, std::string>& files) {
  Page out{page.path, {}};
  std::vector<std::string> times;
  const std::vector<bool> fenced = fenced_lines(page.lines);
  for (std::size_t i = 0; i < page.lines.size(); ++i) {
    out.lines.push_back(page.lines[i]);
    std::string arguments, ignored;
    if (fenced[i] || !is_marker(page.lines[i], "figure:", arguments)) continue;
    std::size_t end = i + 1;
    while (end < page.lines.size() && !is_marker(page.lines[end], "/figure", ignored)) ++end;
    if (end == page.lines.size()) {
      problems.add(page, i, "this figure is never closed by <!-- /figure -->");
      continue;
    }
    std::string path;
    Figure figure;
    if (const std::string error = draw(repository, arguments, path, figure); !error.empty()) {
      problems.add(page, i, "figure: " + error);
      out.lines.insert(out.lines.end(), page.lines.begin() + std::ptrdiff_t(i) + 1,
                       page.lines.begin() + std::ptrdiff_t(end));
    } else {
      const auto [known, is_new] = files.emplace(path, figure.svg);
      if (!is_new && known->second != figure.svg)
        problems.add(page, i, path + " is drawn in two ways; give one of them another name");
      times.insert(times.end(), figure.times.begin(), figure.times.end());
      out.lines.push_back(fmt::format("![{}]({})", figure.alternative, relative_to(page.path, path)));
    }
    out.lines.push_back(page.lines[end]);
    i = end;
  }
  if (!times.empty()) check_times(out, times, problems);
  return out;
}

}  // namespace docs
