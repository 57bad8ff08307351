#include "rooftile/harness/drawing/axis.h"

#include <fmt/format.h>

#include <array>

namespace rooftile::drawing {

std::string three_digits(double value) {
  const int decimals = value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3;
  return fmt::format("{:.{}f}", value, decimals);
}

std::string bytes_text(double bytes) {
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit < 4; ++unit) bytes /= 1024;
  return fmt::format("{:.{}g} {}", bytes, bytes >= 1000 ? 4 : 3,
                     std::array{"B", "KiB", "MiB", "GiB", "TiB"}[unit]);
}

std::string threads_text(const std::string& threads) {
  return threads == "1" ? "one thread" : threads + " threads";
}

}  // namespace rooftile::drawing
