// Tables of figures, written from the records of a bench file between
//   <!-- bench: FILE.json [optional] key=value[,value…]… [columns=name,…] -->  and  <!-- /bench -->
// where key is any field of a record (op, direction, variant, dtype, shape, threads, cache, group, …). An
// optional table is empty until a record fits: of a machine whose ladder is not measured yet.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tools/docs_records.h"

namespace docs {
namespace {

using nlohmann::json;

std::string share(double value) { return value > 0 ? fmt::format("{:.0f}%", 100 * value) : "–"; }

const std::map<std::string, std::string> kTitles = {{"op", "op"},
                                                    {"direction", "direction"},
                                                    {"variant", "variant"},
                                                    {"isa", "ISA"},
                                                    {"dtype", "dtype"},
                                                    {"shape", "shape"},
                                                    {"layout", "layout"},
                                                    {"with", "with"},
                                                    {"threads", "threads"},
                                                    {"cache", "cache"},
                                                    {"us", "µs"},
                                                    {"gbs", "GB/s"},
                                                    {"of_copy", "of a copy"},
                                                    {"of_limit", "of the limit"},
                                                    {"limit", "limit"},
                                                    {"backend", "backend"},
                                                    {"group", "group"}};

bool is_figure(const std::string& column) {
  return column == "us" || column == "gbs" || column == "of_copy" || column == "of_limit" ||
         column == "threads";
}

std::string cell(const json& record, const std::string& column) {
  const double us = number(record, "median_us");
  if (column == "us")
    return us > 0 ? three_digits(us) + (record.value("throttled", json()) == true ? " (throttled)" : "")
                  : "–";
  if (column == "gbs") return us > 0 ? three_digits(number(record, "bytes") / us / 1e3) : "–";
  if (column == "of_copy") return share(us > 0 ? number(record, "copy_us") / us : 0);
  if (column == "of_limit") {
    const double given = number(record, "of_limit");
    return share(given > 0 ? given : us > 0 ? number(record, "limit_us") / us : 0);
  }
  std::string text = record.contains(column) ? text_of(record[column]) : "";
  if (column == "with") {  // what the call was given, as the bench's own table has it
    const json given = record.value("parameters", json::object());
    for (const auto& [name, value] : given.items())
      text += fmt::format("{}{}={:g}", text.empty() ? "" : " ", name, value.get<double>());
  }
  if (column == "shape")
    for (std::size_t at; (at = text.find('x')) != std::string::npos;) text.replace(at, 1, "×");
  if (column == "variant") text = "`" + text + "`";
  return text.empty() ? "–" : text;
}

// A baseline's time over ours: above 1, ours is the faster.
std::string baseline_cell(const json& record, const std::string& name) {
  for (const json& baseline : record.value("peers", json::array()))
    if (baseline.value("name", "") == name && number(baseline, "median_us") > 0 &&
        number(record, "median_us") > 0)
      return fmt::format("{:.2f}×", number(baseline, "median_us") / number(record, "median_us"));
  return "–";
}

std::vector<std::string> default_columns(const std::vector<json>& records) {
  std::vector<std::string> columns;
  for (const char* key : {"op", "direction", "variant", "isa", "layout"}) {  // only where they differ
    std::set<std::string> values;
    for (const json& record : records) values.insert(record.contains(key) ? text_of(record[key]) : "");
    if (values.size() > 1) columns.push_back(key);
  }
  for (const char* key : {"shape", "dtype", "threads", "cache", "us", "gbs", "of_copy", "of_limit"})
    columns.push_back(key);
  return columns;
}

std::string caption(const Page& page, const std::string& file, const json& document) {
  std::string where;
  const json machine = document.value("machine", json::object());
  for (const auto& [holder, key] : {std::pair(&machine, "cpu"), {&machine, "gpu"}, {&document, "date"}})
    if (const auto it = holder->find(key); it != holder->end() && it->is_string() && !it->empty())
      where += (where.empty() ? ": " : ", ") +
               it->get<std::string>().substr(0, std::string_view(key) == "date" ? 10 : 200);
  return fmt::format("Measured{}; all of it in [{}]({}).", where, file, relative_to(page.path, file));
}

std::string table(const Repository& repository, const Page& page, const std::string& arguments,
                  std::vector<std::string>& out) {
  const std::vector<std::string> words = words_of(arguments);
  if (words.empty()) return "a table's marker reads <!-- bench: FILE.json key=value… -->";
  const std::string file = "bench/" + words[0];
  if (repository.files.count(file) == 0) return "there is no " + file;
  std::map<std::string, std::vector<std::string>> filters;
  std::vector<std::string> columns;
  bool is_optional = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "optional") {
      is_optional = true;
      continue;
    }
    const std::size_t equals = words[i].find('=');
    if (equals == std::string::npos) return "'" + words[i] + "' is no filter of the form key=value";
    const std::vector<std::string> values = split(words[i].substr(equals + 1), ',');
    (words[i].substr(0, equals) == "columns" ? columns : filters[words[i].substr(0, equals)]) = values;
  }
  const json document = document_of(repository, file);
  if (document.is_discarded() || !document.is_object() || !document.contains("results"))
    return file + " is no bench file: it is not JSON with \"results\"";
  std::vector<json> records;
  if (const std::string error = select(document["results"], filters, records); !error.empty())
    return is_optional ? "" : file + ": " + error;

  const bool are_chosen = !columns.empty();
  if (!are_chosen) columns = default_columns(records);
  for (const std::string& column : columns)
    if (kTitles.count(column) == 0 && column != "baselines") return "there is no column " + column;
  if (!are_chosen) columns.push_back("baselines");
  std::vector<std::string> baselines;  // in order of appearance
  if (std::find(columns.begin(), columns.end(), "baselines") != columns.end()) {
    columns.erase(std::remove(columns.begin(), columns.end(), "baselines"), columns.end());
    for (const json& record : records)
      for (const json& baseline : record.value("peers", json::array()))
        if (std::find(baselines.begin(), baselines.end(), baseline.value("name", "")) == baselines.end())
          baselines.push_back(baseline.value("name", ""));
  }

  std::string head = "|";
  std::string rule = "|";
  for (const std::string& column : columns) {
    head += " " + kTitles.at(column) + " |";
    rule += is_figure(column) ? "---:|" : "---|";
  }
  for (const std::string& baseline : baselines) {
    head += " speed against " + baseline + " |";
    rule += "---:|";
  }
  out = {head, rule};
  for (const json& record : records) {
    std::string row = "|";
    for (const std::string& column : columns) row += " " + cell(record, column) + " |";
    for (const std::string& baseline : baselines) row += " " + baseline_cell(record, baseline) + " |";
    out.push_back(row);
  }
  out.push_back("");
  out.push_back(caption(page, file, document));
  return "";
}

}  // namespace

Page with_tables(const Repository& repository, const Page& page, Problems& problems) {
  return with_generated(page, "bench", problems,
                        [&](const std::string& arguments, std::vector<std::string>& lines) {
                          const std::string error = table(repository, page, arguments, lines);
                          return error.empty() ? error : "table: " + error;
                        });
}

}  // namespace docs
