// Pictures of who does what, and when: which registers hold a row, which blocks cover a matrix, and what two
// rows do at a time. The numbers are computed here, the first by the function that the library's launch asks.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "rooftile/tile/cuda/row_shape.h"
#include "tools/docs_figures.h"

namespace docs {
namespace {

constexpr double kWidth = 720, kLeft = 8;

/// A whole number of a setting, or `otherwise`; below 0: out of the range.
int whole(const Settings& settings, const std::string& key, int otherwise, int least, int most) {
  const std::string text = setting(settings, key);
  if (text.empty()) return otherwise;
  const int value = std::atoi(text.c_str());
  return value < least || value > most ? -1 : value;
}

}  // namespace

// columns=4096 bytes=4 chunks=8: a row of so many elements of so many bytes, chunks of a thread at most.
std::string draw_registers(const Repository&, const Settings& settings, Figure& figure) {
  const int columns = whole(settings, "columns", 4096, 32, 1 << 15),
            bytes = whole(settings, "bytes", 4, 2, 4), chunks = whole(settings, "chunks", 8, 1, 16);
  if (columns < 0 || bytes < 0 || chunks < 0)
    return "registers takes columns=32 to 32768, bytes=2 or 4 and chunks=1 to 16";
  const int lanes = 16 / bytes;
  const rooftile::tile::RowShape shape =
      rooftile::tile::row_shape(columns, lanes, chunks, 1024, 1, false, nullptr);
  const int words = (columns + lanes - 1) / lanes, threads = shape.threads;
  const int used = (words + threads - 1) / threads;
  if (shape.cluster == 0 || threads < 32)
    return fmt::format("a row of {} is held by no block, or by less than a warp: take another length",
                       columns);

  // The row in memory, a strip for each chunk; a thread's words are its column.
  constexpr double kRow = 22, kTop = 96, kLabel = 84;
  const double wide = kWidth - kLabel - kLeft, word = wide / threads;
  const int shown = std::min(threads - 1, 37);  // the thread that is followed
  const double mark = std::max(4., word);
  Svg svg(kWidth, kTop + kRow * used + 84);
  svg.text(
      kLeft, 18,
      fmt::format("A row of {} elements of {} bytes: {} 16-byte vectors, {} threads, {} vectors per thread",
                  columns, bytes, words, threads, used),
      "start", 14);
  svg.text(kLeft, 46, "in memory", "start", 12);
  const double strip = wide / used;
  for (int k = 0; k < used; ++k) {
    const double x = kLabel + strip * k;
    svg.rect(x + 1, 34, strip - 2, 16, "soft");
    if (k * threads + shown < words)
      svg.rect(x + 1 + (strip - 2) * shown / threads, 34, std::max(2., strip / threads), 16, "warn");
    svg.text(x + strip / 2, 66, fmt::format("{}–{}", k * threads, std::min(words, (k + 1) * threads) - 1),
             "middle", 9);
  }
  svg.text(kLeft, 84, "registers", "start", 12);
  for (int k = 0; k < used; ++k) {
    const double y = kTop + kRow * k;
    svg.text(kLeft, y + 14, fmt::format("vector {}", k), "start", 11);
    for (int warp = 0; warp * 32 < threads; ++warp) {
      const int first = k * threads + warp * 32, there = std::clamp(words - first, 0, 32);
      const double x = kLabel + word * 32 * warp;
      svg.rect(x + 1, y, word * 32 - 2, kRow - 4, "soft");
      if (there > 0) svg.rect(x + 1, y, word * there - 2, kRow - 4, "main");
    }
    if (k * threads + shown < words)
      svg.rect(kLabel + word * (shown + 0.5) - mark / 2, y, mark, kRow - 4, "warn");
  }
  const double floor = kTop + kRow * used;
  const int warps = threads / 32;
  for (int warp = 0; warp < warps; warp += std::max(1, warps / 8))
    svg.text(kLabel + word * 32 * (warp + 0.5), floor + 12, fmt::format("warp {}", warp), "middle", 10);
  const std::string followed =
      fmt::format("Thread {} (orange) holds vectors {}, {}, … of the row: {} apart, {} registers in all.",
                  shown, shown, shown + threads, threads, used * 4);
  svg.text(kLeft, floor + 40, followed, "start", 12);
  const std::string request =
      fmt::format("Each request of a warp is 32 neighbouring vectors: {} bytes, {} whole sectors.", 32 * 16,
                  32 * 16 / 32);
  svg.text(kLeft, floor + 60, request, "start", 12);
  const std::string alternative =
      fmt::format("A row of {} elements in the registers of {} threads, {} 16-byte vectors each. {} {}",
                  columns, threads, used, followed, request);
  figure = {svg.file("A row in a team's registers", alternative), alternative, {}};
  return "";
}

// rows=, columns=: of the matrix; tile=: rows and columns of a block's; threads=: of a block.
std::string draw_cover(const Repository&, const Settings& settings, Figure& figure) {
  const int rows = whole(settings, "rows", 100, 1, 512), columns = whole(settings, "columns", 180, 1, 512),
            tile = whole(settings, "tile", 32, 4, 128);
  if (rows < 0 || columns < 0 || tile < 0)
    return "cover takes rows= and columns= from 1 to 512 and tile= from 4 to 128";
  const int down = (rows + tile - 1) / tile, across = (columns + tile - 1) / tile;
  const double all = double(down) * across * tile * tile, idle = 1 - double(rows) * columns / all;
  const double unit = std::min((kWidth - 2 * kLeft - 60) / (across * tile), 300. / (down * tile));
  constexpr double kTop = 52, kLeftOf = kLeft + 44;
  Svg svg(kWidth, kTop + unit * down * tile + 56);
  svg.text(kLeft, 18,
           fmt::format("{} × {} elements, a block for each tile of {} × {}: {} × {} blocks", rows, columns,
                       tile, tile, down, across),
           "start", 14);
  svg.rect(kLeftOf, kTop, unit * across * tile, unit * down * tile, "soft");
  svg.rect(kLeftOf, kTop, unit * columns, unit * rows, "main");
  for (int i = 0; i < down; ++i)
    svg.text(kLeftOf - 6, kTop + unit * tile * (i + 0.5) + 4, fmt::format("y = {}", i), "end", 10);
  for (int j = 0; j < across; ++j)
    svg.text(kLeftOf + unit * tile * (j + 0.5), kTop - 6, fmt::format("x = {}", j), "middle", 10);
  for (int i = 0; i < down; ++i)
    for (int j = 0; j < across; ++j) {
      const double x = kLeftOf + unit * tile * j, y = kTop + unit * tile * i;
      svg.frame(x, y, unit * tile, unit * tile, "ink");
    }
  const std::string left_over = fmt::format(
      "Blue: the matrix. Grey: threads past its edge, {:.0f}% of all; they must neither read nor write.",
      100 * idle);
  svg.text(kLeft, kTop + unit * down * tile + 26, left_over, "start", 12);
  const std::string names = "blockIdx.x counts tiles to the right, blockIdx.y downwards.";
  svg.text(kLeft, kTop + unit * down * tile + 46, names, "start", 12);
  const std::string alternative = fmt::format("A matrix of {} × {} under {} × {} blocks of {} × {}. {} {}",
                                              rows, columns, down, across, tile, tile, left_over, names);
  figure = {svg.file("Blocks over a matrix", alternative), alternative, {}};
  return "";
}

// rows=4: first each row by itself, then row i written while row i + 1 is read.
std::string draw_timeline(const Repository&, const Settings& settings, Figure& figure) {
  const int rows = whole(settings, "rows", 4, 2, 8);
  if (rows < 0) return "timeline takes rows=2 to 8";
  // Of a row: reading and writing take as long, and its scalars half of that; lengths are no measurement.
  constexpr int kPass = 2, kScalars = 1;
  constexpr double kTop = 46, kRow = 24, kLabel = 84, kBetween = 46;
  const int alone = rows * (2 * kPass + kScalars), together = rows * (kPass + kScalars) + kPass;
  const double unit = (kWidth - kLabel - kLeft) / alone;
  Svg svg(kWidth, 2 * (kTop + 3 * kRow) + kBetween + 8);
  const char* const lanes[] = {"read", "scalars", "write"};
  const auto panel = [&](double top, bool overlaps, const std::string& title) {
    svg.text(kLeft, top + 18, title, "start", 14);
    const double first = top + kTop - 10;
    for (int lane = 0; lane < 3; ++lane) svg.text(kLeft, first + kRow * lane + 15, lanes[lane], "start", 12);
    const auto box = [&](int lane, int begin, int length, int row, const char* color) {
      svg.rect(kLabel + unit * begin + 1, first + kRow * lane, unit * length - 2, kRow - 4, color);
      svg.text(kLabel + unit * (begin + length / 2.), first + kRow * lane + 15, std::to_string(row), "middle",
               11);
    };
    int at = 0;
    for (int row = 0; row < rows; ++row) {
      box(0, at, kPass, row, "soft");
      at += kPass;
      box(1, at, kScalars, row, "soft");
      at += kScalars;
      box(2, at, kPass, row, "soft");
      if (!overlaps) at += kPass;
    }
    svg.line(kLabel + unit * (overlaps ? together : alone), first - 6,
             kLabel + unit * (overlaps ? together : alone), first + 3 * kRow, "main");
  };
  panel(0, false, "One row after the other");
  panel(kTop + 3 * kRow + kBetween, true, "Row i is written while row i + 1 is read");
  const std::string alternative = fmt::format(
      "{} rows on a time axis. Alone, each is read, its scalars are computed, and it is written: {} units. "
      "With "
      "row i written while row i + 1 is read: {} units. Lengths are no measurement.",
      rows, alone, together);
  figure = {svg.file("Two rows at a time", alternative), alternative, {}};
  return "";
}

// lengths=37,5: tokens of each sequence; reserved=: places of each in a contiguous cache; page=: places of a
// page.
std::string draw_pages(const Repository&, const Settings& settings, Figure& figure) {
  const int reserved = whole(settings, "reserved", 64, 16, 256), page = whole(settings, "page", 16, 4, 64);
  std::vector<int> lengths;
  int tokens = 0, pages = 0;
  for (std::size_t i = 0; !setting(settings, "lengths", i).empty(); ++i) {
    lengths.push_back(std::atoi(setting(settings, "lengths", i).c_str()));
    tokens += lengths.back(), pages += (lengths.back() + page - 1) / page;
  }
  const int count = static_cast<int>(lengths.size());
  const auto fits = [&](int n) { return n > 0 && n <= reserved; };
  if (page < 0 || count < 2 || count > 6 || !std::all_of(lengths.begin(), lengths.end(), fits))
    return "pages takes lengths= of 2 to 6 sequences, each at most reserved= (16 to 256), and page=4 to 64";
  const auto empty = [&](int places) { return fmt::format("{:.0f}%", 100. * (places - tokens) / places); };
  constexpr double kTop = 56, kRow = 26, kLabel = 96, kPageRow = 42;
  constexpr int kEach = 6;  // pages side by side
  const char* const colors[] = {"main", "other", "warn"};
  const double unit = (kWidth - kLabel - kLeft) / std::max(reserved, kEach * page),
               below = kTop + kRow * count + 64;
  Svg svg(kWidth, below + kPageRow * ((pages + kEach - 1) / kEach));
  const auto strip = [&](double x, double y, int places, int used, int sequence) {
    svg.rect(x + 1, y, unit * places - 2, kRow - 6, "soft");
    svg.rect(x + 1, y, std::max(1., unit * used - 2), kRow - 6, colors[sequence % 3]);
  };
  svg.text(kLeft, 18, fmt::format("{} sequences: a contiguous cache, and pages of {} tokens", count, page),
           "start", 14);
  const std::string contiguous = fmt::format("Contiguous, {} places each: {} of {} are empty.", reserved,
                                             empty(count * reserved), count * reserved);
  svg.text(kLeft, kTop - 12, contiguous, "start", 12);
  for (int n = 0; n < count; ++n) {
    svg.text(kLeft, kTop + kRow * n + 14, fmt::format("{}: {} tokens", n, lengths[std::size_t(n)]), "start",
             12);
    strip(kLabel, kTop + kRow * n, reserved, lengths[std::size_t(n)], n);
  }
  const std::string paged = fmt::format("Pages, in the order in which they were needed: {} of {} are empty.",
                                        empty(pages * page), pages * page);
  svg.text(kLeft, below - 26, paged, "start", 12);
  int at = 0;
  std::string tables;
  std::vector<std::string> table(lengths.size());
  for (int index = 0; at < pages; ++index)  // all grow alike
    for (int n = 0; n < count; ++n) {
      const int rest = lengths[std::size_t(n)] - index * page;
      if (rest <= 0) continue;
      const double x = kLabel + unit * page * (at % kEach), y = below + kPageRow * (at / kEach);
      strip(x, y, page, std::min(rest, page), n);
      svg.text(x + 1, y - 5, fmt::format("page {}: seq. {}", at, n), "start", 11);
      table[std::size_t(n)] += fmt::format("{}{}", index ? ", " : "", at++);
    }
  for (int n = 0; n < count; ++n) tables += fmt::format(" Sequence {}: pages {}.", n, table[std::size_t(n)]);
  const std::string alternative = contiguous + " " + paged + tables;
  figure = {svg.file("The memory of a cache", alternative), alternative, {}};
  return "";
}

}  // namespace docs
