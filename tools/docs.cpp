// Keeps the documentation true: links, snippets, tables of figures and the course's index.
//   docs_tool --check  [ROOT]   says what is wrong, and exits 1 where anything is
//   docs_tool --update [ROOT]   writes snippets, tables and the index anew, then checks
#include <fmt/format.h>

#include <cstdio>
#include <fstream>

#include "tools/docs.h"
#include "tools/main.h"

namespace {

bool write_page(const std::filesystem::path& file, const docs::Page& page) {
  std::ofstream stream(file, std::ios::trunc);
  for (const std::string& line : page.lines) stream << line << "\n";
  stream.close();
  return !stream.fail();
}

std::size_t first_difference(const docs::Page& a, const docs::Page& b) {
  std::size_t i = 0;
  while (i < a.lines.size() && i < b.lines.size() && a.lines[i] == b.lines[i]) ++i;
  return i;
}

/// Figures are files of their own: written, or compared with what they should be. One that no page shows is
/// left over.
void keep_figures(const docs::Repository& repository, const std::map<std::string, std::string>& figures,
                  bool is_update, docs::Problems& problems) {
  for (const auto& [path, text] : figures) {
    std::string kept;
    for (const std::string& line : repository.lines_of(path)) kept += line + "\n";
    if (kept == text) continue;
    const docs::Page page{path, {}};
    if (!is_update) {
      problems.add(page, 0, "is not what its page draws; run make docs");
      continue;
    }
    std::filesystem::create_directories((repository.root / path).parent_path());
    std::ofstream stream(repository.root / path, std::ios::trunc);
    stream << text;
    stream.close();
    if (stream.fail()) problems.add(page, 0, "could not be written");
    fmt::print("docs: {} drawn\n", path);
  }
  for (const std::string& file : repository.files)
    if (docs::starts_with(file, "docs/figures/") && file.ends_with(".svg") && figures.count(file) == 0)
      problems.add({file, {}}, 0, "no page shows this figure: remove it");
}

int run(bool is_update, const std::filesystem::path& root) {
  docs::Repository repository(root);
  docs::Problems problems;
  std::map<std::string, std::string> figures;
  for (const std::string& path : repository.pages()) {
    const docs::Page page{path, repository.lines_of(path)};
    docs::Page fresh = docs::with_snippets(repository, page, problems);
    fresh = docs::with_tables(repository, fresh, problems);
    fresh = docs::with_gaps(repository, fresh, problems);
    fresh = docs::with_kernels(repository, fresh, problems);
    fresh = docs::with_versions(repository, fresh, problems);
    fresh = docs::with_figures(repository, fresh, problems, figures);
    for (const auto& [figure, text] : figures) repository.files.insert(figure);  // about to be drawn
    fresh = docs::with_course_index(repository, fresh, problems);
    if (fresh.lines != page.lines && is_update) {
      if (!write_page(root / path, fresh)) problems.add(page, 0, "could not be written");
      fmt::print("docs: {} updated\n", path);
    } else if (fresh.lines != page.lines) {
      const std::size_t line = first_difference(page, fresh);
      problems.add(page, line,
                   fmt::format("differs from its source, which says '{}'; run make docs",
                               line < fresh.lines.size() ? fresh.lines[line] : "(nothing)"));
    }
    docs::check_links(repository, fresh, problems);
  }
  keep_figures(repository, figures, is_update, problems);
  for (const std::string& sentence : problems.sentences) fmt::print(stderr, "{}\n", sentence);
  fmt::print("docs: {} pages, {} problems\n", repository.pages().size(), problems.sentences.size());
  return problems.sentences.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) { return tool_main(argc, argv, "docs_tool", run); }
