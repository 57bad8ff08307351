// A terminal's picture: what a command printed, from a text file that a test holds against the command.
// Lines that begin with "$ " are what one types; long lines go on in the next, as in a terminal.
#include <fmt/format.h>

#include "tools/docs_figures.h"

namespace docs {
namespace {

/// Letters, not bytes: the bytes of UTF-8 that begin one.
std::size_t letters(const std::string& text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

/// The line cut at spaces into pieces of at most `most` letters; all but the first are indented.
std::vector<std::string> cut(const std::string& line, std::size_t most) {
  std::vector<std::string> pieces;
  std::string rest = line;
  while (letters(rest) > most) {
    std::size_t at = std::string::npos;
    for (std::size_t i = rest.find(' ', 4); i != std::string::npos; i = rest.find(' ', i + 1))
      if (letters(rest.substr(0, i)) <= most) at = i;
    if (at == std::string::npos) break;
    pieces.push_back(rest.substr(0, at));
    rest = "    " + rest.substr(at + 1);
  }
  pieces.push_back(rest);
  return pieces;
}

}  // namespace

std::string draw_terminal(const Repository& repository, const Settings& settings, Figure& figure) {
  constexpr double kWidth = 760, kLeft = 18, kTop = 44, kRow = 19, kLetter = 7.25, kSize = 12;
  const std::string file = setting(settings, "text");
  const std::vector<std::string> lines = repository.lines_of(file);
  if (lines.empty()) return "a terminal needs text=FILE, what it shows";
  std::vector<std::pair<bool, std::string>> rows;  // whether one types it
  std::string alternative = "A terminal:";
  for (const std::string& line : lines) {
    alternative += " " + line;
    for (const std::string& piece : cut(line, static_cast<std::size_t>((kWidth - 2 * kLeft) / kLetter)))
      rows.emplace_back(starts_with(line, "$ "), piece);
  }
  Svg svg(kWidth, kTop + kRow * double(rows.size()) + 6);
  svg.add_style(
      "  text { white-space: pre } .typed text { fill: #0969da; font-weight: 600 }\n"
      "  @media (prefers-color-scheme: dark) { .typed text { fill: #4493f8 } }\n");
  svg.frame(0.5, 0.5, kWidth - 1, kTop + kRow * double(rows.size()) + 5, "soft");
  svg.line(0, 26, kWidth, 26, "soft");
  for (int k = 0; k < 3; ++k) svg.circle(18 + 16 * k, 13, 4.5, "soft");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].first) svg.begin_group("typed");
    svg.text(kLeft, kTop + 4 + kRow * double(i), rows[i].second, "start", kSize, true);
    if (rows[i].first) svg.end_group();
  }
  figure = {svg.file(lines[0], alternative), alternative, {}};
  return "";
}

}  // namespace docs
