// A code block after `<!-- snippet: path region -->` is cut from a source that the build compiles.
#include <algorithm>

#include "tools/docs.h"

namespace docs {
namespace {

// The name in a line such as `// [name]`, `# [/name]`; "" for any other line.
std::string region_mark(const std::string& line) {
  const std::string text = trimmed(line);
  const std::size_t open = starts_with(text, "// [") ? 4 : starts_with(text, "# [") ? 3 : 0;
  if (open == 0 || text.back() != ']') return "";
  const std::string name = text.substr(open, text.size() - open - 1);
  const bool is_plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '/';
  });
  return is_plain ? name : "";
}

// The region's lines, dedented, other regions' marks left out; an error's sentence where it is not there
// once.
std::string cut(const std::vector<std::string>& source, const std::string& region,
                std::vector<std::string>& out) {
  bool is_inside = region.empty();
  int openings = 0;
  for (const std::string& line : source) {
    const std::string mark = region_mark(line);
    if (!region.empty() && mark == region) {
      is_inside = true;
      ++openings;
    } else if (!region.empty() && mark == "/" + region) {
      is_inside = false;
    } else if (is_inside && mark.empty()) {
      out.push_back(line);
    }
  }
  if (!region.empty() && openings == 0) return "has no region [" + region + "]";
  if (openings > 1) return "has the region [" + region + "] " + std::to_string(openings) + " times";
  if (!region.empty() && is_inside) return "never closes the region [" + region + "] with [/" + region + "]";
  std::size_t indent = std::string::npos;
  for (const std::string& line : out)
    if (!trimmed(line).empty()) indent = std::min(indent, line.find_first_not_of(' '));
  for (std::string& line : out) line = trimmed(line).empty() ? "" : line.substr(indent);
  while (!out.empty() && out.back().empty()) out.pop_back();
  while (!out.empty() && out.front().empty()) out.erase(out.begin());
  if (out.empty()) return "has nothing in the region [" + region + "]";
  return "";
}

std::string language_of(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".cu" || extension == ".cpp" || extension == ".h") return "cpp";
  if (extension == ".sh") return "sh";
  if (extension == ".py") return "python";
  return extension == ".cmake" || name == "CMakeLists.txt" ? "cmake" : "";
}

}  // namespace

Page with_snippets(const Repository& repository, const Page& page, Problems& problems) {
  Page out{page.path, {}};
  const std::vector<bool> fenced = fenced_lines(page.lines);
  for (std::size_t i = 0; i < page.lines.size(); ++i) {
    out.lines.push_back(page.lines[i]);
    std::string arguments;
    if (fenced[i] || !is_marker(page.lines[i], "snippet:", arguments)) continue;
    const std::vector<std::string> words = words_of(arguments);
    if (words.empty() || words.size() > 2) {
      problems.add(page, i, "a snippet's marker reads <!-- snippet: path region -->");
      continue;
    }
    if (repository.files.count(words[0]) == 0) {
      problems.add(page, i, "snippet: there is no file " + words[0]);
      continue;
    }
    std::vector<std::string> code;
    const std::string error = cut(repository.lines_of(words[0]), words.size() == 2 ? words[1] : "", code);
    if (!error.empty()) {
      problems.add(page, i, "snippet: " + words[0] + " " + error);
      continue;
    }
    // In a list's item the block is indented as its marker is.
    const std::string indent = page.lines[i].substr(0, page.lines[i].find('<'));
    for (std::string& line : code) line = line.empty() ? "" : indent + line;
    std::string mark = "```";
    if (i + 1 < page.lines.size() && fenced[i + 1]) {  // the block there is keeps its opening line
      out.lines.push_back(page.lines[++i]);
      const std::string fence = trimmed(page.lines[i]);
      mark = fence.substr(0, fence.find_first_not_of(fence[0]));
      while (i + 1 < page.lines.size() && fenced[i + 1] && trimmed(page.lines[i + 1]) != mark) ++i;
      ++i;
    } else {
      out.lines.push_back(indent + mark + language_of(words[0]));
    }
    out.lines.insert(out.lines.end(), code.begin(), code.end());
    out.lines.push_back(indent + mark);
  }
  return out;
}

}  // namespace docs
