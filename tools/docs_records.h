// Records of the bench and of the trace, as tables and figures read them.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rooftile/harness/drawing/axis.h"
#include "rooftile/harness/json_number.h"
#include "tools/docs.h"

namespace docs {

using Filters = std::map<std::string, std::vector<std::string>>;

/// "8192x4096" of a list, a number or a text as they are; "" of null.
std::string text_of(const nlohmann::json& value);
using rooftile::drawing::three_digits;
using rooftile::harness::number;
std::vector<std::string> split(const std::string& text, char separator);

/// A file's JSON, discarded where it is none.
nlohmann::json document_of(const Repository& repository, const std::string& file);
/// The records that the filters let through; a sentence where that is none, or where a key is no record's.
std::string select(const nlohmann::json& results, const Filters& filters, std::vector<nlohmann::json>& out);
/// "NVIDIA H200, 2026-11-24": a record's machine and day.
std::string machine_of(const nlohmann::json& document);

}  // namespace docs
