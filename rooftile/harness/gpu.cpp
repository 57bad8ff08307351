#include "rooftile/harness/gpu.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "rooftile/core/queue_state.h"
#include "rooftile/harness/timing.h"

namespace rooftile::harness {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kFlushBytes = 256 * kMiB;  // as the bench overwrites the second-level cache
constexpr int kRounds = 20, kWarmUp = 3;

void require(const Status& status) {
  if (!status) throw std::runtime_error(status.message());
}

class DeviceBlock {
 public:
  DeviceBlock(const Queue::State& state, std::size_t bytes) : state_(state) {
    require(state.backend->device->allocate(state.cuda, bytes, &data_));
  }
  ~DeviceBlock() { (void)state_.backend->device->release(state_.cuda, data_).ok(); }
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  const Queue::State& state_;
  void* data_ = nullptr;
};

struct Copy {
  const Queue::State* state;
  void *to, *from;
  std::size_t bytes;
  static Status run(void* context) {
    const Copy& it = *static_cast<Copy*>(context);
    return it.state->backend->device->copy_on_device(it.state->cuda, it.to, it.from, it.bytes);
  }
};

/// The medians of one copy, each after a flush.
double copy_us(const Queue::State& state, Copy copy, void* flush) {
  const Timed timed{Copy::run, &copy};
  std::vector<float> us(kRounds + kWarmUp);
  require(state.backend->device->time(state.cuda, &timed, 1, kRounds + kWarmUp, flush, kFlushBytes, us.data(),
                                      nullptr));
  Samples samples;
  for (std::size_t i = kWarmUp; i < us.size(); ++i) samples.add(us[i]);
  return samples.median();
}

/// The sensors are means over a second at most: copies run for 1.5, and are asked for before they end.
void sense_under_load(const Queue::State& state, Copy copy, double us, Gpu& gpu) {
  const DeviceFunctions& device = *state.backend->device;
  constexpr double kLoadUs = 1.5e6;
  const auto begin = std::chrono::steady_clock::now();
  const auto count = static_cast<int>(std::clamp(kLoadUs / us, 1., 900.));  // a stream's queue holds 1024
  for (int i = 0; i < count; ++i) require(Copy::run(&copy));
  std::this_thread::sleep_until(
      begin + std::chrono::microseconds(static_cast<std::int64_t>(0.9 * std::min(kLoadUs, count * us))));
  const Status sensed = device.sense(state.cuda, gpu.loaded);
  require(device.synchronize(state.cuda));
  if (!sensed) gpu.notes.push_back(sensed.message());
}

}  // namespace

Gpu describe_gpu(const Queue& queue) {
  require(queue.status());
  Gpu gpu;
  require(queue.state().backend->device->describe(queue.state().cuda, gpu.what));
  return gpu;
}

void measure_gpu(const Queue& queue, Gpu& gpu) {
  const Queue::State& state = queue.state();
  const DeviceFunctions& device = *state.backend->device;
  if (const Status s = device.launch_cost(state.cuda, gpu.launch_host_us, gpu.launch_us, gpu.round_trip_us);
      !s)
    gpu.notes.push_back(s.message());
  try {
    const DeviceBlock flush(state, kFlushBytes);
    for (const std::size_t mib : {16, 64, 256, 2048}) {
      const std::size_t half = mib * kMiB / 2;
      const DeviceBlock block(state, 2 * half);
      const Copy copy{&state, block.data() + half, block.data(), half};
      const double us = copy_us(state, copy, flush.data());
      gpu.copies.push_back({2 * half, us});
      if (mib == 2048) sense_under_load(state, copy, us, gpu);
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
                         {"rated_gbs", gpu.rated_gbs()},
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
