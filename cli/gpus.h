#pragma once
// The part of `rooftile devices` that is about GPUs and the emulated one.
#include <nlohmann/json.hpp>
#include <string>

namespace rooftile::cli {

struct GpuReport {
  std::string text;       ///< as printed
  nlohmann::json gpus;    ///< an array
  std::string missing;    ///< the sentence that says why there is none; empty where there is one
  nlohmann::json played;  ///< what the emulated device plays, or null
};

/// Every GPU of this machine, and the emulated device; `measure`: bandwidth, launch cost and sensors, too.
GpuReport gpus(bool measure);

}  // namespace rooftile::cli
