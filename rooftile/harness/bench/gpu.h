#pragma once
// What a GPU is and, measured, what it can do: for `rooftile devices`.
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "rooftile/core/plugin.h"
#include "rooftile/core/queue.h"

namespace rooftile::harness {

struct GpuCopy {
  std::size_t bytes;  ///< read and written together
  double us;
  double gbs() const { return static_cast<double>(bytes) / us / 1e3; }
};

struct Gpu {
  DeviceDescription what{};
  std::vector<GpuCopy> copies;  ///< medians, second-level cache overwritten before
  double launch_host_us = 0, launch_us = 0, round_trip_us = 0;  ///< of an empty kernel; 0: not measured
  DeviceSensors loaded;                                         ///< while the largest copies ran
  std::vector<std::string> notes;                               ///< what could not be measured, and why
};

/// Throws std::runtime_error with a sentence where the device does not answer.
Gpu describe_gpu(const Queue& queue);
/// A second, and up to 2.3 GiB of the GPU's memory.
void measure_gpu(const Queue& queue, Gpu& gpu);

nlohmann::json to_json(const Gpu& gpu);

}  // namespace rooftile::harness
