// Figures: one drawn file each, and what a reader who does not see it is told.
#pragma once

#include <string>

#include "rooftile/harness/drawing/svg.h"
#include "tools/docs_records.h"

namespace docs {

using rooftile::drawing::Svg;

struct Figure {
  std::string svg, alternative;
  std::vector<std::string> times;  // in µs, as the figure shows them
};
/// key=value[,value…] of a marker.
using Settings = Filters;

/// The value at `index` of key=value,value…; "" where there is none.
std::string setting(const Settings& settings, const std::string& key, std::size_t index = 0);
/// "" where the trace that a marker names by trace=FILE.json (of docs/figures/traces) variant=NAME[,…]
/// access=global_load[,…] counts `count` of `what` (sectors or wavefronts) for each request of panel `index`,
/// or where the marker names no trace.
std::string agrees(const Repository& repository, const Settings& settings, std::size_t index,
                   const char* what, double count);

/// Each fills in `figure`, or returns a sentence that says why it can't.
std::string draw_ladder(const Repository& repository, const Settings& settings, Figure& figure);
std::string draw_sectors(const Repository& repository, const Settings& settings, Figure& figure);
std::string draw_banks(const Repository& repository, const Settings& settings, Figure& figure);
std::string draw_coalescing(const Repository& repository, const Settings& settings, Figure& figure);
std::string draw_shuffle(const Repository& repository, const Settings& settings, Figure& figure);
std::string draw_registers(const Repository& repository, const Settings& settings, Figure& figure);
std::string draw_cover(const Repository& repository, const Settings& settings, Figure& figure);
std::string draw_timeline(const Repository& repository, const Settings& settings, Figure& figure);
std::string draw_pages(const Repository& repository, const Settings& settings, Figure& figure);
std::string draw_levels(const Repository& repository, const Settings& settings, Figure& figure);
std::string draw_sizes(const Repository& repository, const Settings& settings, Figure& figure);
std::string draw_terminal(const Repository& repository, const Settings& settings, Figure& figure);
std::string draw_memory(const Repository& repository, const Settings& settings, Figure& figure);
std::string draw_roofline(const Repository& repository, const Settings& settings, Figure& figure);

}  // namespace docs
