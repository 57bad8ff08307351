#include "rooftile/harness/course/versions.h"

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress_bar.h"
#include "cli/record.h"
#include "cli/table.h"

namespace rooftile::cli {
namespace {

using harness::VersionResult;

std::string verdict(const VersionResult& r) {
  if (r.trap.empty())
    return r.ok() ? "ok" : fmt::format("FAILED ({} of {})", r.accepted - r.passed, r.accepted);
  return r.ok() ? fmt::format("trap, rejected by {}", r.accepted - r.passed) : "FAILED: trap, not rejected";
}

/// "accepted 310 of 420 cases; not: 60 bf16, 50 strided".
std::string left_out(const VersionResult& r) {
  std::string text;
  for (const auto& [what, count] : r.declined)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
  return text;
}

std::string versions_table(const std::vector<VersionResult>& results) {
  Table table({"version", "language", ">accepted", ">of tolerance", "verdict", "not accepted"});
  for (const VersionResult& r : results)
    table.add({r.name, r.language + " " + r.library, fmt::format("{} of {} cases", r.accepted, r.cases),
               r.ok() && r.trap.empty() ? fmt::format("{:.3f}", r.worst_of_tolerance) : "-", verdict(r),
               left_out(r)});
  return table.text();
}

nlohmann::json to_json(const VersionResult& r) {
  return {{"function", r.function},
          {"version", r.name},
          {"language", r.language},
          {"library", r.library},
          {"trap", r.trap},
          {"cases", r.cases},
          {"accepted", r.accepted},
          {"passed", r.passed},
          {"declined", r.declined},
          {"failures", r.failures},
          {"worst_of_tolerance", r.worst_of_tolerance}};
}

}  // namespace

int check_versions(const CheckArguments& arguments, const std::vector<std::string>& functions) {
  const Selection& selection = arguments.selection;
  if (selection.device != "cpu" && selection.device != "cuda")
    refuse("--versions run on the CPU or on a GPU, --device is {}; name cpu or cuda", selection.device);
  if (!selection.variants.empty() || !selection.isas.empty())
    refuse("--versions are no variants of the library: leave out --variant and --isa");
  if (!arguments.csv.empty()) refuse("--versions write no CSV; name --json");
  harness::VersionOptions options;
  options.functions = functions;
  options.languages = arguments.languages;
  options.dtypes = parse_dtypes(selection.dtypes);
  options.cuda = selection.device == "cuda";
  options.quick = arguments.quick;
  options.seed = static_cast<std::uint64_t>(arguments.seed);
  options.cancel = &interrupted();
  harness::VersionResults all;
  {
    const Cancellable cancellable;
    ProgressBar bar("checking versions");
    options.progress = [&](const harness::Progress& progress) { bar.update(progress); };
    all = harness::check_versions(options);
  }
  stop_if_interrupted();
  if (all.results.empty())
    refuse("no version fits these options{}{}", all.notes.empty() ? "" : ": ",
           all.notes.empty() ? "" : all.notes[0]);
  std::size_t failed = 0, traps = 0;
  for (const VersionResult& r : all.results) failed += !r.ok(), traps += !r.trap.empty();
  if (arguments.json != "-") {
    print_text(versions_table(all.results));
    for (const VersionResult& r : all.results) {
      if (!r.trap.empty())
        say("{} is a trap: {}; {}\n", r.name, r.trap, r.failures.empty() ? "" : r.failures[0]);
      if (r.trap.empty())
        for (const std::string& failure : r.failures) say("{}\n", failure);
    }
    for (const std::string& note : all.notes) say("note: {}\n", note);
    say("{} versions and {} traps, {}\n", all.results.size() - traps, traps,
        failed ? fmt::format("{} FAILED", failed) : "all ok");
  }
  if (!arguments.json.empty()) {
    nlohmann::json record = new_record();
    record["versions"] = nlohmann::json::array();
    for (const VersionResult& r : all.results) record["versions"].push_back(to_json(r));
    record["notes"] = all.notes;
    write_destination(arguments.json, dump(record));
  }
  return failed ? kFailedCheck : kOk;
}

}  // namespace rooftile::cli
