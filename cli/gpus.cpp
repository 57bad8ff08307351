#include "cli/gpus.h"

#include <fmt/format.h>

#include <cstring>

#include "cli/failure.h"
#include "cli/output.h"
#include "cli/table.h"
#include "rooftile/harness/bench/gpu.h"
#include "rooftile/runtime/queue_state.h"

namespace rooftile::cli {
namespace {

std::string bytes(std::size_t size) { return in_bytes(static_cast<double>(size)); }
std::string version(int cuda) { return fmt::format("{}.{}", cuda / 1000, cuda % 1000 / 10); }

/// Each function's variants that the queue's plug-in holds; those that need a newer GPU apart.
std::string variant_table(const Queue& queue, nlohmann::json& json) {
  const Queue::State& state = queue.state();
  Table table({"function", "variants", "not on this GPU"});
  json = nlohmann::json::array();
  for (const Op* op : all_ops()) {
    std::string here, elsewhere;
    nlohmann::json names = nlohmann::json::array();
    for (std::size_t v = 0; v < op->variants.size(); ++v) {
      const PluginEntry& entry = state.entry(*op, v);
      if (!entry.kernel) continue;
      const char* name = op->variants[v].name;
      const int least = entry.least_architecture;
      if (least <= state.cuda.architecture) {
        here += (here.empty() ? "" : ", ") + std::string(name);
        names.push_back(name);
      } else {
        elsewhere +=
            fmt::format("{}{} needs {}.{}", elsewhere.empty() ? "" : ", ", name, least / 10, least % 10);
      }
    }
    table.add({op->function, here.empty() ? "none" : here, elsewhere});
    json.push_back({{"function", op->function}, {"variants", names}, {"elsewhere", elsewhere}});
  }
  return table.text("  ");
}

std::string describe(const harness::Gpu& gpu) {
  const DeviceDescription& d = gpu.what;
  std::string out =
      fmt::format("GPU {:<13}{}, compute capability {}.{}\n", d.device, d.name, d.major, d.minor);
  const auto line = [&](const char* label, const std::string& text) {
    out += fmt::format("{:<17}{}\n", label, text);
  };
  line("Driver", fmt::format("{}{} for CUDA {} and before; this build's runtime is {}", d.driver_name,
                             *d.driver_name ? "," : "", version(d.driver), version(d.runtime)));
  line("Multiprocessors",
       fmt::format("{} at {} MHz at most; each {} registers, {} shared memory, {} threads, {} blocks",
                   d.multiprocessors, d.most_clock_mhz ? d.most_clock_mhz : d.clock_khz / 1000,
                   d.registers_multiprocessor, bytes(d.shared_multiprocessor), d.threads_multiprocessor,
                   d.blocks_multiprocessor));
  line("A block", fmt::format("{} shared memory, {} when asked for; {} registers, {} threads{}",
                              bytes(d.shared_block), bytes(d.shared_block_most), d.registers_block,
                              d.threads_block, d.clusters ? "; clusters of blocks" : ""));
  line("Memory", fmt::format("{}, {} free; {} bits at {} MHz, both edges: rated {:.0f} GB/s; ECC {}",
                             bytes(d.memory_bytes), bytes(d.free_bytes), d.bus_bits,
                             d.memory_clock_khz / 1000, gpu.what.rated_gbs(), d.ecc ? "on" : "off"));
  line("L2 cache", bytes(d.l2_bytes));
  if (d.power_limit_w > 0)
    line("Now", fmt::format("{} MHz, memory {} MHz, {:.0f} °C; limited to {:.0f} W", d.clock_now_mhz,
                            d.memory_clock_now_mhz, d.temperature_c, d.power_limit_w));
  return out;
}

std::string measured(const harness::Gpu& gpu) {
  std::string out;
  if (!gpu.copies.empty()) {
    Table table({">moved", ">µs", ">GB/s", ">of rated"});
    for (const harness::GpuCopy& copy : gpu.copies)
      table.add(
          {bytes(copy.bytes), fmt::format("{:.1f}", copy.us), fmt::format("{:.0f}", copy.gbs()),
           gpu.what.rated_gbs() > 0 ? fmt::format("{:.0f}%", 100 * copy.gbs() / gpu.what.rated_gbs()) : ""});
    out += "\nDevice copies by size, the caches overwritten before (what is read and written counts)\n" +
           table.text("  ");
  }
  if (gpu.launch_host_us > 0)
    out += fmt::format(
        "\nAn empty kernel  {:.2f} µs of the host, {:.2f} µs of the device; {:.2f} µs until the host knows "
        "that "
        "it is done\n",
        gpu.launch_host_us, gpu.launch_us, gpu.round_trip_us);
  if (gpu.loaded.clock_mhz > 0)
    out += fmt::format("Under copies     {} MHz, {:.0f} W{}\n", gpu.loaded.clock_mhz, gpu.loaded.power_w,
                       gpu.loaded.throttled ? ", slowed by power or heat" : "");
  for (const std::string& note : gpu.notes) out += "note: " + note + "\n";
  return out;
}

/// The emulated device in one line, with the shared memory that a block of each architecture gets.
std::string emulated(nlohmann::json& played) {
  const Queue plain = Queue::emulated();
  if (const Status s = plain.status(); !s) return fmt::format("Emulated GPU     none: {}\n", s.message());
  const Queue checked = Queue::emulated({.checked = true});
  played = {
      {"architectures", {80, 86, 89, 90}}, {"threads", plain.threads()}, {"checked", checked.status().ok()}};
  return fmt::format("Emulated GPU     plays sm_80, sm_86, sm_89 and sm_90, {}; {}\n", plain.isa_reason(),
                     checked.status() ? "with checks and traces (emulated-checked), too"
                                      : "without checks: " + without_class(checked.status().message()));
}

}  // namespace

GpuReport gpus(bool measure) {
  GpuReport report;
  report.gpus = nlohmann::json::array();
  for (int device = 0, devices = 1; device < devices; ++device) {
    const Queue queue = Queue::cuda({.device = device});
    if (const Status s = queue.status(); !s) {
      // With several, one may be too old.
      if (device == 0) report.missing = without_class(s.message());
      report.text += fmt::format("{:<17}{}{}\n", device ? fmt::format("GPU {}", device) : "GPU",
                                 device ? "" : "none: ", without_class(s.message()));
      continue;
    }
    harness::Gpu gpu = harness::describe_gpu(queue);
    devices = gpu.what.devices;
    nlohmann::json variants;
    report.text += (device ? "\n" : "") + describe(gpu) + variant_table(queue, variants);
    if (measure) harness::measure_gpu(queue, gpu);
    report.text += measured(gpu);
    report.gpus.push_back(harness::to_json(gpu));
    report.gpus.back()["variants"] = variants;
  }
  report.text += emulated(report.played);
  return report;
}

}  // namespace rooftile::cli
