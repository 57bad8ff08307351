#include "rooftile/harness/check/check.h"

#include <set>

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

std::string check_table(const std::vector<harness::CheckResult>& results) {
  Table table({"function", "variant", "isa", "dtype", ">cases", ">refused", ">wrong results", ">of tolerance",
               ">rms", "verdict"});
  for (const harness::CheckResult& r : results)
    table.add({r.function, r.variant, r.isa, r.dtype, std::to_string(r.cases),
               r.refused ? std::to_string(r.refused) : "",
               r.wrong_results ? fmt::format("{} of {}", r.rejected, r.wrong_results) : "",
               r.ok() && r.applicable() ? fmt::format("{:.3f}", r.worst_of_tolerance)
                                        : "-",  // a failure has no size
               fmt::format("{:.3f}", r.rms_of_tolerance),
               !r.ok()          ? fmt::format("FAILED ({} of {})", r.cases - r.passed, r.cases)
               : r.applicable() ? "ok"
                                : "not applicable"});
  return table.text();
}

}  // namespace

int check(const CheckArguments& arguments) {
  const Selection& selection = arguments.selection;
  const std::vector<const Op*> ops = select_ops(selection.ops, selection.direction);
  check_variants(ops, selection.variants, selection.device);
  check_distinct(arguments.json, arguments.csv);
  check_destination(arguments.json);
  check_destination(arguments.csv);

  if (arguments.versions) return check_versions(arguments, functions_of(ops));

  harness::CheckOptions options;
  options.functions = functions_of(ops);
  options.variants = selection.variants;
  options.isas = isas_of(selection.device, selection.isas);
  options.dtypes = parse_dtypes(selection.dtypes);
  options.quick = arguments.quick;
  options.huge = arguments.huge;
  options.listed = !arguments.random_only;
  options.random_cases = arguments.random_cases;
  options.seed = static_cast<std::uint64_t>(arguments.seed);
  options.cancel = &interrupted();
  std::vector<harness::CheckResult> results;
  {
    const Cancellable cancellable;
    ProgressBar bar("checking");
    options.progress = [&](const harness::Progress& progress) { bar.update(progress); };
    results = harness::check(options);
  }
  stop_if_interrupted();
  if (results.empty())
    refuse("no check fits these options; `rooftile list` shows functions, dtypes and variants");

  std::size_t failed = 0, checks = 0;
  int cases = 0, wrong_results = 0, rejected = 0;
  for (const harness::CheckResult& r : results) {
    failed += !r.ok(), checks += r.applicable(), cases += r.cases;
    wrong_results += r.wrong_results, rejected += r.rejected;
  }
  if (arguments.json != "-" && arguments.csv != "-") {
    print_text(check_table(results));
    for (const harness::CheckResult& r : results)
      for (const std::string& failure : r.failures) say("{}\n", failure);
    std::set<std::string> notes;
    for (const harness::CheckResult& r : results) notes.insert(r.notes.begin(), r.notes.end());
    for (const std::string& note : notes) say("note: {}\n", note);
    if (wrong_results)
      say("wrong results (that the cases must tell from the right one): {} of {} rejected\n", rejected,
          wrong_results);
    say("{} cases, {}{}\n", cases,
        checks < results.size() ? fmt::format("{} checks not applicable, ", results.size() - checks) : "",
        failed   ? fmt::format("{} of {} checks FAILED", failed, checks)
        : checks ? fmt::format("{} checks, all ok", checks)
                 : "nothing was checked");
  }
  const nlohmann::json rows = to_json(results);
  if (!arguments.csv.empty()) write_destination(arguments.csv, checks_csv(rows));
  if (!arguments.json.empty()) {
    nlohmann::json record = new_record();
    record["machine"] = harness::to_json(machine_of(Queue::cpu({.threads = 1})));
    record["checks"] = rows;
    write_destination(arguments.json, dump(record));
  }
  if (checks == 0 && !arguments.huge)
    refuse(
        "nothing was checked: these variants take none of the cases; leave out --quick, or name another "
        "--dtype");
  return failed ? kFailedCheck : kOk;
}

}  // namespace rooftile::cli
