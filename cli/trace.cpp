#include "rooftile/harness/course/trace.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/answers.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/output.h"
#include "cli/record.h"
#include "cli/table.h"

namespace rooftile::cli {
namespace {

std::string per_request(std::uint64_t count, std::uint64_t requests) {
  if (count == 0 || requests == 0) return "";
  const double ratio = static_cast<double>(count) / static_cast<double>(requests);
  return count % requests == 0 ? std::to_string(count / requests) : fmt::format("{:.2f}", ratio);
}

std::string line_table(const harness::Trace& trace) {
  Table table(
      {"line", "access", ">requests", ">sectors each", ">used", ">wavefronts each", ">conflicts", "source"});
  for (const harness::TracedLine& l : trace.lines) {
    const emulated::TraceLine& counts = l.counts;
    const std::string file = std::filesystem::path(l.file).filename().string();
    const bool shared = counts.wavefronts > 0;
    table.add({fmt::format("{}:{}", file, counts.line), harness::access_name(counts.kind),
               std::to_string(counts.requests), per_request(counts.sectors, counts.requests),
               counts.sectors ? fmt::format("{:.1f}%", 100 * counts.used_share()) : "",
               per_request(counts.wavefronts, counts.requests),
               shared ? std::to_string(counts.conflicts) : "", cut(l.text, 60)});
  }
  return table.text();
}

std::string total(const harness::Trace& trace) {
  const emulated::TraceTotals& t = trace.totals;
  return fmt::format(
      "{} launch{}. Global memory: {:.0f} bytes moved in {} sectors; {} different bytes, {} read and {} "
      "written;\nthe op's cases state {:.0f}.\n",
      t.launches, t.launches == 1 ? "" : "es", trace.moved_bytes(), t.sectors, t.different_bytes,
      t.read_bytes, t.written_bytes, trace.stated_bytes);
}

}  // namespace

int trace(const TraceArguments& arguments) {
  const OneCase one = one_case(arguments.what, false);
  check_variants({one.op}, arguments.variants);
  check_destination(arguments.json);
  check_taken(one, "");  // what the function refuses needs no device
  EmulatedOptions options;
  options.architecture = arguments.architecture;
  options.threads = 1;
  options.checked = true;
  const Queue queue = Queue::emulated(options);
  if (const Status s = queue.status(); !s) throw Failure(kTrouble, s.message());
  const std::vector<std::string> variants = variants_of(*one.op, arguments.variants, arguments.all, queue);
  check_memory(one);

  nlohmann::json traces = nlohmann::json::array();
  std::string found;
  for (const std::string& variant : variants) {
    harness::Trace trace;
    try {
      trace = harness::trace(queue, *one.spec, one.c, variant, source_folders());
    } catch (const std::exception& e) {
      // Of several, one that does not take this case is no reason to stop.
      if (!arguments.all) throw Failure(kFailedCheck, e.what());
      if (arguments.json != "-") say("{} {}: {}\n\n", one.text(), variant, e.what());
      continue;
    }
    traces.push_back(harness::to_json(trace, queue, *one.spec, one.c));
    if (!trace.finding.empty()) found = fmt::format("{}: {}", trace.variant, trace.finding);
    if (arguments.json == "-") continue;
    say("{} {} on {}\n{}{}\n", one.text(), trace.variant, queue.isa(), line_table(trace), total(trace));
    flush_output();
  }
  if (traces.empty()) throw Failure(kFailedCheck, one.text() + ": no variant takes this case");
  if (!arguments.json.empty()) {
    nlohmann::json record = new_record();
    record["traces"] = std::move(traces);
    write_destination(arguments.json, dump(record));
  }
  if (!found.empty()) throw Failure(kFailedCheck, found);
  return kOk;
}

}  // namespace rooftile::cli
