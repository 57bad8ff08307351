#include "cli/record.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <system_error>

#include "cli/failure.h"
#include "rooftile/harness/bench/commit.h"
#include "rooftile/harness/bench/doubts.h"
#include "rooftile/harness/report/report.h"

namespace rooftile::cli {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxFileBytes = std::size_t{256} << 20;
// A record nests five deep. Deeper ones are refused, because writing JSON recurses.
constexpr int kMaxDepth = 32;

std::string command_line;

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm parts{};
  char text[32] = "";
  if (::gmtime_r(&seconds, &parts)) std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string quoted(const std::string& word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./=,:+@").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// A value as a CSV cell, quoted where RFC 4180 wants it.
std::string cell(const Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

std::string read_text(const std::string& path) {
  const bool standard = path == "-";
  const int fd = standard ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const auto give_up = [&](const std::string& why) {
    if (!standard && fd >= 0) ::close(fd);
    fail("{}: cannot be read: {}", path, why);
  };
  const auto reason = [] { return std::generic_category().message(errno); };
  struct stat info {};
  if (fd < 0) give_up(reason());
  if (::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) give_up("it is a folder");
  std::string text;
  char piece[1 << 16];
  while (true) {
    const ssize_t got = ::read(fd, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) give_up(reason());
    if (got == 0) break;
    text.append(piece, static_cast<std::size_t>(got));
    if (text.size() > kMaxFileBytes) give_up("it is larger than 256 MiB, more than any record");
  }
  if (!standard) ::close(fd);
  return text;
}

void set_command_line(int argc, char** argv) {
  command_line = "rooftile";
  for (int i = 1; i < argc; ++i) command_line += " " + quoted(argv[i]);
}

Json new_record() {
  Json record = {{"schema", 1}};
  stamp(record);
  return record;
}

void stamp(Json& record) {
  record["rooftile"] = ROOFTILE_VERSION;
  record["commit"] = harness::commit();
  record["date"] = now();
  record["command"] = command_line;
  if (record.contains("results")) harness::write_doubts(record["results"]);
}

harness::Machine machine_of(const Queue& queue) {
  harness::Machine machine = harness::describe_machine();
  machine.isa = queue.isa();
  machine.isa_reason = queue.isa_reason();
  return machine;
}

Json to_json(const std::vector<harness::CheckResult>& results) {
  Json all = Json::array();
  for (const harness::CheckResult& r : results) {
    Json bins = Json::array();
    for (std::size_t i = 0; i < r.ulp_histogram.size(); ++i) {
      const std::string most = std::to_string(i == 0 ? 0 : 1ull << std::min<std::size_t>(i - 1, 63));
      bins.push_back({{"ulp", i == 0 ? most : "≤" + most}, {"count", r.ulp_histogram[i]}});
    }
    all.push_back({{"function", r.function},
                   {"op", r.op},
                   {"direction", r.direction},
                   {"variant", r.variant},
                   {"isa", r.isa},
                   {"dtype", r.dtype},
                   {"cases", r.cases},
                   {"passed", r.passed},
                   {"refused", r.refused},
                   {"impostors", r.wrong_results},
                   {"impostors_rejected", r.rejected},
                   {"verdict", !r.ok()          ? "failed"
                               : r.applicable() ? "ok"
                                                : "not applicable"},
                   {"worst_of_tolerance", r.worst_of_tolerance},
                   {"rms_of_tolerance", r.rms_of_tolerance},
                   {"ulp_histogram", bins},
                   {"failures", r.failures},
                   {"notes", r.notes}});
  }
  return all;
}

std::string text(const Json& row, const char* name) {
  const auto found = row.find(name);
  return found != row.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string dump(const Json& json) { return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string checks_csv(const Json& checks) {
  constexpr const char* kColumns[] = {"function",
                                      "op",
                                      "direction",
                                      "variant",
                                      "isa",
                                      "dtype",
                                      "cases",
                                      "passed",
                                      "refused",
                                      "impostors",
                                      "impostors_rejected",
                                      "worst_of_tolerance",
                                      "rms_of_tolerance",
                                      "verdict"};
  std::string out = fmt::format("{}\n", fmt::join(kColumns, ","));
  for (const Json& check : checks) {
    std::vector<std::string> cells;
    for (const char* column : kColumns) cells.push_back(cell(check.at(column)));
    out += fmt::format("{}\n", fmt::join(cells, ","));
  }
  return out;
}

Json read_record(const std::string& path) {
  const std::string text = read_text(path);
  if (text.empty()) fail("{}: is empty, expected a record as --json writes it", path);
  Json record;
  try {
    record = Json::parse(text, [&](int depth, Json::parse_event_t, Json&) {
      if (depth > kMaxDepth) fail("{}: nests deeper than {}, as no record does", path, kMaxDepth);
      return true;
    });
  } catch (const Json::exception& e) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: …; last read: '…'; expected …"
    std::string why = e.what();
    if (const std::size_t at = why.find("] "); at != why.npos) why.erase(0, at + 2);
    if (const std::size_t at = why.find("; last read"); at != why.npos) why.erase(at);
    fail("{}: is no JSON, or was cut short: {}", path, why.substr(0, 200));
  }
  if (const Status s = harness::validate_record(record); !s) fail("{}: {}", path, s.message());
  return record;
}

Json merge_records(const std::vector<std::string>& paths) {
  Json merged;
  std::string first;
  for (const std::string& path : paths) {
    Json record = read_record(path);
    if (merged.is_null()) {
      merged = std::move(record);
      first = path;
      continue;
    }
    Json& machine = merged["machine"];
    const Json other = record.value("machine", Json());
    if (other.is_object()) {
      for (const char* part : {"cpu", "device"})
        if (machine.is_object() && other.value(part, Json()) != machine.value(part, Json()))
          merged["notes"].push_back(
              fmt::format("{} was recorded on another machine than {}: {}", path, first,
                          other.value(part, Json()).dump(-1, ' ', false, Json::error_handler_t::replace)));
      if (!machine.is_object()) machine = other;
      // A check's record describes the machine, a benchmark's has measured it.
      for (const char* part : {"levels", "peaks"})
        if (machine.value(part, Json()).empty() && !other.value(part, Json()).empty()) machine = other;
    }
    for (const char* part : {"results", "checks", "traces", "gallery", "overheads", "errors", "notes"}) {
      if (merged[part].is_null()) merged[part] = Json::array();
      const Json more = record.value(part, Json());
      if (more.is_array()) merged[part].insert(merged[part].end(), more.begin(), more.end());
    }
  }
  return merged;
}

}  // namespace rooftile::cli
