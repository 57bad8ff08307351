#include "rooftile/harness/drawing/svg.h"

#include <fmt/format.h>

namespace rooftile::drawing {
namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (static_cast<unsigned char>(c) < 0x20)  // no XML holds them
      out += ' ';
    else
      out += c;
  }
  return out;
}

std::string title(const std::string& says) {
  return says.empty() ? "" : "<title>" + escaped(says) + "</title>";
}

/// Without digits that say nothing: 12.5, 3.
std::string figure(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

// Contrast at least 4.5 to 1 for text on both grounds, 3 to 1 for bars.
const char* const kStyle = R"(<style>
  .ink { fill: #1f2328 } .ground { fill: #ffffff }
  .main { fill: #0969da } .other { fill: #8250df } .warn { fill: #bc4c00 } .soft { fill: #d0d7de }
  .line-ink { stroke: #57606a } .line-main { stroke: #0969da } .line-warn { stroke: #bc4c00 } .line-soft { stroke: #b6bec7 }
  text { font-family: -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif }
  text.code { font-family: ui-monospace, "SFMono-Regular", "DejaVu Sans Mono", Menlo, monospace }
  @media (prefers-color-scheme: dark) {
    .ink { fill: #e6edf3 } .ground { fill: #0d1117 }
    .main { fill: #4493f8 } .other { fill: #ab7df8 } .warn { fill: #f0883e } .soft { fill: #3d444d }
    .line-ink { stroke: #9198a1 } .line-main { stroke: #4493f8 } .line-warn { stroke: #f0883e } .line-soft { stroke: #59636e }
  }
</style>)";

}  // namespace

Svg::Svg(double width, double height) : width_(width), height_(height) {}

void Svg::rect(double x, double y, double width, double height, const std::string& color) {
  body_ += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", color,
                       figure(x), figure(y), figure(width), figure(height));
}
void Svg::frame(double x, double y, double width, double height, const std::string& color) {
  body_ +=
      fmt::format("<rect class=\"line-{}\" fill=\"none\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
                  color, figure(x), figure(y), figure(width), figure(height));
}
void Svg::line(double x1, double y1, double x2, double y2, const std::string& color, bool dashed) {
  body_ +=
      fmt::format("<line class=\"line-{}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"{}/>\n", color, figure(x1),
                  figure(y1), figure(x2), figure(y2), dashed ? " stroke-dasharray=\"4 3\"" : "");
}
void Svg::circle(double x, double y, double r, const std::string& color) {
  body_ += fmt::format("<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"{}\"/>\n", color, figure(x), figure(y),
                       figure(r));
}
void Svg::text(double x, double y, const std::string& text, const std::string& anchor, double size,
               bool code) {
  body_ += fmt::format("<text class=\"ink{}\" x=\"{}\" y=\"{}\" font-size=\"{}\"{}>{}</text>\n",
                       code ? " code" : "", figure(x), figure(y), figure(size),
                       anchor == "start" ? "" : " text-anchor=\"" + anchor + "\"", escaped(text));
}

void Svg::polyline(const std::vector<std::pair<double, double>>& points, const std::string& color,
                   const std::string& dashes) {
  std::string list;
  for (const auto& [x, y] : points) list += (list.empty() ? "" : " ") + figure(x) + "," + figure(y);
  body_ += fmt::format("<polyline class=\"line-{}\" fill=\"none\" stroke-width=\"1.5\" points=\"{}\"{}/>\n",
                       color, list, dashes.empty() ? "" : " stroke-dasharray=\"" + dashes + "\"");
}

void Svg::mark(double x, double y, int kind, const std::string& color, const std::string& says) {
  // Of about one area each, around their place.
  const char* const shapes[] = {"M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z", "M-3.2 -3.2h6.4v6.4h-6.4z",
                                "M0 -4.5L4.5 0L0 4.5L-4.5 0z", "M0 -4.4L4.2 3.2H-4.2z"};
  body_ += fmt::format("<path class=\"mark {}\" transform=\"translate({} {})\" d=\"{}\">{}</path>\n", color,
                       figure(x), figure(y), shapes[static_cast<unsigned>(kind) % 4], title(says));
}

void Svg::begin_group(const std::string& name, const std::string& says) {
  body_ += "<g class=\"" + name + "\">" + title(says) + "\n";
}
void Svg::end_group() { body_ += "</g>\n"; }
void Svg::add_style(const std::string& rules) { rules_ += rules; }

std::string Svg::file(const std::string& title, const std::string& alternative) const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "role=\"img\" "
      "aria-labelledby=\"title desc\">\n<title id=\"title\">{2}</title>\n<desc "
      "id=\"desc\">{3}</desc>\n{4}\n{5}"
      "<rect class=\"ground\" width=\"{0}\" height=\"{1}\"/>\n{6}</svg>\n",
      figure(width_), figure(height_), escaped(title), escaped(alternative), kStyle,
      rules_.empty() ? "" : "<style>\n" + rules_ + "</style>\n", body_);
}

}  // namespace rooftile::drawing
