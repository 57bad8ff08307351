// A drawing as SVG: readable in light and in dark, with a text alternative.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rooftile::drawing {

/// Colours are classes, so that one style gives each two values: "ink", "soft" (lines, empty boxes), "main",
/// "other", "warn".
class Svg {
 public:
  Svg(double width, double height);
  void rect(double x, double y, double width, double height, const std::string& color);
  /// Only its border.
  void frame(double x, double y, double width, double height, const std::string& color);
  void line(double x1, double y1, double x2, double y2, const std::string& color, bool dashed = false);
  void circle(double x, double y, double r, const std::string& color);
  void polyline(const std::vector<std::pair<double, double>>& points, const std::string& color,
                const std::string& dashes = "");
  /// A point of a plot: `kind` 0 circle, 1 square, 2 diamond, 3 triangle. `says`: what a pointer over it
  /// shows.
  void mark(double x, double y, int kind, const std::string& color, const std::string& says = "");
  /// anchor: "start", "middle" or "end".
  void text(double x, double y, const std::string& text, const std::string& anchor = "start",
            double size = 13, bool code = false);
  /// What is drawn until end_group() has the class `name`, for rules that add_style() adds. `says`: as
  /// mark().
  void begin_group(const std::string& name, const std::string& says = "");
  void end_group();
  void add_style(const std::string& rules);
  /// The whole file. `title` and `alternative` are what a screen reader says.
  std::string file(const std::string& title, const std::string& alternative) const;

 private:
  double width_, height_;
  std::string body_, rules_;
};

}  // namespace rooftile::drawing
