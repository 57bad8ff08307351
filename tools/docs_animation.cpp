// An animation: two warps read one tile of a matrix, a thread for each row, and a row together; and what
// memory is requested to move for it. Its end is what one sees where nothing moves: a reader who wants less
// motion, a printer.
#include <fmt/format.h>

#include "tools/docs_figures.h"

namespace docs {

// No settings but a trace's for the two panels.
std::string draw_coalescing(const Repository& repository, const Settings& settings, Figure& figure) {
  constexpr int kLanes = 32, kSteps = 8, kSectorFloats = 8;
  constexpr double kCell = 8, kTile = kCell * kLanes, kTop = 64, kWidth = 720, kLeft[] = {36, 428};
  constexpr double kSeconds = 9, kStep = 0.09;  // of a period: the last quarter shows the end
  struct Panel {
    const char *title, *rung;
    int sectors;
  };
  const Panel panels[] = {{"one thread per row", "lanes a row apart", kLanes},
                          {"one warp per row", "neighbouring lanes", kLanes / kSectorFloats}};
  constexpr int kUsed = kSteps * kLanes * 4;  // bytes, of f32
  Svg svg(kWidth, kTop + kTile + 92);

  std::string rules;
  for (int step = 0; step < kSteps; ++step) {
    const double from = 100 * (0.02 + kStep * step), to = from + 100 * kStep * 0.8;
    rules += fmt::format(
        "  .stay-{0} {{ animation: stay-{0} {1}s linear infinite }} .pass-{0} {{ animation: pass-{0} {1}s "
        "linear "
        "infinite }}\n"
        "  @keyframes stay-{0} {{ 0%, {2:.2f}% {{ opacity: 0 }} {3:.2f}%, 100% {{ opacity: 1 }} }}\n"
        "  @keyframes pass-{0} {{ 0%, {2:.2f}% {{ opacity: 0 }} {3:.2f}%, {4:.2f}% {{ opacity: 1 }} "
        "{5:.2f}%, 100% "
        "{{ opacity: 0 }} }}\n",
        step, kSeconds, from, from + 0.01, to, to + 0.01);
  }
  rules +=
      "  .line-ground { stroke: #ffffff }\n"
      "  @media (prefers-color-scheme: dark) { .line-ground { stroke: #0d1117 } }\n";
  rules += "  @media (prefers-reduced-motion: reduce) { [class^=stay], [class^=pass] { animation: none } }\n";
  svg.add_style(rules);

  std::string alternative =
      "Two warps read a tile of f32, eight requests each; memory moves sectors of 32 bytes.";
  svg.text(kWidth / 2, 18, "One warp reads the same numbers in two ways: sectors per request", "middle", 15);
  for (int p = 0; p < 2; ++p) {
    const Panel& panel = panels[p];
    if (const std::string error =
            agrees(repository, settings, static_cast<std::size_t>(p), "sectors", panel.sectors);
        !error.empty())
      return error;
    const double left = kLeft[p];
    const int moved = kSteps * panel.sectors * 32;
    svg.text(left + kTile / 2, 46, std::string(panel.title) + ": " + panel.rung, "middle", 13);
    svg.rect(left, kTop, kTile, kTile, "soft");
    for (int step = 0; step < kSteps; ++step) {  // what a request moves and does not use
      svg.begin_group(fmt::format("pass-{}", step));
      if (p == 0) svg.rect(left, kTop, kCell * kSectorFloats, kTile, "warn");
      svg.end_group();
    }
    for (int step = 0; step < kSteps; ++step) {
      svg.begin_group(fmt::format("stay-{}", step));
      if (p == 0)
        svg.rect(left + kCell * step, kTop, kCell, kTile, "main");
      else
        svg.rect(left, kTop + kCell * step, kTile, kCell, "main");
      svg.end_group();
    }
    for (int k = 0; k <= kLanes; ++k)
      svg.line(left, kTop + kCell * k, left + kTile, kTop + kCell * k, "ground");
    for (int k = 0; k <= kLanes; ++k)
      if (k % kSectorFloats == 0) svg.line(left + kCell * k, kTop, left + kCell * k, kTop + kTile, "ink");
    const double bar = kTop + kTile + 14, unit = kTile / (kSteps * kLanes);  // of a sector
    svg.rect(left, bar, kTile, 14, "soft");
    for (int step = 0; step < kSteps; ++step) {
      svg.begin_group(fmt::format("stay-{}", step));
      const double at = left + unit * panel.sectors * step, own = unit * panel.sectors;
      svg.rect(at, bar, own, 14, "warn");
      svg.rect(at, bar, own * kLanes * 4 / (32 * panel.sectors), 14, "main");
      svg.end_group();
    }
    const std::string share = fmt::format("{} sectors per request: {} KiB, {:.4g}% of them used",
                                          panel.sectors, moved / 1024, 100. * kUsed / moved);
    svg.text(left + kTile / 2, bar + 34, share, "middle", 12);
    alternative += fmt::format(" With {}, {}: {}.", panel.title, panel.rung, share);
  }
  svg.text(kWidth / 2, kTop + kTile + 80,
           "Blue: used. Orange: moved but not used by that request. A box is one sector of 8 floats.",
           "middle", 11);
  figure = {svg.file("Coalesced access", alternative), alternative, {}};
  return "";
}

}  // namespace docs
