#include "rooftile/harness/report/report.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "rooftile/harness/report/charts.h"
#include "rooftile/harness/report/claim.h"
#include "rooftile/harness/report/commands.h"
#include "rooftile/harness/report/record.h"
#include "rooftile/harness/report/sections.h"
#include "rooftile/harness/report/tables.h"
#include "rooftile/harness/report/traces.h"
#include "rooftile/harness/report/validate.h"

namespace rooftile::harness {

// Made by cmake/embed.cmake from report/page.html, page.css, page.js and Chart.js' chart.min.js.
extern const std::string_view kReportHtml;
extern const std::string_view kReportCss;
extern const std::string_view kReportJs;
extern const std::string_view kChartJs;

namespace {

using report::Json;

/// `{{name}}` in the template becomes the value. One pass, so that braces inside a value stay what they are.
std::string expand(std::string_view page,
                   const std::vector<std::pair<std::string_view, std::string>>& values) {
  std::string out;
  while (true) {
    const std::size_t open = page.find("{{");
    const std::size_t close = open == page.npos ? page.npos : page.find("}}", open);
    if (close == page.npos) return out.append(page);
    out += page.substr(0, open);
    const std::string_view name = page.substr(open + 2, close - open - 2);
    for (const auto& [key, value] : values)
      if (key == name) out += value;
    page.remove_prefix(close + 2);
  }
}

/// "Chart.js 3.9.1" as the inlined file's own notice calls itself.
std::string chart_js_name() {
  const std::size_t start = kChartJs.find("Chart.js v");
  if (start == kChartJs.npos) return "Chart.js";
  const std::string_view rest = kChartJs.substr(start + 10, 20);
  return "Chart.js " + report::escape(rest.substr(0, rest.find_first_of(" \r\n*")));
}

/// A script of the page runs only with this token, so that nothing in the record could run even if it got
/// through the escaping. FNV-1a of the record: a record cannot well contain its own hash, and the same record
/// gives the same page.
std::string nonce(std::string_view text) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return fmt::format("{:016x}", hash);
}

std::string about(const report::Record& record) {
  std::vector<std::string> parts;
  for (const char* part : {"device", "cpu"})
    if (const std::string name = report::text(record.machine, part); !name.empty())
      parts.push_back(report::escape(name));
  if (!record.date.empty()) parts.push_back(report::escape(report::date(record.date)));
  if (!record.version.empty()) parts.push_back("rooftile " + report::escape(record.version));
  if (!record.command.empty()) parts.push_back("<code>" + report::escape(record.command) + "</code>");
  return fmt::format("{}", fmt::join(parts, " · "));
}

/// More than a few are folded: who reads a page wants its figures first.
std::string notes(const Json& record) {
  constexpr std::size_t kFew = 4;
  std::string out;
  std::set<std::string> said;  // by another record already
  for (const Json& note : report::list(record, "notes"))
    if (note.is_string() && said.insert(note.get<std::string>()).second)
      out += "<li>" + report::escape(note.get<std::string>()) + "</li>\n";
  if (out.empty()) return "";
  out = "<ul class=\"notes\">\n" + out + "</ul>\n";
  return said.size() <= kFew ? out : report::details(fmt::format("{} notes", said.size()).c_str(), out);
}

}  // namespace

Status validate_record(const nlohmann::json& record) { return report::validate(record); }

std::string render_report(const nlohmann::json& record, const ReportOptions& options) {
  // Written and read again, so that from here on text is valid UTF-8 and no number is NaN or infinite.
  const std::string dump = record.dump(-1, ' ', false, Json::error_handler_t::replace);
  const Json clean = Json::parse(dump, nullptr, false);
  report::Record parsed = report::parse_record(clean);
  parsed.docs_url = options.docs_url;
  const std::string cpu = report::text(parsed.machine, "cpu");
  return expand(kReportHtml, {{"title", "rooftile report" + (cpu.empty() ? "" : ": " + report::escape(cpu))},
                              {"nonce", nonce(dump)},
                              {"css", std::string(kReportCss)},
                              {"about", about(parsed)},
                              {"failed", report::failed_checks(parsed) + report::busy_machine(parsed)},
                              {"first_chart", report::first_chart(parsed)},
                              {"headline", report::headline(parsed)},
                              {"notes", notes(clean)},
                              {"machine", report::machine(parsed)},
                              {"roofline", report::roofline(parsed)},
                              {"speed", report::speed(parsed)},
                              {"ladders", report::ladder(parsed) + report::traces(parsed)},
                              {"baselines", report::baselines(parsed)},
                              {"errors", report::errors(parsed)},
                              {"gallery", report::gallery(report::list(clean, "gallery"))},
                              {"results", report::all_results(parsed)},
                              {"commands", report::commands()},
                              {"data", report::escape_script_json(report::chart_data(parsed).dump())},
                              {"chart_js", std::string(kChartJs)},
                              {"chart_js_name", chart_js_name()},
                              {"js", std::string(kReportJs)}});
}

}  // namespace rooftile::harness
