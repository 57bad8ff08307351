#pragma once
#include <string>

#include "rooftile/core/queue.h"
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

/// Makes one call in the device's memory and waits for it: what a profiler is pointed at. Returns the variant
/// that ran. Throws std::runtime_error with a sentence where it is refused or fails.
std::string run_once(const Queue& queue, const Spec& spec, const Case& c, const std::string& variant);

}  // namespace rooftile::harness
