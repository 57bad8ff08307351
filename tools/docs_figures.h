// Figures: one drawn file each, and what a reader who does not see it is told.
#pragma once

#include <string>

#include "tools/docs_records.h"
#include "tools/svg.h"

namespace docs {

struct Figure {
  std::string svg, alternative;
  std::vector<std::string> times;  // in µs, as the figure shows them
};
/// key=value[,value…] of a marker.
using Settings = Filters;

/// Each fills in `figure`, or returns a sentence that says why it can't.
std::string draw_ladder(const Repository& repository, const Settings& settings, Figure& figure);
std::string draw_sectors(const Repository& repository, const Settings& settings, Figure& figure);
std::string draw_banks(const Repository& repository, const Settings& settings, Figure& figure);
std::string draw_shuffle(const Repository& repository, const Settings& settings, Figure& figure);

}  // namespace docs
