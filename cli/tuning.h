#pragma once
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/table.h"
#include "rooftile/core/op.h"
#include "rooftile/harness/spec.h"

namespace rooftile::cli {

/// The rows of rooftile/tile/cuda/tuning.h that these functions follow on a GPU, one for each size of
/// elements. No GPU is needed.
Table tuning_table(const std::vector<const Op*>& ops, nlohmann::json& rows);

/// What a call gets from there: sentences, or one that says why it gets nothing.
std::vector<std::string> tuning_of(const Op& op, const harness::Case& c, nlohmann::json& row);

}  // namespace rooftile::cli
