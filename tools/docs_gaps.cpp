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
  return with_generated(
      page, "gaps", problems, [&](const std::string& arguments, std::vector<std::string>& lines) {
        const std::vector<std::string> words = words_of(arguments);
        if (words.size() != 2 || !starts_with(words[1], "least="))
          return std::string(
              "a table of gaps reads <!-- gaps: FILE.json,… least=PERCENT --> … <!-- /gaps -->");
        std::vector<Gap> gaps;
        for (const std::string& file : split(words[0], ','))
          if (const std::string error = gaps_of(repository, file, std::atof(words[1].c_str() + 6), gaps);
              !error.empty())
            return "gaps: " + error;
        std::stable_sort(gaps.begin(), gaps.end(),
                         [](const Gap& a, const Gap& b) { return a.percent > b.percent; });
        lines = {"| op | dtype | shape | µs | fastest baseline, µs | less time |",
                 "|---|---|---|---:|---|---:|"};
        for (const Gap& gap : gaps) lines.push_back(gap.row);
        return std::string();
      });
}

}  // namespace docs
