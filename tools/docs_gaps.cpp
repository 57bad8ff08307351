// Where a baseline is faster, written from bench records between
//   <!-- gaps: FILE.json,… least=PERCENT -->  and  <!-- /gaps -->
#include <fmt/format.h>

#include <algorithm>

#include "tools/docs_records.h"

namespace docs {
namespace {

using nlohmann::json;

struct Gap {
  double percent;
  std::string row;
};

std::string gaps_of(const Repository& repository, const std::string& file, double least,
                    std::vector<Gap>& gaps) {
  const json document = document_of(repository, "bench/" + file);
  if (!document.is_object() || !document.contains("results")) return "bench/" + file + " is no bench file";
  for (const json& record : document["results"]) {
    const std::string group = record.value("group", "");
    const double us = number(record, "median_us");
    if ((group != "best" && group != "full") || us <= 0) continue;
    const json* fastest = nullptr;
    const json baselines = record.value("peers", json::array());
    for (const json& baseline : baselines)
      if (number(baseline, "median_us") > 0 &&
          (!fastest || number(baseline, "median_us") < number(*fastest, "median_us")))
        fastest = &baseline;
    if (!fastest) continue;
    const double percent = 100 * (1 - number(*fastest, "median_us") / us);
    if (percent < least) continue;
    std::string shape = text_of(record["shape"]);
    for (std::size_t at; (at = shape.find('x')) != std::string::npos;) shape.replace(at, 1, "×");
    const std::string layout = record.value("layout", "contiguous");
    const std::string direction = record.value("direction", "") == "backward" ? ", backward" : "";
    gaps.push_back({percent, fmt::format("| {}{} | {} | {}{} | {} | {}, {} | {:.0f}% |",
                                         record.value("op", ""), direction, record.value("dtype", ""), shape,
                                         layout == "contiguous" ? "" : ", " + layout, three_digits(us),
                                         fastest->value("name", ""),
                                         three_digits(number(*fastest, "median_us")), percent)});
  }
  return "";
}

}  // namespace

Page with_gaps(const Repository& repository, const Page& page, Problems& problems) {
  Page out{page.path, {}};
  const std::vector<bool> fenced = fenced_lines(page.lines);
  for (std::size_t i = 0; i < page.lines.size(); ++i) {
    out.lines.push_back(page.lines[i]);
    std::string arguments, ignored;
    if (fenced[i] || !is_marker(page.lines[i], "gaps:", arguments)) continue;
    std::size_t end = i + 1;
    while (end < page.lines.size() && !is_marker(page.lines[end], "/gaps", ignored)) ++end;
    const std::vector<std::string> words = words_of(arguments);
    if (end == page.lines.size() || words.size() != 2 || !starts_with(words[1], "least=")) {
      problems.add(page, i,
                   "a table of gaps reads <!-- gaps: FILE.json,… least=PERCENT --> … <!-- /gaps -->");
      continue;
    }
    std::vector<Gap> gaps;
    for (const std::string& file : split(words[0], ','))
      if (const std::string error = gaps_of(repository, file, std::atof(words[1].c_str() + 6), gaps);
          !error.empty())
        problems.add(page, i, "gaps: " + error);
    std::stable_sort(gaps.begin(), gaps.end(),
                     [](const Gap& a, const Gap& b) { return a.percent > b.percent; });
    out.lines.push_back("| op | dtype | shape | µs | fastest baseline, µs | less time |");
    out.lines.push_back("|---|---|---|---:|---|---:|");
    for (const Gap& gap : gaps) out.lines.push_back(gap.row);
    out.lines.push_back(page.lines[end]);
    i = end;
  }
  return out;
}

}  // namespace docs
