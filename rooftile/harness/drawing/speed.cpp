#include "rooftile/harness/drawing/speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rooftile/harness/drawing/axis.h"
#include "rooftile/harness/drawing/svg.h"

namespace rooftile::drawing {
namespace {

constexpr double kWidth = 760, kLeft = 56, kRight = 20, kPlot = 250, kRow = 20;
constexpr std::size_t kColors = 8;

// 3 to 1 or more on their grounds, and apart from each other for most eyes; marks differ, too.
const char* const kPalette[kColors][2] = {
    {"#0465af", "#89c3fe"}, {"#c65b4c", "#e17363"}, {"#0c745b", "#43dab0"}, {"#8a50b4", "#b98ade"},
    {"#796006", "#e1b942"}, {"#0b7fa8", "#15a6da"}, {"#a23951", "#fe9ead"}, {"#497106", "#a0d06b"}};

std::string palette() {
  std::string light, dark;
  for (std::size_t k = 0; k < kColors; ++k) {
    light +=
        fmt::format("  .series-{0} {{ fill: {1} }} .line-series-{0} {{ stroke: {1} }}\n", k, kPalette[k][0]);
    dark += fmt::format("    .series-{0} {{ fill: {1} }} .line-series-{0} {{ stroke: {1} }}\n", k,
                        kPalette[k][1]);
  }
  return light + "  @media (prefers-color-scheme: dark) {\n" + dark + "  }\n";
}

std::string color_of(std::size_t place) { return fmt::format("series-{}", place % kColors); }
int mark_of(std::size_t place) { return static_cast<int>((place + place / kColors) % 4); }
std::string dashes_of(std::size_t place) { return place < kColors ? "" : "5 3"; }

double rate(const SpeedPoint& p) { return p.bytes / p.us * 1e-3; }

/// About as wide as `text` is drawn.
double width_of(const std::string& text, double size) {
  const auto letters = std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; });
  return 0.58 * size * static_cast<double>(letters);
}

/// A name of a user's may be as long as it likes; the whole one stands in the line's tooltip.
std::string shortened(const std::string& name) {
  constexpr std::size_t kMost = 48;
  if (name.size() <= kMost) return name;
  std::size_t end = kMost - 1;
  while (end > 0 && (name[end] & 0xc0) == 0x80) --end;
  return name.substr(0, end) + "…";
}

std::string gbs_text(double gbs) { return three_digits(gbs) + " GB/s"; }

std::string us_text(double us) { return three_digits(us) + " µs"; }

std::string words_of(const SpeedPoint& p) {
  std::string text = fmt::format("{}{}: {}, {}", p.shape.empty() ? "" : p.shape + ", ", bytes_text(p.bytes),
                                 gbs_text(rate(p)), us_text(p.us));
  if (p.p5_us > 0 && p.p95_us > 0)
    text += fmt::format(" (5% {}, 95% {})", three_digits(p.p5_us), three_digits(p.p95_us));
  return text;
}

/// A line in words: where it begins, its best, where it ends.
std::string words_of(const std::string& name, const std::vector<SpeedPoint>& points) {
  const auto best = std::max_element(points.begin(), points.end(),
                                     [](const auto& a, const auto& b) { return rate(a) < rate(b); });
  return fmt::format(" {}: {} at {}, at most {} at {}, {} at {}.", name, gbs_text(rate(points.front())),
                     bytes_text(points.front().bytes), gbs_text(rate(*best)), bytes_text(best->bytes),
                     gbs_text(rate(points.back())), bytes_text(points.back().bytes));
}

/// The plot while it is drawn.
class Plot {
 public:
  explicit Plot(const SpeedChart& chart)
      : chart_(chart), top_(64 + kRow * rows()), svg_(kWidth, bottom() + 78) {
    double low = 1e300, high = 0, slow = 1e300, fast = 0;
    const auto widen = [&](const std::vector<SpeedPoint>& points) {
      for (const SpeedPoint& p : points) {
        low = std::min(low, p.bytes), high = std::max(high, p.bytes);
        slow = std::min(slow, rate(p)), fast = std::max(fast, rate(p));
      }
    };
    for (const SpeedLine& line : chart.lines) widen(line.points);
    widen(chart.copy);
    x_ = {low, high, kLeft + 8, kWidth - kRight - 8};
    double begin = low;
    for (const SpeedLevel& level : chart.levels) {
      const double end = level.bytes > 0 ? std::min(level.bytes, high) : high;
      if (end > begin) fast = std::max(fast, level.gbs), slow = std::min(slow, level.gbs);
      begin = std::max(begin, end);
    }
    y_ = {slow / 1.25, fast * 1.25, bottom(), top_};
  }

  Picture picture() && {
    svg_.add_style(palette());
    legend();
    axes();
    levels();
    std::string says = chart_.title + ": speed against size.";
    if (!chart_.copy.empty()) {
      svg_.begin_group("copy", "a copy of the same bytes, in the same run");
      line(chart_.copy, "ink", "");
      svg_.end_group();
      says += words_of("A copy", chart_.copy);
    }
    for (const SpeedLine& one : chart_.lines) {
      svg_.begin_group("series", one.name);
      line(one.points, color_of(one.place), dashes_of(one.place));
      for (const SpeedPoint& p : one.points) {
        const double x = x_.at(p.bytes);
        if (p.p5_us > 0 && p.p95_us > 0) whisker(x, p, color_of(one.place));
        svg_.mark(x, y_.at(rate(p)), mark_of(one.place), color_of(one.place), one.name + ", " + words_of(p));
      }
      svg_.end_group();
      says += words_of(one.name, one.points);
    }
    for (const SpeedLevel& level : chart_.levels)
      says += fmt::format(" Roof of {}: {}.", level.name, gbs_text(level.gbs));
    return {svg_.file(chart_.title, says), says};
  }

