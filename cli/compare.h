#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace rooftile::cli {

/// Which rows of a bench's record became slower or faster than in an older one, beyond the spread: where the
/// samples' 5th to 95th percentiles of the two have nothing in common. `name`: the older one's file.
std::string comparison(const std::string& name, const nlohmann::json& older, const nlohmann::json& newer);

}  // namespace rooftile::cli
