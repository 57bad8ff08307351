#include "rooftile/harness/bench/bench.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <set>
#include <stdexcept>

#include "rooftile/backend/cpu/isa.h"
#include "rooftile/harness/bench/bench_plan.h"
#include "rooftile/harness/bench/bench_row.h"

namespace rooftile::harness {
namespace {

using nlohmann::json;

constexpr double kReportSeconds = 120;

struct Pace {
  double cached, memory;  // seconds of racing a row
  int most;               // samples
};
Pace pace_of(Scope scope) {
  switch (scope) {
    case Scope::report:
      return {0.25, 0.5, 51};
    case Scope::standard:
      return {0.6, 1.5, 101};
    case Scope::full:
      return {1, 2.5, 201};
  }
  return {1, 1, 101};
}

/// Those asked for; else the best, and for everything all that are built here and run here.
std::vector<std::string> isas_of(const BenchOptions& options, BenchSession& session) {
  if (!options.isas.empty()) {
    for (const std::string& isa : options.isas) (void)session.queue(isa, 1);  // throws with the sentence
    return options.isas;
  }
  std::vector<std::string> isas = {session.queue("", 1).isa()};
  if (options.scope != Scope::full) return isas;
  for (const cpu::Isa isa : {cpu::Isa::avx512, cpu::Isa::avx2, cpu::Isa::baseline}) {
    if (cpu::name(isa) == isas.front() || !cpu::supported(isa)) continue;
    try {
      (void)session.queue(cpu::name(isa), 1);
      isas.push_back(cpu::name(isa));
    } catch (const std::exception&) {  // not built
    }
  }
  return isas;
}

/// A plot's sizes: until memory alone serves, and operands, the copy's and the baselines' have room.
SeriesRange series_range() {
  const double past_caches =
      std::clamp(8 * static_cast<double>(last_level_cache_bytes()), 67108864., 1073741824.);
  return {4096, std::min(past_caches, static_cast<double>(available_memory_bytes()) / 6)};
}

}  // namespace

json bench(const BenchOptions& options) {
  const std::int64_t start = now_ns();
  const auto seconds_so_far = [&] { return static_cast<double>(now_ns() - start) * 1e-9; };
  const double end = options.seconds > 0              ? options.seconds
                     : options.scope == Scope::report ? kReportSeconds
                                                      : 1e18;
  const auto cancelled = [&] { return options.cancel && options.cancel->load(); };
  const auto say = [&](std::int64_t done, std::int64_t total, const std::string& what) {
    if (options.progress) options.progress({done, total, what});
  };
  json notes = json::array(), errors = json::array(), results = json::array();

  Machine machine = describe_machine();
  Roofs& roofs = shared_roofs();
  BenchSession preparing(roofs, machine, nullptr);
  PlanOptions limits{last_level_cache_bytes(), machine.cores, isas_of(options, preparing), series_range()};
  const std::vector<BenchRow> rows =
      plan_rows(options, limits, all_specs());  // throws before anything is measured
  if (rows.empty()) throw std::invalid_argument(kNoCase);
  const Queue best = preparing.queue(limits.isas.front(), 1);
  machine.isa = best.isa();
  machine.isa_reason = best.isa_reason();

  const auto total = static_cast<std::int64_t>(rows.size());
  say(0, total, "baselines");
  std::unique_ptr<Baselines> baselines;
  if (options.baselines)
    baselines =
        std::make_unique<Baselines>(options.baselines_folder, options.baseline_names, options.versions);
  if (options.roofs && !cancelled()) {
    say(0, total, "the machine's roofs");
    roofs.measure(machine);
  }
  BenchSession session(roofs, machine, baselines.get());
  json overheads = json::array();
  if (!cancelled()) overheads = measure_overheads(best, session.queue(limits.isas.front(), machine.cores));

  // What a row took so far at most, racing and preparing: what the next of its kind may take.
  double worst_cached = 1.5, worst_memory = 5;
  std::int64_t done = 0, late = 0;
  std::string first_late;
  const auto so_far = [&] {
    json all = notes;
    if (late > 0)
      all.push_back(fmt::format("time was short: {} of {} rows were not measured, the first of them {}", late,
                                total, first_late));
    if (done + late < total)
      all.push_back(fmt::format("stopped early: {} of {} rows were measured", results.size(), total));
    for (const std::string& note : roofs.notes()) all.push_back(note);
    if (baselines)
      for (const std::string& note : baselines->notes()) all.push_back(note);
    return json{{"schema", 1},
                {"rooftile", ROOFTILE_VERSION},
                {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
                {"command", options.command},
                {"machine", to_json(machine)},
                {"overheads", overheads},
                {"results", results},
                {"errors", errors},
                {"notes", std::move(all)}};
  };
  const Pace pace = pace_of(options.scope);
  for (const BenchRow& row : rows) {
    if (cancelled()) break;
    const bool large =
        row.spec->bytes && row.spec->bytes(row.c) > 2 * static_cast<double>(last_level_cache_bytes());
    double& worst = large ? worst_memory : worst_cached;
    const double began = seconds_so_far();
    if (began + worst > end && !results.empty()) {  // one row at least, however short the time
      if (late++ == 0) first_late = describe(row);
      continue;
    }
    say(done, total, describe(row));
    const double wish = large ? pace.memory : pace.cached;
    const double share = (end - began) / static_cast<double>(total - done);
    Outcome outcome = session.measure(row, std::clamp(share * 0.5, 0.05, wish), pace.most, options.cancel);
    if (outcome.cancelled) break;
    ++done;
    worst = std::max(worst, seconds_so_far() - began);
    if (outcome.result) results.push_back(std::move(*outcome.result));
    if (!outcome.error.empty()) errors.push_back(outcome.error);
    if (!outcome.refused.empty() && options.scope != Scope::full) notes.push_back(outcome.refused);
    if (options.save) options.save(so_far());
  }
  session.release_memory();
  roofs.release_memory();
  say(done, total, "");
  return so_far();
}

}  // namespace rooftile::harness
