// The repository's files, pages and headings.
#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "tools/docs.h"

namespace docs {
namespace fs = std::filesystem;

namespace {

std::vector<std::string> files_by_git(const fs::path& root) {
  std::vector<std::string> files;
  std::string quoted = "'";
  for (char c : root.string()) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  quoted += "'";
  FILE* pipe = popen(("git -C " + quoted + " ls-files -z --cached --others --exclude-standard").c_str(), "r");
  if (!pipe) return files;
  std::string all;
  std::array<char, 4096> buffer;
  while (std::size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) all.append(buffer.data(), n);
  pclose(pipe);
  std::istringstream stream(all);
  for (std::string file; std::getline(stream, file, '\0');)
    if (fs::exists(root / file)) files.push_back(file);
  return files;
}

std::vector<std::string> files_by_walking(const fs::path& root) {
  std::vector<std::string> files;
  for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator(); ++it) {
    const std::string name = it->path().filename().string();
    if (it->is_directory() && (name == "build" || (starts_with(name, ".") && name != ".ci")))
      it.disable_recursion_pending();
    else if (it->is_regular_file())
      files.push_back(it->path().lexically_relative(root).generic_string());
  }
  return files;
}

// Punctuation and symbols beyond ASCII, which GitHub drops from anchors: × ÷, general punctuation, arrows,
// mathematics.
bool is_symbol(char32_t code) {
  return (code >= 0x80 && code <= 0xBF && code != 0xAA && code != 0xB5 && code != 0xBA) || code == 0xD7 ||
         code == 0xF7 || (code >= 0x2000 && code <= 0x206F) || (code >= 0x2190 && code <= 0x2BFF);
}

}  // namespace

Repository::Repository(fs::path root_folder) : root(std::move(root_folder)) {
  const bool has_git = fs::exists(root / ".git");
  for (const std::string& file : has_git ? files_by_git(root) : files_by_walking(root)) {
    files.insert(file);
    for (fs::path folder = fs::path(file).parent_path(); !folder.empty(); folder = folder.parent_path())
      folders.insert(folder.generic_string());
  }
}

bool Repository::has(const std::string& path) const {
  std::string plain = path;
  const bool must_be_folder = !plain.empty() && plain.back() == '/';
  if (must_be_folder) plain.pop_back();
  return plain.empty() || folders.count(plain) > 0 || (!must_be_folder && files.count(plain) > 0);
}

std::vector<std::string> Repository::lines_of(const std::string& path) const {
  std::vector<std::string> lines;
  std::ifstream stream(root / path);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> Repository::pages() const {
  std::vector<std::string> pages;
  for (const std::string& file : files)
    if (file.size() > 3 && file.compare(file.size() - 3, 3, ".md") == 0) pages.push_back(file);
  return pages;
}

void Problems::add(const Page& page, std::size_t line, const std::string& what) {
  sentences.push_back(page.path + ":" + std::to_string(line + 1) + ": " + what);
}

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

bool starts_with(const std::string& text, const std::string& start) { return text.rfind(start, 0) == 0; }

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool is_marker(const std::string& line, const std::string& name, std::string& arguments) {
  const std::string text = trimmed(line);
  const std::string open = "<!-- " + name;
  if (!starts_with(text, open) || text.size() < open.size() + 4) return false;
  if (text.compare(text.size() - 4, 4, " -->") != 0) return false;
  arguments = trimmed(text.substr(open.size(), text.size() - open.size() - 4));
  return true;
}

std::vector<bool> fenced_lines(const std::vector<std::string>& lines) {
  std::vector<bool> fenced(lines.size());
  std::string fence;  // the run of ` or ~ that opened the block we are in
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string text = trimmed(lines[i]);
    std::size_t run = 0;
    if (!text.empty() && (text[0] == '`' || text[0] == '~'))
      while (run < text.size() && text[run] == text[0]) ++run;
    if (!fence.empty()) {
      fenced[i] = true;
      if (run >= fence.size() && run == text.size() && text[0] == fence[0]) fence.clear();
    } else if (run >= 3 && text.find('`', run) == std::string::npos) {
      fenced[i] = true;
      fence = text.substr(0, run);
    }
  }
  return fenced;
}

