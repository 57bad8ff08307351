#pragma once
// The repository's source lines, for tools that point at them.
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace rooftile::harness {

/// A path as compilers name it ("build/release/rooftile/ops/…", or with its beginning cut off) from the
/// repository's root on.
inline std::string from_root(const std::string& file) {
  for (const char* part : {"rooftile/ops/", "rooftile/tile/", "rooftile/backend/", "rooftile/core/"})
    if (const std::size_t at = file.rfind(part); at != file.npos) return file.substr(at);
  return file;
}

/// Lines of source files, each file read once.
class Sources {
 public:
  explicit Sources(const std::vector<std::string>& folders) : folders_(folders) {}

  /// Line `number`, without the blanks around it; "" where the file or the line is not there.
  std::string line(const std::string& file, int number) {
    auto [found, is_new] = files_.try_emplace(file);
    if (is_new) read(file, found->second);
    const auto index = static_cast<std::size_t>(number) - 1;
    if (number < 1 || index >= found->second.size()) return "";
    const std::string& line = found->second[index];
    const std::size_t first = line.find_first_not_of(" \t");
    return first == line.npos ? "" : line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
  }

 private:
  void read(const std::string& file, std::vector<std::string>& lines) const {
    for (const std::string& folder : folders_) {
      std::ifstream stream(folder + "/" + file);
      for (std::string line; std::getline(stream, line);) lines.push_back(line);
      if (!lines.empty()) return;
    }
  }
  std::vector<std::string> folders_;
  std::map<std::string, std::vector<std::string>> files_;
};

}  // namespace rooftile::harness
