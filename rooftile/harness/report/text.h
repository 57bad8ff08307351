#pragma once

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// How the report writes text and numbers. Part of report.cpp, not a public header.
namespace rooftile::harness::report {

using Number = std::optional<double>;

inline constexpr const char* kUnknown = "–";

/// Text for HTML, between tags or inside a quoted attribute.
inline std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default: {
        // Control characters (a terminal's colours in a compiler's name) have no meaning in HTML.
        const bool control = (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
        out += control ? ' ' : c;
      }
    }
  }
  return out;
}

/// JSON for a script element: no character that HTML's parser could take for a tag, a comment or an entity.
inline std::string escape_script_json(std::string_view json) {
  std::string out;
  out.reserve(json.size() + 64);
  for (const char c : json) {
    if (c == '<' || c == '>' || c == '&')
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out;
}

/// Three significant digits without an exponent: 0.0123, 1.23, 12.3, 123, 1234.
inline std::string digits(double value) {
  const double size = std::fabs(value);
  if (size == 0) return "0";
  if (size < 1e-4 || size >= 1e15) return fmt::format("{:.2e}", value);
  // 9.996 is written 10.0, not 10.00: the digits follow from the rounded value.
  const int magnitude = static_cast<int>(std::floor(std::log10(size * (1 + 0.5e-3))));
  return fmt::format("{:.{}f}", value, magnitude >= 2 ? 0 : 2 - magnitude);
}

inline std::string digits(Number value) { return value ? digits(*value) : kUnknown; }

/// Whole numbers with narrow spaces between thousands.
inline std::string count(Number value) {
  if (!value) return kUnknown;
  if (std::fabs(*value) >= 1e15) return digits(*value);
  const std::string plain = fmt::format("{:.0f}", *value);
  std::string out;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (i > 0 && plain[i - 1] != '-' && (plain.size() - i) % 3 == 0) out += "\u202f";
    out += plain[i];
  }
  return out;
}

inline std::string scaled(Number value, double step, std::initializer_list<const char*> units) {
  if (!value) return kUnknown;
  double rest = *value;
  const auto* unit = units.begin();
  // 999.6 ns would be written "1000 ns".
  while (unit + 1 != units.end() && std::fabs(rest) >= step * (1 - 0.5e-3)) rest /= step, ++unit;
  const std::string number =
      rest == std::floor(rest) && std::fabs(rest) < 1e6 ? fmt::format("{:.0f}", rest) : digits(rest);
  return number + "\u00a0" + *unit;
}

inline std::string bytes(Number value) { return scaled(value, 1024, {"B", "KiB", "MiB", "GiB", "TiB"}); }

inline std::string time_us(Number value) {
  if (!value) return kUnknown;
  return scaled(*value * 1e3, 1000, {"ns", "µs", "ms", "s"});
}

inline std::string gbs(Number value) { return value ? digits(*value) + "\u00a0GB/s" : kUnknown; }

inline std::string percent(Number share) {
  if (!share) return kUnknown;
  const double value = *share * 100;
  if (value == 0) return "0%";
  if (value < 0.01) return "under 0.01%";
  if (value > 1e4) return "over 10\u202f000%";
  return fmt::format("{:.{}f}%", value, value >= 9.95 ? 0 : value >= 0.995 ? 1 : 2);
}

/// "1.9×"
inline std::string times(Number ratio) {
  if (!ratio) return kUnknown;
  return fmt::format("{:.{}f}×", *ratio, *ratio >= 9.95 ? 0 : *ratio >= 0.995 ? 1 : 2);
}

inline std::string plural(double number, const char* one, const char* many) {
  return count(number) + " " + (number == 1 ? one : many);
}

/// "2026-11-21T07:00:00Z" as "21 November 2026, 07:00 UTC"; anything else as it is.
inline std::string date(const std::string& iso) {
  static constexpr std::array<const char*, 12> kMonths = {"January",   "February", "March",    "April",
                                                          "May",       "June",     "July",     "August",
                                                          "September", "October",  "November", "December"};
  int year = 0, month = 0, day = 0, hour = 0, minute = 0;
  char zone = 0;
  const int read =
      std::sscanf(iso.c_str(), "%4d-%2d-%2dT%2d:%2d:%*2d%c", &year, &month, &day, &hour, &minute, &zone);
  if (read != 6 || month < 1 || month > 12 || zone != 'Z') return iso;
  return fmt::format("{} {} {}, {:02}:{:02} UTC", day, kMonths[static_cast<std::size_t>(month - 1)], year,
                     hour, minute);
}

/// A column's heading, with what it means for whoever rests the pointer on it.
struct Column {
  const char* name;
  bool numeric;
  const char* title = "";
};

/// Said before a table that may be wider than its page; the script hides it where all columns are in sight.
inline constexpr const char* kScrollHint =
    "<p class=\"more\">More columns to the right: scroll this table sideways →</p>\n";

/// A table in its own scrolling box. Cells are HTML: callers escape them.
class Table {
 public:
  Table(std::string caption, std::vector<Column> columns)
      : caption_(std::move(caption)), columns_(std::move(columns)) {}

  void row(const std::vector<std::string>& cells, const char* row_class = "") {
    body_ += *row_class ? fmt::format("<tr class=\"{}\">", row_class) : "<tr>";
    for (std::size_t i = 0; i < cells.size() && i < columns_.size(); ++i) {
      // The first cell names the row, for screen readers and for the phone, where it stays in sight.
      const char* tag = i == 0 ? "th scope=\"row\"" : "td";
      body_ += fmt::format("<{}{}>{}</{}>", tag, columns_[i].numeric ? " class=\"n\"" : "", cells[i],
                           i == 0 ? "th" : "td");
    }
    body_ += "</tr>\n";
    ++rows_;
  }

  std::size_t rows() const { return rows_; }

  std::string html() const {
    std::string head;
    for (const Column& column : columns_) {
      const std::string title = *column.title ? fmt::format(" title=\"{}\"", escape(column.title)) : "";
      head += fmt::format("<th scope=\"col\"{}{}>{}</th>", column.numeric ? " class=\"n\"" : "", title,
                          column.name);
    }
    // tabindex lets the keyboard scroll the box.
    return fmt::format(
        "{3}<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
        "aria-label=\"{0}\"><table><caption>{0}</caption>\n"
        "<thead><tr>{1}</tr></thead>\n<tbody>\n{2}</tbody></table></div>\n",
        escape(caption_), head, body_, kScrollHint);
  }

 private:
  std::string caption_;
  std::vector<Column> columns_;
  std::string body_;
  std::size_t rows_ = 0;
};

/// A bar with its limit marked; `scale` is the share at the right end. The number stands beside it in text.
inline std::string bar(Number share, double scale, const char* bar_class = "", const std::string& more = "") {
  if (!share) return "";
  const double length = std::fmin(std::fmax(*share / scale, 0), 1) * 100;
  return fmt::format(
      "<span class=\"bar {}\" aria-hidden=\"true\"><span class=\"fill\" style=\"width:{:.1f}%\"></span>"
      "<span class=\"mark\" style=\"left:{:.1f}%\"></span>{}</span>",
      bar_class, length, 100 / scale, more);
}

}  // namespace rooftile::harness::report
