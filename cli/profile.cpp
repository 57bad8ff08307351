#include "rooftile/harness/bench/ncu.h"

#include <fmt/format.h>

#include "cli/answers.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/record.h"
#include "cli/table.h"
#include "rooftile/harness/bench/once.h"
#include "rooftile/harness/course/trace.h"

namespace rooftile::cli {
namespace {

using harness::NcuKernel;

constexpr const char* kLoads = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum";
constexpr const char* kLoadSectors = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum";
constexpr const char* kStores = "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum";
constexpr const char* kStoreSectors = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum";
constexpr const char* kSharedLoads = "smsp__sass_inst_executed_op_shared_ld.sum";
constexpr const char* kSharedStores = "smsp__sass_inst_executed_op_shared_st.sum";
constexpr const char* kLoadWavefronts = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum";
constexpr const char* kStoreWavefronts = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum";
constexpr const char* kLoadConflicts = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum";
constexpr const char* kStoreConflicts = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum";

void line(const char* label, const std::string& text) { say("  {:<17}{}\n", label, text); }

std::string percent(const NcuKernel& k, const char* metric) {
  return k.has(metric) ? fmt::format("{:.1f}%", k.value(metric)) : "unknown";
}

std::string requests(const NcuKernel& k, const char* count, const char* sectors) {
  if (!k.has(count)) return "unknown";
  if (k.value(count) == 0) return "none";
  return fmt::format("{:.0f} requests, {:.2f} sectors each", k.value(count), k.ratio(sectors, count));
}

std::string shared(const NcuKernel& k, const char* count, const char* wavefronts, const char* conflicts) {
  if (!k.has(wavefronts)) return "unknown";
  if (k.value(wavefronts) == 0) return "none";
  return fmt::format("{:.0f} requests, {:.0f} wavefronts, {:.0f} conflicts", k.value(count),
                     k.value(wavefronts), k.value(conflicts));
}

void print(const NcuKernel& k) {
  const double ns = k.value("gpu__time_duration.sum");
  const double read = k.value("dram__bytes_read.sum"), written = k.value("dram__bytes_write.sum");
  say("{}, grid {}, block {}\n", cut(k.name, 90), k.grid, k.block);
  line("duration", fmt::format("{:.2f} µs", ns / 1e3));
  line("memory", fmt::format("{} read, {} written: {:.0f} GB/s, {} of the peak", in_bytes(read),
                             in_bytes(written), ns > 0 ? (read + written) / ns : 0,
                             percent(k, "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed")));
  line("L2 hits", percent(k, "lts__t_sector_hit_rate.pct"));
  line("global loads", requests(k, kLoads, kLoadSectors));
  line("global stores", requests(k, kStores, kStoreSectors));
  line("shared loads", shared(k, kSharedLoads, kLoadWavefronts, kLoadConflicts));
  line("shared stores", shared(k, kSharedStores, kStoreWavefronts, kStoreConflicts));
  const std::string limiter = harness::ncu_limiter(k);
  line("occupancy",
       fmt::format("{} of {} possible{}", percent(k, "sm__warps_active.avg.pct_of_peak_sustained_active"),
                   percent(k, "sm__maximum_warps_per_active_cycle_pct"),
                   limiter.empty() ? "" : ", limited by " + limiter));
  line("issue slots busy", percent(k, "sm__inst_issued.avg.pct_of_peak_sustained_active"));
  std::string stalls;
  for (const auto& [reason, cycles] : harness::ncu_stalls(k)) {
    if (std::count(stalls.begin(), stalls.end(), ',') == 3) break;
    stalls += fmt::format("{}{} {:.2f}", stalls.empty() ? "" : ", ", reason, cycles);
  }
  line("waits for", stalls.empty() ? "unknown" : stalls + " cycles an instruction");
  const double spilled = k.value("l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum") +
                         k.value("l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum");
  line("registers", fmt::format("{:.0f} a thread; {}", k.value("launch__registers_per_thread"),
                                spilled > 0 ? fmt::format("{:.0f} sectors of local memory (spills)", spilled)
                                            : std::string("no local memory")));
}

/// The same counts from both, over all kernels of the call.
void print_beside(const std::vector<NcuKernel>& kernels, const harness::Trace& trace) {
  using emulated::TraceKind;
  const auto measured = [&](const char* metric) {
    double sum = 0;
    for (const NcuKernel& k : kernels) sum += k.value(metric);
    return sum;
  };
  const auto traced = [&](TraceKind kind, auto member) {
    double sum = 0;
    for (const harness::TracedLine& l : trace.lines)
      if (l.counts.kind == kind) sum += static_cast<double>(l.counts.*member);
    return sum;
  };
  Table table({"counted", ">by trace", ">by ncu"});
  const auto count = [&](const char* label, double a, double b) {
    table.add({label, fmt::format("{:.0f}", a), fmt::format("{:.0f}", b)});
  };
  const auto each = [](double sum, double requests) {
    return requests > 0 ? fmt::format("{:.2f}", sum / requests) : std::string("-");
  };
  using emulated::TraceLine;
  const struct {
    const char *what, *per;
    TraceKind kind;
    const char *requests, *sectors;
  } global[] = {{"global load requests", "  sectors each", TraceKind::kGlobalLoad, kLoads, kLoadSectors},
                {"global store requests", "  sectors each", TraceKind::kGlobalStore, kStores, kStoreSectors}};
  for (const auto& g : global) {
    const double requests = traced(g.kind, &TraceLine::requests), seen = measured(g.requests);
    count(g.what, requests, seen);
    table.add({g.per, each(traced(g.kind, &TraceLine::sectors), requests), each(measured(g.sectors), seen)});
  }
  const struct {
    const char *what, *wavefronts_name, *conflicts_name;
    TraceKind kind;
    const char *requests, *wavefronts, *conflicts;
  } banks[] = {{"shared load requests", "  wavefronts", "  conflicts", TraceKind::kSharedLoad, kSharedLoads,
                kLoadWavefronts, kLoadConflicts},
               {"shared store requests", "  wavefronts", "  conflicts", TraceKind::kSharedStore,
                kSharedStores, kStoreWavefronts, kStoreConflicts}};
  for (const auto& b : banks) {
    count(b.what, traced(b.kind, &TraceLine::requests), measured(b.requests));
    count(b.wavefronts_name, traced(b.kind, &TraceLine::wavefronts), measured(b.wavefronts));
    count(b.conflicts_name, traced(b.kind, &TraceLine::conflicts), measured(b.conflicts));
  }
  print_text(table.text());
}

/// What `--run` does, and what ncu is given to run.
std::vector<std::string> words_of(const ProfileArguments& arguments, const OneCase& one) {
  std::vector<std::string> words = {own_path(),           "profile", one.op->function, "--run", "--shape",
                                    to_text(one.c.shape), "--dtype", name(one.c.dtype)};
  if (!arguments.variant.empty()) words.insert(words.end(), {"--variant", arguments.variant});
  for (const auto& [name, value] : one.c.parameters)
    words.insert(words.end(), {"--set", fmt::format("{}={}", name, value)});
  return words;
}

std::string measure(const ProfileArguments& arguments, const OneCase& one) {
  const std::string ncu = find_cuda_tool("ncu", arguments.tools);
  if (ncu.empty())
    fail(
        "ncu (Nsight Compute) is not here: not on PATH, nor in $ROOFTILE_CUDA_TOOLS, $CUDA_HOME/bin or "
        "/usr/local/cuda/bin");
  std::vector<std::string> words = {ncu,
                                    "--csv",
                                    "--page",
                                    "raw",
                                    "--print-units",
                                    "base",
                                    "--clock-control",
                                    "none",
                                    "--metrics",
                                    fmt::format("{}", fmt::join(harness::ncu_metrics(), ","))};
  for (const std::string& word : words_of(arguments, one)) words.push_back(word);
  const ProgramOutput output = run_program(words);
  const bool has_table = !harness::parse_ncu(output.text).empty();
  if (has_table && output.code == 0) return output.text;
  const std::string why = harness::ncu_error(output.text);
  fail("{} measured nothing (exit code {}){}", ncu, output.code, why.empty() ? "" : ": " + why);
}

}  // namespace

int profile(const ProfileArguments& arguments) {
  const OneCase one = one_case(arguments.what, true);
  if (!arguments.variant.empty()) check_variants({one.op}, {arguments.variant});
  check_destination(arguments.csv);
  check_taken(one, arguments.variant);
  if (arguments.run) {
    check_memory(one);
    try {
      harness::run_once(Queue::cuda(), *one.spec, one.c, arguments.variant);
    } catch (const std::exception& e) {
      throw Failure(kTrouble, e.what());
    }
    return kOk;
  }
  const std::string text = arguments.from.empty() ? measure(arguments, one) : read_text(arguments.from);
  const std::vector<NcuKernel> kernels = harness::parse_ncu(text);
  if (kernels.empty()) fail("{}: holds no table as `ncu --csv --page raw` writes it", arguments.from);
  if (!arguments.csv.empty()) write_destination(arguments.csv, text);
  const std::string what =
      fmt::format("{}{}{}", one.text(), arguments.variant.empty() ? "" : " ", arguments.variant);
  say("{}, {} launch{}\n", what, kernels.size(), kernels.size() == 1 ? "" : "es");
  double ns = 0;
  for (const NcuKernel& k : kernels) {
    print(k);
    ns += k.value("gpu__time_duration.sum");
  }
  const double stated = one.spec->bytes(one.c), flops = one.spec->flops(one.c);
  if (ns > 0)
    say("The op's cases state {} bytes and {} flops: {:.0f} GB/s, {:.0f} GFLOP/s over {:.2f} µs.\n", stated,
        flops, stated / ns, flops / ns, ns / 1e3);
  if (!arguments.against_trace) return kOk;
  EmulatedOptions options;
  options.threads = 1;
  options.checked = true;
  harness::Trace trace;
  try {
    trace = harness::trace(Queue::emulated(options), *one.spec, one.c, arguments.variant, {});
  } catch (const std::exception& e) {
    throw Failure(kTrouble, e.what());
  }
  say("\n");
  print_beside(kernels, trace);
  return kOk;
}

}  // namespace rooftile::cli
