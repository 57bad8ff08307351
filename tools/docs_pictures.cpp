// Pictures of what a warp does: the sectors that its request touches, the banks that it asks, and its
// shuffles. What they show is computed here, and held against a recorded trace where the marker names one:
//   trace=FILE.json (of docs/figures/traces) variant=NAME[,…] access=global_load[,…], one for each panel
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "tools/docs_figures.h"

namespace docs {
namespace {

using nlohmann::json;
constexpr int kLanes = 32, kBanks = 32;
constexpr double kWidth = 720;

std::size_t count_of(const Settings& settings, const std::string& key) {
  const auto it = settings.find(key);
  return it == settings.end() ? 0 : it->second.size();
}

}  // namespace

std::string setting(const Settings& settings, const std::string& key, std::size_t index) {
  const auto it = settings.find(key);
  return it == settings.end() || index >= it->second.size() ? "" : it->second[index];
}

std::string agrees(const Repository& repository, const Settings& settings, std::size_t index,
                   const char* what, double count) {
  const std::string file = setting(settings, "trace");
  if (file.empty()) return "";
  const std::string variant = setting(settings, "variant", index);
  std::string access = setting(settings, "access", index);
  std::replace(access.begin(), access.end(), '_', ' ');
  if (variant.empty() || access.empty()) return "";
  const json document = document_of(repository, "docs/figures/traces/" + file);
  if (!document.is_object() || !document.contains("traces"))
    return "docs/figures/traces/" + file + " is no trace";
  for (const json& trace : document["traces"]) {
    if (trace.value("variant", "") != variant) continue;
    for (const json& line : trace["lines"]) {
      if (line.value("access", "") != access) continue;
      const double counted = number(line, what) / number(line, "requests");
      if (counted == count) return "";
      return fmt::format("{}'s {} has {} {} per request in {}, the picture shows {}", variant, access,
                         counted, what, file, count);
    }
  }
  return fmt::format("{} has no {} of {}", file, access, variant);
}

// strides=1,2,…: from lane to lane, in elements; bytes=4: of an element.
std::string draw_sectors(const Repository& repository, const Settings& settings, Figure& figure) {
  const std::size_t panels = count_of(settings, "strides");
  if (panels == 0) return "sectors needs strides=1[,…]";
  const std::string width = setting(settings, "bytes");
  const int bytes = width.empty() ? 4 : std::atoi(width.c_str());
  if (bytes < 1 || bytes > 16) return "bytes is 1 to 16";
  constexpr double kPanel = 150, kLeft = 8, kLane = (kWidth - 2 * kLeft) / kLanes;
  Svg svg(kWidth, kPanel * double(panels) + 6);
  std::string alternative = "A warp's 32 lanes and the 32-byte sectors that one request touches.";
  for (std::size_t p = 0; p < panels; ++p) {
    const long stride = std::atol(setting(settings, "strides", p).c_str());
    std::vector<long> sectors;  // by number, in order
    for (long lane = 0; lane < kLanes; ++lane)
      for (long at = lane * stride * bytes; at < lane * stride * bytes + bytes; ++at)
        if (std::find(sectors.begin(), sectors.end(), at / 32) == sectors.end()) sectors.push_back(at / 32);
    const double used = double(stride == 0 ? bytes : kLanes * bytes) / (32. * double(sectors.size()));
    if (const std::string error = agrees(repository, settings, p, "sectors", double(sectors.size()));
        !error.empty())
      return error;
    const std::string distance = stride == 1 ? "neighbours" : fmt::format("{} elements apart", stride);
    const std::string count = fmt::format("{} sector{}, {:.4g}% of their bytes used", sectors.size(),
                                          sectors.size() == 1 ? "" : "s", 100 * used);
    const double top = kPanel * double(p);
    svg.text(kLeft, top + 18, fmt::format("lanes {}: {}", distance, count), "start", 14);
    const double each = std::min(160., (kWidth - 2 * kLeft) / double(sectors.size())),
                 gap = each > 40 ? 6 : 2;
    const double strip = each * double(sectors.size()), begin = (kWidth - strip) / 2;
    for (std::size_t k = 0; k < sectors.size(); ++k)
      svg.rect(begin + each * double(k) + gap / 2, top + 112, each - gap, 22, "soft");
    for (long lane = 0; lane < kLanes; ++lane) {
      const double x = kLeft + kLane * double(lane);
      svg.rect(x + 2, top + 32, kLane - 4, 18, "ink");
      const long at = lane * stride * bytes;
      const auto k = std::find(sectors.begin(), sectors.end(), at / 32) - sectors.begin();
      const double byte = (each - gap) / 32,
                   place = begin + each * double(k) + gap / 2 + byte * double(at % 32);
      svg.line(x + kLane / 2, top + 50, place + byte * bytes / 2, top + 112, "main");
      svg.rect(place, top + 112, std::max(1.5, byte * bytes - (each > 40 ? 1 : 0)), 22, "main");
    }
    alternative += fmt::format(" Lanes {}: {}.", distance, count);
  }
  figure = {svg.file("A warp's request and its sectors", alternative), alternative, {}};
  return "";
}

// layouts=32,33,swizzle: columns of the array in memory, or 32 with the element of row r and column c at c ^
// r.
std::string draw_banks(const Repository& repository, const Settings& settings, Figure& figure) {
  const std::size_t panels = count_of(settings, "layouts");
  if (panels < 1 || panels > 3) return "banks needs layouts= with one to three of 32, 33, swizzle";
  constexpr double kCell = 6.4, kTop = 54;
  const double each = kWidth / double(panels);
  Svg svg(kWidth, kTop + kCell * 32 + 102);
  std::string alternative =
      "A tile of 32 rows in shared memory; a warp reads its first column, and the bank of each of the 32 "
      "words is "
      "counted.";
  for (std::size_t p = 0; p < panels; ++p) {
    const std::string layout = setting(settings, "layouts", p);
    const bool swizzled = layout == "swizzle";
    const int columns = swizzled ? 32 : std::atoi(layout.c_str());
    if (columns != 32 && columns != 33) return "a layout is 32, 33 or swizzle";
    int asked[kBanks] = {};
    const double left = each * double(p) + (each - kCell * columns) / 2;
    for (int row = 0; row < 32; ++row) {
      const int place = swizzled ? row : 0;  // of column 0
      ++asked[(row * columns + place) % kBanks];
      for (int c = 0; c < columns; ++c) {
        const bool is_bank_0 = (row * columns + c) % kBanks == 0;
        svg.rect(left + kCell * c, kTop + kCell * row, kCell - 1, kCell - 1,
                 c == place  ? "main"
                 : is_bank_0 ? "warn"
                             : "soft");
      }
    }
    const int passes = *std::max_element(asked, asked + kBanks);
    if (const std::string error = agrees(repository, settings, p, "wavefronts", passes); !error.empty())
      return error;
    const double middle = each * (double(p) + 0.5);
    const std::string name = swizzled ? "32 columns, at c ^ r" : fmt::format("{} columns", columns);
    const std::string count = fmt::format("{} pass{} per request", passes, passes == 1 ? "" : "es");
    svg.text(middle, 20, name, "middle", 14);
    svg.text(middle, 40, count, "middle", 13);
    const double floor = kTop + kCell * 32 + 54;
    for (int bank = 0; bank < kBanks; ++bank) {
      const double height = asked[bank] * 40. / 32;
      if (asked[bank] > 0)
        svg.rect(left + kCell * bank, floor - std::max(3., height), kCell - 1, std::max(3., height), "main");
      svg.rect(left + kCell * bank, floor + 1, kCell - 1, 2, "soft");
    }
    svg.text(middle, floor + 20, "words requested per bank, 0 to 31", "middle", 11);
    alternative += fmt::format(" {}: {}.", name, count);
  }
  svg.text(kWidth / 2, kTop + kCell * 32 + 94,
           "Blue: the column of the tile that a warp reads. Orange: the words of bank 0.", "middle", 11);
  figure = {svg.file("Shared memory's banks", alternative),
            alternative + " Blue: the column's words; orange: bank 0.",
            {}};
  return "";
}

// No settings: a warp adds up its lanes' numbers by five shuffles.
std::string draw_shuffle(const Repository&, const Settings&, Figure& figure) {
  constexpr double kStep = 62, kTop = 40, kLeft = 8, kLane = (kWidth - 2 * kLeft) / kLanes;
  Svg svg(kWidth, kTop + kStep * 5 + 34);
  long values[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) values[lane] = lane;
  const auto x_of = [&](int lane) { return kLeft + kLane * (lane + 0.5); };
  svg.text(kLeft, 16,
           "Lane l has the number l; in each step it adds what the lane that is 16, 8, 4, 2, 1 further has",
           "start", 13);
  std::string alternative = "Five shuffles add up a warp's 32 numbers in lane 0:";
  for (int far = 32, step = 0; far > 0; far /= 2, ++step) {
    const double y = kTop + kStep * step;
    for (int lane = 0; lane < far; ++lane) {
      if (far > 1) {
        const int to = lane % (far / 2);
        svg.line(x_of(lane), y + 10, x_of(to), y + kStep - 10, lane == to ? "soft" : "main");
      }
    }
    for (int lane = 0; lane < far; ++lane) {
      svg.circle(x_of(lane), y, 10, "soft");
      svg.text(x_of(lane), y + 3, std::to_string(values[lane]), "middle", 9);
    }
    if (far < 32) alternative += fmt::format("{} {}", step > 1 ? "," : "", values[0]);
    for (int lane = 0; lane < far / 2; ++lane) values[lane] += values[lane + far / 2];
  }
  figure = {svg.file("A warp's sum by shuffles", alternative + "."), alternative + ".", {}};
  return "";
}

}  // namespace docs
