#pragma once
// What a variant asks of a GPU's memory, by source line, on the checked emulated device.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rooftile/backend/emulated/trace.h"
#include "rooftile/core/queue.h"
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

struct TracedLine {
  std::string file;  ///< from the repository's root
  std::string text;  ///< of the line, where the source was found
  emulated::TraceLine counts;
};

struct Trace {
  std::string variant;  ///< that ran
  std::vector<TracedLine> lines;
  emulated::TraceTotals totals{};
  double stated_bytes = 0;  ///< Spec::bytes
  std::string finding;      ///< what the checks found wrong meanwhile; empty: nothing

  double moved_bytes() const { return 32. * static_cast<double>(totals.sectors); }
};

/// Runs one variant once ("": the library's choice). `sources`: folders to look for source files in. Throws
/// std::runtime_error with a sentence where the variant refuses the case, or the queue's device cannot trace.
Trace trace(const Queue& queue, const Spec& spec, const Case& c, const std::string& variant,
            const std::vector<std::string>& sources);

/// An element of a record's "traces".
nlohmann::json to_json(const Trace& trace, const Queue& queue, const Spec& spec, const Case& c);

/// "global load", …
const char* access_name(emulated::TraceKind kind);

}  // namespace rooftile::harness