 private:
  double bottom() const { return top_ + kPlot; }

  /// Calls place(i, x, row) for each name of the legend; returns the number of rows.
  template <class Place>
  int lay_out(const Place& place) const {
    double x = kLeft;
    int row = 0;
    for (std::size_t i = 0; i <= chart_.lines.size(); ++i) {
      if (i == chart_.lines.size() && chart_.copy.empty()) break;
      const double width =
          42 + width_of(i < chart_.lines.size() ? shortened(chart_.lines[i].name) : kCopy, 13);
      if (x > kLeft && x + width > kWidth - kRight) x = kLeft, ++row;
      place(i, x, row);
      x += width;
    }
    return row + 1;
  }
  int rows() const {
    return lay_out([](std::size_t, double, int) {});
  }

  void legend() {
    svg_.text(8, 20, shortened(chart_.title), "start", 14);
    lay_out([&](std::size_t i, double x, int row) {
      const double y = 38 + kRow * row;
      if (i == chart_.lines.size()) {
        svg_.line(x - 2, y, x + 14, y, "ink");
        return svg_.text(x + 18, y + 4, kCopy);
      }
      const SpeedLine& one = chart_.lines[i];
      svg_.polyline({{x - 2, y}, {x + 14, y}}, color_of(one.place), dashes_of(one.place));
      svg_.mark(x + 6, y, mark_of(one.place), color_of(one.place));
      svg_.text(x + 18, y + 4, shortened(one.name));
    });
  }

  void axes() {
    const double decades = std::log10(y_.high / y_.low);
    for (double power = std::pow(10, std::floor(std::log10(y_.low))); power <= y_.high; power *= 10)
      for (const double digit : {1., 2., 5.}) {
        const double value = power * digit;
        if (value < y_.low || value > y_.high || (decades > 4 && digit != 1)) continue;
        svg_.line(kLeft, y_.at(value), kWidth - kRight, y_.at(value), "soft");
        svg_.text(kLeft - 6, y_.at(value) + 4, fmt::format("{:g}", value), "end", 11);
      }
    svg_.text(kLeft - 6, top_ - 8, "GB/s", "end", 11);
    svg_.line(kLeft, bottom(), kWidth - kRight, bottom(), "ink");
    const double doublings = std::log2(x_.high / x_.low);
    const double step = doublings < 3 ? 2 : doublings < 7 ? 4 : 16;
    for (double bytes = std::exp2(std::ceil(std::log2(x_.low) - 1e-9)); bytes <= x_.high * 1.0001;
         bytes *= step) {
      svg_.line(x_.at(bytes), bottom(), x_.at(bytes), bottom() + 4, "ink");
      svg_.text(x_.at(bytes), bottom() + 17, bytes_text(bytes), "middle", 11);
    }
    svg_.text(kWidth - kRight, bottom() + 34, "bytes moved by one call", "end", 12);
    svg_.text(8, bottom() + 52, "Measured: " + chart_.measured + ".", "start", 11);
    std::string notes = "Marks: medians; bars: 5% to 95% of the samples.";
    if (!chart_.levels.empty())
      notes += chart_.levels.size() > 1 ? " Dotted: a copy in each cache and in memory; dashed: cache sizes."
                                        : " Dotted: a large copy.";
    svg_.text(8, bottom() + 68, notes, "start", 11);
  }

  /// Each where its data lie: from the end of the last one to its own.
  void levels() {
    double begin = x_.low;
    for (const SpeedLevel& level : chart_.levels) {
      const double end = level.bytes > 0 ? std::min(level.bytes, x_.high) : x_.high;
      if (end <= begin) continue;
      const double x1 = begin > x_.low ? x_.at(begin) : kLeft,
                   x2 = end < x_.high ? x_.at(end) : kWidth - kRight;
      svg_.begin_group("roof", level.name + ": " + gbs_text(level.gbs));
      svg_.polyline({{x1, y_.at(level.gbs)}, {x2, y_.at(level.gbs)}}, "ink", "1 3");
      svg_.end_group();
      const std::string label = level.name + ": " + gbs_text(level.gbs);
      if (width_of(label, 11) < x2 - x1) svg_.text((x1 + x2) / 2, top_ - 8, label, "middle", 11);
      if (level.bytes > 0 && level.bytes < x_.high) {
        svg_.line(x2, top_ - 4, x2, bottom(), "ink", true);
        svg_.text(x2, top_ - 22, bytes_text(level.bytes), "middle", 11);
      }
      begin = end;
    }
  }

  void line(const std::vector<SpeedPoint>& points, const std::string& color, const std::string& dashes) {
    std::vector<std::pair<double, double>> places;
    for (const SpeedPoint& p : points) places.emplace_back(x_.at(p.bytes), y_.at(rate(p)));
    svg_.polyline(places, color, dashes);
  }

  /// From the slow end of the samples to the fast one, where that is more than the mark hides.
  void whisker(double x, const SpeedPoint& p, const std::string& color) {
    const double slow = std::max(y_.low, p.bytes / p.p95_us * 1e-3),
                 fast = std::min(y_.high, p.bytes / p.p5_us * 1e-3);
    if (fast > slow && y_.at(slow) - y_.at(fast) > 8) svg_.line(x, y_.at(slow), x, y_.at(fast), color);
  }

  static constexpr const char* kCopy = "copy of the same bytes";
  const SpeedChart& chart_;
  const double top_;
  Svg svg_;
  Scale x_{}, y_{};
};

}  // namespace

Picture draw(const SpeedChart& chart) { return Plot(chart).picture(); }

}  // namespace rooftile::drawing
