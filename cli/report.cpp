#include "rooftile/harness/report/report.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <optional>

#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/gallery.h"
#include "cli/interrupt.h"
#include "cli/one_case.h"
#include "cli/output.h"
#include "cli/progress_bar.h"
#include "cli/record.h"
#include "rooftile/harness/bench/bench.h"

namespace rooftile::cli {
namespace {

// What `make report` grants; the check takes some 30 seconds beside.
constexpr double kBenchSeconds = 120;

/// Checks, times and draws on this machine; `failed` counts checks.
nlohmann::json measure(const Image& picture, const std::string& photo, bool quiet, std::size_t& failed) {
  const Queue queue = Queue::cpu();
  if (const Status s = queue.status(); !s) throw Failure(kTrouble, s.message());
  const Cancellable cancellable;

  harness::CheckOptions checking;
  checking.quick = true;
  checking.isas = {queue.isa()};
  checking.cancel = &interrupted();
  std::vector<harness::CheckResult> checks;
  {
    ProgressBar bar("1/2 checking");
    checking.progress = [&](const harness::Progress& progress) { bar.update(progress); };
    checks = harness::check(checking);
  }
  stop_if_interrupted();
  failed =
      static_cast<std::size_t>(std::count_if(checks.begin(), checks.end(), [](auto& c) { return !c.ok(); }));
  if (!quiet)
    say("checked:  {} of {} variants and dtypes are right\n", checks.size() - failed, checks.size());
  for (const harness::CheckResult& c : checks)
    for (const std::string& failure : c.failures)
      if (!quiet) say("FAILED:   {} {} {}: {}\n", c.function, c.variant, c.dtype, failure);
  flush_output();

  harness::BenchOptions timing;
  timing.scope = harness::Scope::report;
  timing.isas = {queue.isa()};
  timing.seconds = kBenchSeconds;
  timing.cancel = &interrupted();
  nlohmann::json record;
  {
    ProgressBar bar("2/2 measuring");
    timing.progress = [&](const harness::Progress& progress) { bar.update(progress); };
    record = harness::bench(timing);
  }
  stop_if_interrupted();
  if (!quiet) say("measured: {} times\n", record.value("results", nlohmann::json::array()).size());
  stamp(record);
  // The page has no place of its own for rows that could not be believed; its notes say so.
  for (const nlohmann::json& error : record.value("errors", nlohmann::json::array()))
    record["notes"].push_back("left out: " + error.get<std::string>());
  record["checks"] = to_json(checks);
  record["gallery"] = gallery(queue, picture, photo);
  stop_if_interrupted();
  return record;
}

/// What may stand in a link's path, the rest as %20.
std::string percent_encoded(const std::string& path) {
  std::string out;
  for (const char c : path) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || std::strchr("-_.~/", c) != nullptr;
    out += plain && c != '\0' ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

/// The way from the page to the lessons: as the caller says, else to a checkout in the current folder or
/// above this command; none where there is no such.
std::optional<std::string> lessons(const ReportArguments& arguments) {
  if (arguments.docs_url) {
    const std::string& url = *arguments.docs_url;
    return url.empty() || url.ends_with('/') ? url : url + "/";
  }
  namespace fs = std::filesystem;
  std::error_code error;
  const std::vector<std::string> folders = source_folders();
  const auto checkout = std::find_if(folders.begin(), folders.end(), [&](const std::string& folder) {
    return fs::exists(fs::path(folder) / "rooftile/ops", error);
  });
  if (checkout == folders.end()) return {};
  const fs::path page = arguments.out == "-" ? fs::path(".") : fs::absolute(arguments.out).parent_path();
  const fs::path way = fs::relative(*checkout, fs::weakly_canonical(page, error), error);
  if (error || way.empty()) return {};
  return way == "." ? "" : percent_encoded(way.string()) + "/";
}

}  // namespace

int report(const ReportArguments& arguments) {
  check_distinct(arguments.out, arguments.json);
  check_destination(arguments.out);
  check_destination(arguments.json);
  const bool quiet = arguments.out == "-" || arguments.json == "-";
  std::size_t failed = 0;
  nlohmann::json record;
  if (!arguments.from.empty()) {
    record = merge_records(arguments.from);
  } else {
    Image picture;
    if (arguments.photo.empty())
      picture = generated_picture(1920, 1280);
    else if (const Status s = load_image(arguments.photo, picture); !s)
      throw Failure(kTrouble, s.message());
    record = measure(picture, arguments.photo, quiet, failed);
  }
  const std::string page = harness::render_report(record, {.docs_url = lessons(arguments)});
  if (!arguments.json.empty()) write_destination(arguments.json, dump(record));
  write_destination(arguments.out, page);
  std::error_code unresolved;
  const auto place = std::filesystem::canonical(arguments.out, unresolved);
  if (!quiet) say("report:   {}\n", unresolved ? arguments.out : place.string());
  return failed ? kFailedCheck : kOk;
}

}  // namespace rooftile::cli
