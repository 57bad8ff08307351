#pragma once
#include <nlohmann/json.hpp>

namespace rooftile::harness {

/// A record's number, or `otherwise` where it has none of this name.
inline double number(const nlohmann::json& row, const char* name, double otherwise = 0) {
  const auto found = row.is_object() ? row.find(name) : row.end();
  return found != row.end() && found->is_number() ? found->get<double>() : otherwise;
}

}  // namespace rooftile::harness
