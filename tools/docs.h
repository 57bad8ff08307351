// What the parts of the documentation tool share: the repository's files, a page, and the problems found.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace docs {

/// One markdown page: its path from the repository's root, and its lines.
struct Page {
  std::string path;
  std::vector<std::string> lines;
};

/// The files that belong to the repository: tracked, or not yet tracked but not ignored either; without git,
/// all but build folders and hidden ones.
struct Repository {
  std::filesystem::path root;
  std::set<std::string> files;
  std::set<std::string> folders;

  explicit Repository(std::filesystem::path root_folder);
  bool has(const std::string& path) const;
  /// The file's lines; empty where it can't be read.
  std::vector<std::string> lines_of(const std::string& path) const;
  std::vector<std::string> pages() const;
};

/// Sentences of the form file:line: what is wrong.
struct Problems {
  std::vector<std::string> sentences;
  void add(const Page& page, std::size_t line, const std::string& what);
};

/// For each line, whether it lies in a fenced code block (the fences included).
std::vector<bool> fenced_lines(const std::vector<std::string>& lines);

/// The anchors that GitHub gives to a page's headings, and those written as <a id="…">.
std::set<std::string> anchors_of(const std::vector<std::string>& lines);
std::string anchor_of_heading(const std::string& heading);

/// "docs/a.md" + "../x/b.md" -> "x/b.md"; "" for the root itself, "../…" for what leads out of the
/// repository.
std::string resolve(const std::string& page, const std::string& target);
/// The way from a page to a path of the repository: "docs/course/a.md", "rooftile/b.h" ->
/// "../../rooftile/b.h".
std::string relative_to(const std::string& page, const std::string& path);

/// Fills what lies between <!-- NAME: ARGUMENTS --> and <!-- /NAME --> on a page outside of fences with the
/// lines that `rows` makes of the arguments. Where it returns a sentence instead, that is a problem, and the
/// old lines stay.
using Rows = std::function<std::string(const std::string& arguments, std::vector<std::string>& lines)>;
Page with_generated(const Page& page, const std::string& name, Problems& problems, const Rows& rows);

std::string trimmed(const std::string& text);
bool starts_with(const std::string& text, const std::string& start);
std::vector<std::string> words_of(const std::string& text);
/// The text between `<!-- name:` and `-->` where the line is such a marker; false where it isn't.
bool is_marker(const std::string& line, const std::string& name, std::string& arguments);

void check_links(const Repository& repository, const Page& page, Problems& problems);
/// Each returns the page as its sources say that it should read.
Page with_snippets(const Repository& repository, const Page& page, Problems& problems);
Page with_tables(const Repository& repository, const Page& page, Problems& problems);
Page with_gaps(const Repository& repository, const Page& page, Problems& problems);
/// The figures that the page shows are drawn anew, too: `files` gets each one's path and text.
Page with_kernels(const Repository& repository, const Page& page, Problems& problems);
Page with_versions(const Repository& repository, const Page& page, Problems& problems);
Page with_figures(const Repository& repository, const Page& page, Problems& problems,
                  std::map<std::string, std::string>& files);
Page with_course_index(const Repository& repository, const Page& page, Problems& problems);

}  // namespace docs