std::string anchor_of_heading(const std::string& heading) {
  std::string anchor;
  for (std::size_t i = 0; i < heading.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(heading[i]);
    if (c == ']' && i + 1 < heading.size() &&
        heading[i + 1] == '(') {  // a link's text stays, its target goes
      i = heading.find(')', i);
      if (i == std::string::npos) break;
    } else if (c < 0x80) {
      if (std::isalnum(c) || c == '-' || c == '_') anchor += static_cast<char>(std::tolower(c));
      if (c == ' ') anchor += '-';
    } else {
      const int extra = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
      char32_t code = c & (0x3Fu >> extra);
      for (int k = 1; k <= extra && i + k < heading.size(); ++k)
        code = (code << 6) | (static_cast<unsigned char>(heading[i + k]) & 0x3Fu);
      if (!is_symbol(code)) anchor += heading.substr(i, extra + 1);
      i += extra;
    }
  }
  return anchor;
}

std::set<std::string> anchors_of(const std::vector<std::string>& lines) {
  std::set<std::string> anchors;
  std::map<std::string, int> seen;
  const std::vector<bool> fenced = fenced_lines(lines);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (fenced[i]) continue;
    const std::string& line = lines[i];
    std::size_t level = 0;
    while (level < line.size() && line[level] == '#') ++level;
    if (level >= 1 && level <= 6 && level < line.size() && line[level] == ' ') {
      const std::string anchor = anchor_of_heading(trimmed(line.substr(level)));
      const int count = seen[anchor]++;
      anchors.insert(count == 0 ? anchor : anchor + "-" + std::to_string(count));
    }
    for (const char* open : {"<a id=\"", "<a name=\""}) {
      const std::size_t at = line.find(open);
      if (at == std::string::npos) continue;
      const std::size_t begin = at + std::string(open).size();
      anchors.insert(line.substr(begin, line.find('"', begin) - begin));
    }
  }
  return anchors;
}

std::string resolve(const std::string& page, const std::string& target) {
  const std::string path = (fs::path(page).parent_path() / target).lexically_normal().generic_string();
  return path == "." ? "" : path;
}

std::string relative_to(const std::string& page, const std::string& path) {
  const fs::path folder = fs::path("/") / fs::path(page).parent_path();
  return (fs::path("/") / path).lexically_relative(folder).generic_string();
}

Page with_generated(const Page& page, const std::string& name, Problems& problems, const Rows& rows) {
  Page out{page.path, {}};
  const std::vector<bool> fenced = fenced_lines(page.lines);
  for (std::size_t i = 0; i < page.lines.size(); ++i) {
    out.lines.push_back(page.lines[i]);
    std::string arguments, ignored;
    if (fenced[i] || !is_marker(page.lines[i], name + ":", arguments)) continue;
    std::size_t end = i + 1;
    while (end < page.lines.size() && !is_marker(page.lines[end], "/" + name, ignored) &&
           !is_marker(page.lines[end], name + ":", ignored))
      ++end;
    if (end == page.lines.size() || !is_marker(page.lines[end], "/" + name, ignored)) {
      problems.add(page, i, "this table is never closed by <!-- /" + name + " -->");
      continue;
    }
    std::vector<std::string> lines;
    if (const std::string error = rows(arguments, lines); !error.empty()) {
      problems.add(page, i, error);
      lines.assign(page.lines.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                   page.lines.begin() + static_cast<std::ptrdiff_t>(end));
    }
    out.lines.insert(out.lines.end(), lines.begin(), lines.end());
    out.lines.push_back(page.lines[end]);
    i = end;
  }
  return out;
}

}  // namespace docs
