#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace rooftile::cli {

/// Columns of text, two blanks apart, each as wide as its widest cell.
class Table {
 public:
  /// A heading that begins with '>' makes its column flush right.
  explicit Table(const std::vector<std::string>& headings);
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  /// Every line ends in a line break; columns in which every cell is empty are left out.
  std::string text(std::string_view indent = "") const;

 private:
  std::vector<std::string> headings_;
  std::vector<bool> flush_right_;
  std::vector<std::vector<std::string>> rows_;
};

/// How many places on a terminal UTF-8 text takes, as far as this command writes any.
int places(std::string_view text);

/// The text, or its beginning and "...", in at most so many places.
std::string cut(std::string_view text, int most);

/// "512 B", "48 KiB", "1.5 MiB".
std::string in_bytes(double bytes);

}  // namespace rooftile::cli
