#include "rooftile/harness/bench/bench.h"

#include <cstdio>
#include <filesystem>
#include <set>
#include <system_error>

#include "cli/arguments.h"
#include "cli/bench_table.h"
#include "cli/commands.h"
#include "cli/compare.h"
#include "cli/failure.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/plot.h"
#include "cli/progress_bar.h"
#include "cli/record.h"
#include "cli/table.h"
#include "rooftile/backend/cpu/cpu_count.h"
#include "rooftile/harness/bench/bench_gpu.h"
#include "rooftile/harness/bench/machine.h"
#include "rooftile/harness/check/runner.h"

namespace rooftile::cli {
namespace {

using Json = nlohmann::json;

std::vector<std::string> texts(const Json& record, const char* name) {
  std::vector<std::string> all;
  for (const Json& text : record.value(name, Json::array()))
    if (text.is_string()) all.push_back(text.get<std::string>());
  return all;
}

/// Shapes are refused before memory is taken for them.
void check_shapes(const std::vector<const Op*>& ops, const std::vector<harness::Shape>& shapes,
                  const std::vector<DType>& dtypes) {
  for (const Op* op : ops) {
    const harness::Spec* spec = harness::find_spec(op->function);
    if (!spec) continue;
    for (const harness::Shape& shape : shapes) {
      check_rank(*spec, shape);
      for (const DType type : dtypes.empty() ? spec->dtypes : dtypes) {
        harness::Case c;
        c.shape = shape;
        c.dtype = type;
        const double needed = operand_bytes(*spec, c);
        const double there = static_cast<double>(harness::available_memory_bytes());
        if (needed > there)
          fail("{} {} {} takes {}, and {} are available", op->function, to_text(shape), name(type),
               in_bytes(needed), in_bytes(there));
      }
    }
  }
}

/// More threads than CPUs would spin for each other's turns, and no row would end.
void check_threads(const BenchArguments& arguments) {
  const int cpus = cpu::usable_cpus();
  for (const int threads : arguments.threads) {
    if (arguments.selection.device != "cpu")
      refuse("--threads {}: threads are the CPU's, --device is {}", threads, arguments.selection.device);
    if (threads > cpus)
      refuse("--threads {}: this process may run on {} CPU{}; name {}", threads, cpus, cpus == 1 ? "" : "s",
             cpus == 1 ? std::string("1") : fmt::format("1 to {}", cpus));
  }
}

/// "2/3": the second of three.
void parse_part(const std::string& text, harness::BenchOptions& options) {
  int part = 0, parts = 0, end = 0;
  if (std::sscanf(text.c_str(), "%d/%d%n", &part, &parts, &end) != 2 ||
      text.size() != static_cast<std::size_t>(end) || part < 1 || part > parts || parts > 1000)
    refuse("--part is \"{}\", expected a part of up to 1000 as 2/3", text);
  options.part = part;
  options.parts = parts;
}

/// --baselines on, off or names; where nothing is said, all but on the emulated device, beside which they
/// mean nothing.
void choose_baselines(const BenchArguments& arguments, harness::BenchOptions& options) {
  const std::vector<std::string>& names = arguments.baseline_names;
  options.baselines =
      arguments.baselines && (!names.empty() || !arguments.selection.device.starts_with("emulated"));
  if (names == std::vector<std::string>{"off"}) options.baselines = false;
  if (options.baselines && names != std::vector<std::string>{"on"}) options.baseline_names = names;
  options.versions = arguments.versions;
  if (options.versions && !options.baselines)
    refuse("--versions are timed as baselines are; {}",
           names.empty() ? "name --baselines on, too" : "leave out --baselines off");
}

/// Writes the record to the files of --json and --csv; `last`: also to standard output, which gets it once.
void write_record(const BenchArguments& arguments, Json record, bool last) {
  stamp(record);
  const auto due = [&](const std::string& path) { return !path.empty() && (last || path != "-"); };
  const HoldSignals both;
  if (due(arguments.csv)) write_destination(arguments.csv, harness::to_csv(record));
  if (due(arguments.json)) write_destination(arguments.json, dump(record));
}

/// Writes one record of several parts.
int merge(const BenchArguments& arguments) {
  if (arguments.json.empty()) refuse("--merge needs --json FILE to write to");
  std::vector<Json> parts;
  for (const std::string& path : arguments.merge) parts.push_back(read_record(path));
  Json merged = harness::merge_parts(parts);
  stamp(merged);
  merged["commit"] = parts.front().value("commit", "unknown");  // of what was measured
  write_destination(arguments.json, dump(merged));
  if (arguments.json != "-")
    say("{} results of {} parts are in {}\n", merged["results"].size(), parts.size(), arguments.json);
  return kOk;
}

/// What calls cost the host on a GPU; empty for a CPU's record.
std::string overheads_text(const Json& record) {
  std::string out;
  for (const Json& line : record.value("overheads", Json::array()))
    if (line.contains("bare_ns"))
      out += fmt::format("{}{} {:.2f}", out.empty() ? "host time of a call, µs: " : ", ",
                         text(line, "name").substr(5), number(line, "whole_ns") * 1e-3);
  if (out.empty()) return out;
  return fmt::format("{}; a bare launch {:.2f}\n", out, number(record["overheads"][0], "bare_ns") * 1e-3);
}

/// --plot draws one whole run, in several sizes.
void check_plot(const BenchArguments& arguments) {
  if (!arguments.merge.empty() || !arguments.part.empty())
    refuse("--plot draws what one run measures; draw merged parts with `rooftile plot FILE DIR`");
  const std::set<std::string> sizes(arguments.shapes.begin(), arguments.shapes.end());
  if (sizes.size() == 1)
    refuse(
        "--plot draws speed against size, and --shape names one; name several, or leave it out for the op's "
        "own");
  check_picture_folder(arguments.plot);
}

}  // namespace

int bench(const BenchArguments& arguments) {
  if (!arguments.plot.empty()) check_plot(arguments);
  if (!arguments.merge.empty()) return merge(arguments);
  const bool on_cpu = arguments.selection.device == "cpu";
  if (on_cpu && (arguments.resume || !arguments.part.empty()))
    refuse("{} is for GPUs (--device cuda)", arguments.resume ? "--resume" : "--part");
  if (arguments.resume && (arguments.json.empty() || arguments.json == "-"))
    refuse("--resume needs --json FILE, which it goes on with");
  const Selection& selection = arguments.selection;
  const std::vector<const Op*> ops = select_ops(selection.ops, selection.direction);
  check_variants(ops, selection.variants, selection.device);
  check_distinct(arguments.json, arguments.csv);
  check_destination(arguments.json);
  check_destination(arguments.csv);
  check_threads(arguments);

  const Json older = arguments.compare.empty() ? Json() : read_record(arguments.compare);
  harness::BenchOptions options;
  options.functions = functions_of(ops);
  options.variants = selection.variants;
  options.isas = isas_of(selection.device, selection.isas);
  options.dtypes = parse_dtypes(selection.dtypes);
  options.shapes = parse_shapes(arguments.shapes);
  check_shapes(ops, options.shapes, options.dtypes);
  options.threads = arguments.threads;
  options.scope = arguments.full ? harness::Scope::full : harness::Scope::standard;
  options.series = !arguments.plot.empty();
  choose_baselines(arguments, options);
  options.baseline_seconds = arguments.baseline_seconds;
  options.seconds = arguments.seconds;
  if (!arguments.part.empty()) parse_part(arguments.part, options);
  std::error_code missing;
  if (arguments.resume && std::filesystem::exists(arguments.json, missing))
    options.resumed = read_record(arguments.json);
  options.save = [&](const Json& so_far) { write_record(arguments, so_far, false); };
  options.cancel = &interrupted();
  options.command = new_record()["command"].get<std::string>();
  Json record;
  {
    const Cancellable cancellable;
    ProgressBar bar("measuring");
    options.progress = [&](const harness::Progress& progress) { bar.update(progress); };
    if (on_cpu)
      record = harness::bench(options);
    else
      record = harness::bench_gpu(options, harness::Queues(selection.device).all.front().queue);
  }
  const Json results = record.value("results", Json::array());
  if (results.empty()) stop_if_interrupted();
  const std::vector<std::string> errors = texts(record, "errors"), notes = texts(record, "notes");
  if (results.empty())
    throw Failure(kFailedCheck, "nothing was measured: " + (!errors.empty()  ? errors[0]
                                                            : !notes.empty() ? notes[0]
                                                                             : "every row was left out"));
  if (arguments.json != "-" && arguments.csv != "-") {
    say("{}{}", bench_table(record), overheads_text(record));
    for (const std::string& error : errors) say("LEFT OUT: {}\n", error);
    for (const std::string& note : notes) say("note: {}\n", note);
    if (!older.is_null()) say("{}", comparison(arguments.compare, older, record));
  }
  write_record(arguments, record, true);
  stop_if_interrupted();
  if (!arguments.plot.empty()) {
    const std::string told = write_pictures(record, arguments.plot);
    if (told.empty()) throw Failure(kFailedCheck, "no picture was drawn: fewer than two sizes were measured");
    if (arguments.json != "-" && arguments.csv != "-") say("{}", told);
  }
  return errors.empty() ? kOk : kFailedCheck;
}

}  // namespace rooftile::cli
