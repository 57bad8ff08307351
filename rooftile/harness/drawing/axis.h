// Figures as charts show them, and the scale of a logarithmic axis.
#pragma once

#include <cmath>
#include <string>

namespace rooftile::drawing {

/// A logarithmic scale from `low` to `high` on the drawing's `from` to `to`.
struct Scale {
  double low, high, from, to;
  double at(double value) const { return from + (to - from) * std::log(value / low) / std::log(high / low); }
};

/// Three digits say all that a measurement of ours can.
std::string three_digits(double value);
/// "11.3 MiB".
std::string bytes_text(double bytes);
/// "one thread", "8 threads".
std::string threads_text(const std::string& threads);

}  // namespace rooftile::drawing
