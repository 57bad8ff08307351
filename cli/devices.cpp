#include <climits>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/bench_table.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/gpus.h"
#include "cli/output.h"
#include "cli/progress_bar.h"
#include "cli/record.h"
#include "cli/table.h"
#include "rooftile/backend/cpu/cpu_count.h"
#include "rooftile/backend/cpu/isa.h"
#include "rooftile/backend/cpu/tuning.h"
#include "rooftile/harness/bench/roofs.h"
#include "rooftile/runtime/queue_state.h"

namespace rooftile::cli {
namespace {

constexpr cpu::Isa kIsas[] = {cpu::Isa::avx512, cpu::Isa::avx2, cpu::Isa::baseline};

struct BuiltIsa {
  std::string name, state;
};

/// Which plug-ins there are beside the one in use, and what keeps the others from running.
std::vector<BuiltIsa> isas(const Queue& queue) {
  std::vector<BuiltIsa> all;
  for (const cpu::Isa isa : kIsas) {
    const std::string name = cpu::name(isa);
    const std::filesystem::path folder = queue.state().backend->folder;
    std::error_code ignored;
    const bool built = std::filesystem::exists(folder / ("rooftile-cpu-" + name + ".so"), ignored);
    std::string state = built ? "built" : "not built";
    if (const char* why = cpu::missing(isa))
      state += fmt::format(", cannot run here: {}", why);
    else if (name == queue.isa())
      state += ", in use";
    all.push_back({name, state});
  }
  return all;
}

std::string threads_reason(int threads) {
  const int affinity = cpu::affinity_cpus(), quota = cpu::cgroup_cpus();
  const std::string granted = quota == INT_MAX ? std::string("no cgroup quota limits it")
                                               : fmt::format("its cgroup's quota is worth {}", quota);
  return fmt::format("{}: this process may run on {} CPU{}, {}", threads, affinity, affinity == 1 ? "" : "s",
                     granted);
}

std::string cache_table(const harness::Machine& machine) {
  Table table({"cache", ">reported", ">effective", ">shared by"});
  for (const harness::Cache& cache : machine.caches)
    table.add({fmt::format("L{} {}", cache.level, cache.kind), in_bytes(static_cast<double>(cache.bytes)),
               cache.effective_bytes ? in_bytes(static_cast<double>(cache.effective_bytes)) : std::string(),
               std::to_string(cache.shared_by)});
  return table.text("  ");
}

std::string level_table(const harness::Machine& machine) {
  Table table({"level", ">threads", ">footprint", ">read GB/s", ">write GB/s", ">copy GB/s"});
  for (const harness::LevelRate& level : machine.levels)
    table.add({level.name, std::to_string(level.threads),
               in_bytes(static_cast<double>(level.footprint_bytes)), fmt::format("{:.1f}", level.read_gbs),
               fmt::format("{:.1f}", level.write_gbs), fmt::format("{:.1f}", level.copy_gbs)});
  return table.text("  ");
}

std::string peak_table(const harness::Machine& machine) {
  Table table({"instructions", "dtype", "isa", ">threads", ">GFLOP/s"});
  for (const harness::PeakRate& peak : machine.peaks)
    table.add(
        {peak.name, peak.dtype, peak.isa, std::to_string(peak.threads), fmt::format("{:.1f}", peak.gflops)});
  return table.text("  ");
}

}  // namespace

int devices(const DevicesArguments& arguments) {
  check_destination(arguments.json);
  const Queue queue = Queue::cpu();
  if (const Status s = queue.status(); !s) throw Failure(kTrouble, s.message());
  harness::Machine machine = machine_of(queue);
  if (arguments.measure) {
    ProgressBar bar("measuring");
    bar.say("caches, memory and arithmetic, some 15 seconds");
    harness::shared_roofs().measure(machine);
  }
  GpuReport gpu;
  {
    ProgressBar bar("measuring");
    if (arguments.measure) bar.say("GPUs, where there are any");
    gpu = gpus(arguments.measure);
  }
  const std::vector<BuiltIsa> built = isas(queue);
  const cpu::Tuning& tuning = cpu::tuning();

  if (arguments.json != "-") {
    say("CPU              {}\n", machine.cpu);
    say("System           {}\n", machine.os);
    say("Built by         {}\n", machine.compiler);
    say("Memory           {}\n", in_bytes(static_cast<double>(machine.memory_bytes)));
    say("Instruction set  {}\n", machine.isa_reason);
    for (const BuiltIsa& isa : built) say("                 {:9}{}\n", isa.name, isa.state);
    say("Threads          {}\n", threads_reason(queue.threads()));
    say("Streaming from   {} moved: calls that move more bypass the caches (last-level cache {})\n",
        in_bytes(static_cast<double>(queue.streaming_bytes())),
        tuning.last_level_bytes ? in_bytes(static_cast<double>(tuning.last_level_bytes)) : "unknown");
    say("\nCaches, as the system reports them and as measured\n{}", cache_table(machine));
    if (!machine.levels.empty())
      say("\nBandwidth, the best kernel at each level (a copy's bytes count twice)\n{}",
          level_table(machine));
    say("{}", contradictions_text(machine.levels));
    if (!machine.peaks.empty())
      say("\nArithmetic, measured by loops of nothing else\n{}", peak_table(machine));
    for (const std::string& note : harness::shared_roofs().notes()) say("note: {}\n", note);
    say("\n{}", gpu.text);
  }
  if (!arguments.json.empty()) {
    nlohmann::json record = new_record();
    record["machine"] = harness::to_json(machine);
    nlohmann::json& to = record["machine"];
    for (const BuiltIsa& isa : built) to["isas"].push_back({{"name", isa.name}, {"state", isa.state}});
    to["usable_threads"] = queue.threads();
    to["threads_reason"] = threads_reason(queue.threads());
    to["streaming_bytes"] = queue.streaming_bytes();
    to["gpus"] = gpu.gpus;
    to["no_gpu"] = gpu.missing.empty() ? nlohmann::json() : nlohmann::json(gpu.missing);
    to["emulated_gpu"] = gpu.played;
    if (arguments.measure) record["notes"] = harness::shared_roofs().notes();
    write_destination(arguments.json, dump(record));
  }
  return kOk;
}

}  // namespace rooftile::cli
