#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "rooftile/core/status.h"

namespace rooftile::harness {

/// Says in one sentence why `record` cannot be shown by this version: it is no rooftile record (no `schema`),
/// it has another schema, or a field has a type that it may not have. Unknown fields are ignored and every
/// known field but `schema` may be missing or null, so records of older and newer minor versions pass.
Status validate_record(const nlohmann::json& record);

struct ReportOptions {
  std::optional<std::string> docs_url;  ///< what stands before "rooftile/ops/…/README.md"; none: no links
};

/// One self-contained HTML page for a record of schema 1: no external request, tables made here and charts
/// drawn by Chart.js, inlined with its notice. Missing or empty parts become a sentence that names what would
/// fill them, and fields of a wrong type count as missing. All text of the record is escaped.
std::string render_report(const nlohmann::json& record, const ReportOptions& options = {});

}  // namespace rooftile::harness
