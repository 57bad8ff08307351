#include "cli/table.h"

#include <fmt/format.h>

#include <algorithm>

namespace rooftile::cli {

Table::Table(const std::vector<std::string>& headings) {
  for (const std::string& heading : headings) {
    const bool right = !heading.empty() && heading[0] == '>';
    flush_right_.push_back(right);
    headings_.push_back(right ? heading.substr(1) : heading);
  }
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(headings_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text(std::string_view indent) const {
  std::vector<int> widths(headings_.size(), 0);
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], places(row[i]));
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string out(indent);
    bool first = true;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (widths[i] == 0) continue;
      const int width = std::max(widths[i], places(headings_[i]));
      const std::string blanks(static_cast<std::size_t>(width - places(cells[i])), ' ');
      if (!first) out += "  ";
      first = false;
      out += flush_right_[i] ? blanks + cells[i] : cells[i] + blanks;
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out + "\n";
  };
  std::string out = line(headings_);
  for (const auto& row : rows_) out += line(row);
  return out;
}

int places(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string cut(std::string_view text, int most) {
  if (places(text) <= most) return std::string(text);
  std::string out;
  for (const char c : text) {
    if ((c & 0xc0) != 0x80 && most-- <= 3) break;
    out += c;
  }
  return out + "...";
}

std::string in_bytes(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 6) bytes /= 1024, ++unit;
  const bool whole = bytes == static_cast<double>(static_cast<std::int64_t>(bytes)) || bytes >= 100;
  return fmt::format("{:.{}f} {}", bytes, whole ? 0 : 1, kUnits[unit]);
}

}  // namespace rooftile::cli
