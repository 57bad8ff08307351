// Records of the bench and of the trace.
#include "tools/docs_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace docs {

using nlohmann::json;

std::string text_of(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) {
    std::string text;
    for (const json& item : value) text += (text.empty() ? "" : "x") + text_of(item);
    return text;
  }
  return value.is_null() ? "" : value.dump();
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

json document_of(const Repository& repository, const std::string& file) {
  std::string whole;
  for (const std::string& line : repository.lines_of(file)) whole += line + "\n";
  return json::parse(whole, nullptr, false);
}

std::string select(const json& results, const Filters& filters, std::vector<json>& out) {
  for (const auto& [key, wanted] : filters) {
    const std::string& name = key;
    if (std::none_of(results.begin(), results.end(),
                     [&](const json& record) { return record.contains(name); }))
      return "no record has a field " + key;
  }
  for (const json& record : results) {
    const bool is_wanted = std::all_of(filters.begin(), filters.end(), [&](const auto& filter) {
      const std::string value = record.contains(filter.first) ? text_of(record[filter.first]) : "";
      return std::find(filter.second.begin(), filter.second.end(), value) != filter.second.end();
    });
    if (is_wanted) out.push_back(record);
  }
  return out.empty() ? "no record fits the filters" : "";
}

std::string machine_of(const json& document) {
  const json machine = document.value("machine", json::object());
  std::string text;
  for (const char* key : {"gpu", "cpu"})
    if (const auto it = machine.find(key); text.empty() && it != machine.end() && it->is_string())
      text = it->get<std::string>();
  const std::string date = document.value("date", "").substr(0, 10);
  return text + (text.empty() || date.empty() ? "" : ", ") + date;
}

}  // namespace docs
