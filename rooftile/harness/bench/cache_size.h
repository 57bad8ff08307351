#pragma once
#include <vector>

#include "rooftile/harness/bench/machine.h"

namespace rooftile::harness {

/// Finds by pointer chasing up to which footprint each level of data cache answers at its own latency, and
/// sets `effective_bytes` of the data and unified caches: to `bytes` where measurement agrees within what
/// random replacement explains (0.6 to 1.6 times), else to what was measured.
void measure_cache_sizes(std::vector<Cache>& caches);

}  // namespace rooftile::harness
