#pragma once
// Times variants on a GPU, or on the emulated device, beside a device copy of the same bytes.
#include "rooftile/harness/bench.h"

namespace rooftile::harness {

/// As bench(), for the queue's device: each case of the specs' BenchCases::gpu, or of the shapes asked for.
/// Each sample begins with the second-level cache filled with other data; copy and kernel take turns. Times
/// are the device's own, between two events around the launches.
nlohmann::json bench_gpu(const BenchOptions& options, const Queue& queue);

}  // namespace rooftile::harness
