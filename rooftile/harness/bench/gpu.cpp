#include "rooftile/harness/bench/gpu.h"

#include <nlohmann/json.hpp>

#include "rooftile/harness/bench/device_calls.h"
#include "rooftile/runtime/queue_state.h"

namespace rooftile::harness {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kFlushBytes = 256 * kMiB;  // as the bench overwrites the second-level cache
constexpr int kRounds = 20, kWarmUp = 3;
constexpr int kLoadRounds = 200;  // of the largest copy: 0.1 s, and no more than a stream's queue holds

}  // namespace

Gpu describe_gpu(const Queue& queue) {
  require(queue.status());
  Gpu gpu;
  require(functions_of(queue).describe(queue.state().cuda, gpu.what));
  return gpu;
}

void measure_gpu(const Queue& queue, Gpu& gpu) {
  if (const Status s = functions_of(queue).launch_cost(queue.state().cuda, gpu.launch_host_us, gpu.launch_us,
                                                       gpu.round_trip_us);
      !s)
    gpu.notes.push_back(s.message());
  try {
    const DeviceBuffer flush(queue, kFlushBytes);
    for (const std::size_t mib : {16, 64, 256, 2048}) {
      const std::size_t bytes = mib * kMiB;
      const DeviceBuffer room(queue, bytes);
      const bool load = mib == 2048;
      const Samples us = time_copy(queue, room.data(), bytes, flush, load ? kLoadRounds : kRounds, kWarmUp,
                                   load ? &gpu.loaded : nullptr);
      gpu.copies.push_back({bytes, us.median()});
    }
  } catch (const std::exception& e) {
    gpu.notes.push_back(e.what());
  }
}

nlohmann::json to_json(const Gpu& gpu) {
  const DeviceDescription& d = gpu.what;
  nlohmann::json copies = nlohmann::json::array();
  for (const GpuCopy& copy : gpu.copies)
    copies.push_back({{"bytes", copy.bytes}, {"median_us", copy.us}, {"gbs", copy.gbs()}});
  nlohmann::json json = {{"name", d.name},
                         {"device", d.device},
                         {"devices", d.devices},
                         {"compute_capability", d.major * 10 + d.minor},
                         {"driver", d.driver_name},
                         {"driver_cuda", d.driver},
                         {"runtime_cuda", d.runtime},
                         {"multiprocessors", d.multiprocessors},
                         {"clock_khz", d.clock_khz},
                         {"memory_clock_khz", d.memory_clock_khz},
                         {"bus_bits", d.bus_bits},
                         {"rated_gbs", d.rated_gbs()},
                         {"memory_bytes", d.memory_bytes},
                         {"free_bytes", d.free_bytes},
                         {"l2_bytes", d.l2_bytes},
                         {"shared_block_bytes", d.shared_block},
                         {"shared_block_most_bytes", d.shared_block_most},
                         {"shared_multiprocessor_bytes", d.shared_multiprocessor},
                         {"registers_block", d.registers_block},
                         {"registers_multiprocessor", d.registers_multiprocessor},
                         {"threads_block", d.threads_block},
                         {"threads_multiprocessor", d.threads_multiprocessor},
                         {"blocks_multiprocessor", d.blocks_multiprocessor},
                         {"ecc", d.ecc != 0},
                         {"copy_engines", d.copy_engines},
                         {"clusters", d.clusters != 0},
                         {"power_limit_w", d.power_limit_w},
                         {"temperature_c", d.temperature_c},
                         {"clock_mhz", d.clock_now_mhz},
                         {"memory_clock_mhz", d.memory_clock_now_mhz},
                         {"most_clock_mhz", d.most_clock_mhz},
                         {"copies", copies},
                         {"notes", gpu.notes}};
  if (gpu.launch_host_us > 0)
    json["empty_kernel"] = {
        {"host_us", gpu.launch_host_us}, {"device_us", gpu.launch_us}, {"round_trip_us", gpu.round_trip_us}};
  if (gpu.loaded.clock_mhz > 0)
    json["loaded"] = {{"clock_mhz", gpu.loaded.clock_mhz},
                      {"power_w", gpu.loaded.power_w},
                      {"throttled", gpu.loaded.throttled}};
  return json;
}

}  // namespace rooftile::harness
