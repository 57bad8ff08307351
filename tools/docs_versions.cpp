// The kernels in Python's languages, written from a record of `rooftile check --versions` and records of
// `rooftile bench --versions` between
//   <!-- versions: CHECK.json BENCH.json -->  and  <!-- /versions -->
// A row a function: what was checked, and where the bench timed it, its time over the library's.
#include <fmt/format.h>

#include <algorithm>

#include "tools/docs_records.h"

namespace docs {
namespace {

using nlohmann::json;

/// The bench's row for a function, "softmax_backward"; null where there is none.
const json* row_of(const json& results, const std::string& function) {
  for (const json& row : results) {
    const bool backward = row.value("direction", "") == "backward";
    if (row.value("op", "") + (backward ? "_backward" : "") == function) return &row;
  }
  return nullptr;
}

/// The verdict on one version of a function and its time over the library's, "right, 12×".
std::string cell(const json& version, const json* row) {
  if (version.value("passed", 0) != version.value("accepted", -1)) return "wrong";
  for (const json& baseline : row ? row->value("peers", json::array()) : json::array())
    if (baseline.value("name", "") == version.value("version", "") && number(baseline, "median_us") > 0)
      return three_digits(number(baseline, "median_us") / number(*row, "median_us")) + "×";
  return "right";
}

std::string folder_of(const Repository& repository, const std::string& function) {
  for (const std::string& file : repository.files)
    if (file.starts_with("rooftile/ops/") && file.ends_with("/versions.py"))
      for (const std::string& line : repository.lines_of(file))
        if (line.starts_with("def " + function + "_")) return file;
  return "";
}

std::string rows_of(const Repository& repository, const Page& page, const std::string& arguments,
                    std::vector<std::string>& lines) {
  const std::vector<std::string> words = words_of(arguments);
  if (words.size() != 2)
    return "a table of versions reads <!-- versions: CHECK.json BENCH.json --> … <!-- /versions -->";
  const json checked = document_of(repository, "bench/" + words[0]);
  const json timed = document_of(repository, "bench/" + words[1]);
  if (!checked.is_object() || !checked.contains("versions"))
    return "bench/" + words[0] + " is no record of check --versions";
  if (!timed.is_object() || !timed.contains("results")) return "bench/" + words[1] + " is no bench file";
  std::vector<std::string> functions, languages;
  for (const json& version : checked["versions"]) {
    for (auto& [list, key] : {std::pair{&functions, "function"}, std::pair{&languages, "language"}})
      if (std::find(list->begin(), list->end(), version.value(key, "")) == list->end())
        list->push_back(version.value(key, ""));
  }
  std::string head = "| function | ours, µs |", rule = "|---|---:|";
  for (const std::string& language : languages) head += " " + language + " |", rule += "---:|";
  lines = {head, rule};
  for (const std::string& function : functions) {
    const json* row = row_of(timed["results"], function);
    const std::string file = folder_of(repository, function);
    if (file.empty()) return function + " has no versions.py";
    std::string line = fmt::format("| [{}]({}) | {} |", function, relative_to(page.path, file),
                                   row ? three_digits(number(*row, "median_us")) : "");
    for (const std::string& language : languages) {
      std::string text;
      for (const json& version : checked["versions"])
        if (version.value("function", "") == function && version.value("language", "") == language &&
            version.value("trap", "").empty() && text.empty())
          text = cell(version, row);
      line += " " + text + " |";
    }
    lines.push_back(line);
  }
  lines.insert(lines.end(), {"", "| trap | why it is wrong | rejected by, of cases |", "|---|---|---:|"});
  for (const json& version : checked["versions"])
    if (!version.value("trap", "").empty())
      lines.push_back(fmt::format(
          "| {} | {} | {} of {} |", version.value("version", ""), version.value("trap", ""),
          version.value("accepted", 0) - version.value("passed", 0), version.value("accepted", 0)));
  const json first = timed["results"].empty() ? json::object() : timed["results"][0];
  lines.insert(
      lines.end(),
      {"", fmt::format("Measured: {}; {}, {}, {} thread{}, {} caches. All of it: "
                       "[bench/{}]({}), [bench/{}]({}).",
                       machine_of(timed), text_of(first.value("shape", json())), first.value("dtype", ""),
                       first.value("threads", 1), first.value("threads", 1) == 1 ? "" : "s",
                       first.value("cache", ""), words[0], relative_to(page.path, "bench/" + words[0]),
                       words[1], relative_to(page.path, "bench/" + words[1]))});
  return "";
}

}  // namespace

Page with_versions(const Repository& repository, const Page& page, Problems& problems) {
  return with_generated(page, "versions", problems,
                        [&](const std::string& arguments, std::vector<std::string>& lines) {
                          return rows_of(repository, page, arguments, lines);
                        });
}

}  // namespace docs
