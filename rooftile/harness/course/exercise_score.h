#pragma once
// What a right answer costs, and the library's kernel beside it.
#include <string>
#include <vector>

#include "rooftile/harness/course/exercise.h"
#include "rooftile/harness/course/trace.h"

namespace rooftile::harness {

/// "moves 4096 in 32 requests, waits at 3 barriers".
std::string score(const Trace& trace);

/// "; rooftile's " and the same of the library's choice; nothing where there is none, or the build has no
/// checked device.
std::string score_of_library(const Exercise& exercise, const Case& c,
                             const std::vector<std::string>& sources);

}  // namespace rooftile::harness
