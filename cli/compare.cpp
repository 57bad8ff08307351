#include "cli/compare.h"

#include <fmt/format.h>

#include <map>

#include "cli/table.h"

namespace rooftile::cli {
namespace {

using Json = nlohmann::json;

/// What tells a record's rows apart: all but the times. A row whose variant the library chose is compared
/// whatever it chose.
std::string key_of(const Json& row) {
  Json key = Json::array();
  for (const char* field : {"op", "direction", "backend", "isa", "dtype", "shape", "layout", "parameters",
                            "threads", "cache", "group", "rung", "series"})
    key.push_back(row.value(field, Json()));
  if (row.value("group", "") == "full") key.push_back(row.value("variant", Json()));
  return key.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string words_of(const Json& row) {
  std::string shape;
  for (const Json& size : row.value("shape", Json::array()))
    shape += (shape.empty() ? "" : "x") + size.dump();
  return fmt::format("{}{} {} {} {}, {} thread{}, {}", row.value("op", ""),
                     row.value("direction", "") == "backward" ? " backward" : "", row.value("variant", ""),
                     shape, row.value("dtype", ""), row.value("threads", 1),
                     row.value("threads", 1) == 1 ? "" : "s", row.value("cache", ""));
}

struct Times {
  double p5, median, p95;
};

/// False where the row lacks one.
bool times_of(const Json& row, Times& times) {
  const auto take = [&](const char* field, double& to) {
    const auto found = row.find(field);
    if (found == row.end() || !found->is_number()) return false;
    to = found->get<double>();
    return to > 0;
  };
  return take("p5_us", times.p5) && take("median_us", times.median) && take("p95_us", times.p95);
}

/// What the records say of the machine, and where they differ in it.
std::string other_machine(const std::string& name, const Json& older, const Json& newer) {
  std::string out;
  for (const char* field : {"cpu", "device", "isa", "threads", "compiler"}) {
    const Json a = older.value("machine", Json::object()).value(field, Json());
    const Json b = newer.value("machine", Json::object()).value(field, Json());
    if (a == b) continue;
    const auto said = [](const Json& value) {
      return value.is_string() ? value.get<std::string>()
                               : value.dump(-1, ' ', false, Json::error_handler_t::replace);
    };
    out += fmt::format("note: {} was recorded with another {}: {}, here {}\n", name, field, said(a), said(b));
  }
  return out;
}

}  // namespace

std::string comparison(const std::string& name, const Json& older, const Json& newer) {
  std::map<std::string, const Json*> before;
  const Json none = Json::array();
  const Json& old_rows = older.contains("results") ? older["results"] : none;
  for (const Json& row : old_rows) before.emplace(key_of(row), &row);
  Table table({"", "row", ">µs before", ">µs now", ">now / before"});
  std::size_t slower = 0, faster = 0, alike = 0, lacking = 0;
  for (const Json& row : newer.contains("results") ? newer["results"] : none) {
    const auto found = before.find(key_of(row));
    Times then{}, now{};
    if (found == before.end() || !times_of(*found->second, then) || !times_of(row, now)) {
      ++lacking;
    } else if (now.p5 > then.p95 || now.p95 < then.p5) {
      ++(now.p5 > then.p95 ? slower : faster);
      table.add({now.p5 > then.p95 ? "slower" : "faster", words_of(row), fmt::format("{:.2f}", then.median),
                 fmt::format("{:.2f}", now.median), fmt::format("{:.2f}", now.median / then.median)});
    } else {
      ++alike;
    }
  }
  std::string out = other_machine(name, older, newer);
  if (!table.empty()) out += table.text();
  out += fmt::format("beside {} ({}): {} slower, {} faster, {} within the spread", name,
                     older.value("commit", "of an unknown commit"), slower, faster, alike);
  return out + (lacking ? fmt::format(", {} not in it\n", lacking) : std::string("\n"));
}

}  // namespace rooftile::cli
