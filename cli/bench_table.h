#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "rooftile/harness/bench/machine.h"

namespace rooftile::cli {

/// The record's results as a table; below it what its marks mean, where there are any, and roofs that
/// contradict each other.
std::string bench_table(const nlohmann::json& record);

/// Sentences about levels that cannot both be right, each on its line; empty where all agree.
std::string contradictions_text(const std::vector<harness::LevelRate>& levels);

}  // namespace rooftile::cli
