// Every relative link, its anchor, and every path of this repository named in inline code must exist.
#include <fnmatch.h>

#include <algorithm>

#include "tools/docs.h"

namespace docs {
namespace {

// Headers that CMake writes into the build folder, and installs.
const std::set<std::string> kGenerated = {"rooftile/rooftile.h", "rooftile/ops.h"};

const char* const kOwnFolders[] = {"rooftile/", "cli/",   "docs/",  "tests/", "examples/",
                                   "scripts/",  "tools/", "bench/", ".ci/",   "python/"};

bool is_external(const std::string& target) {
  const std::size_t colon = target.find(':');
  return colon != std::string::npos && colon < target.find_first_of("/#?");
}

std::string decoded(const std::string& target) {
  std::string text = target;
  for (std::size_t at; (at = text.find("%20")) != std::string::npos;) text.replace(at, 3, " ");
  return text;
}

void check_target(const Repository& repository, const Page& page, std::size_t line, const std::string& raw,
                  Problems& problems) {
  if (raw.empty()) return problems.add(page, line, "a link without a target");
  if (is_external(raw)) return;
  const std::string target = decoded(raw);
  if (target[0] == '/')
    return problems.add(page, line, "link " + raw + " is absolute: write it relative to this page");
  const std::size_t hash = target.find('#');
  const std::string path = target.substr(0, hash);
  const std::string anchor = hash == std::string::npos ? "" : target.substr(hash + 1);
  const std::string file = path.empty() ? page.path : resolve(page.path, path);
  if (starts_with(file, ".."))
    return problems.add(page, line, "link " + raw + " leads out of the repository");
  if (!repository.has(file)) return problems.add(page, line, "link " + raw + ": there is no " + file);
  if (anchor.empty()) return;
  const std::vector<std::string> lines = file == page.path ? page.lines : repository.lines_of(file);
  if (file.size() > 3 && file.compare(file.size() - 3, 3, ".md") == 0) {
    if (anchors_of(lines).count(anchor) == 0)
      problems.add(page, line, "link " + raw + ": " + file + " has no heading #" + anchor);
  } else if (anchor[0] == 'L' && anchor.size() > 1 && std::isdigit(static_cast<unsigned char>(anchor[1]))) {
    if (std::stoul(anchor.substr(1)) > lines.size())
      problems.add(page, line,
                   "link " + raw + ": " + file + " has " + std::to_string(lines.size()) + " lines");
  }
}

// A word of inline code that reads as a path of ours: a known folder, then letters that paths have.
void check_code_word(const Repository& repository, const Page& page, std::size_t line, std::string word,
                     Problems& problems) {
  while (!word.empty() && std::string("()[],;\"'").find(word.back()) != std::string::npos) word.pop_back();
  while (!word.empty() && std::string("([\"'").find(word.front()) != std::string::npos) word.erase(0, 1);
  const bool is_ours = std::any_of(std::begin(kOwnFolders), std::end(kOwnFolders),
                                   [&](const char* folder) { return starts_with(word, folder); });
  const bool is_rung = starts_with(word, "ladder/") && starts_with(page.path, "rooftile/ops/");
  if (!is_ours && !is_rung) return;
  if (word.find_first_of("<>{}$") != std::string::npos || word.find("…") != std::string::npos)
    return;                                                                                      // a pattern
  if (const std::size_t colon = word.find(':'); colon != std::string::npos) word.resize(colon);  // file:line
  if (is_rung) word = resolve(page.path, word);
  if (kGenerated.count(word)) return;
  if (word.find_first_of("*?") != std::string::npos) {
    const auto matches = [&](const std::string& file) { return fnmatch(word.c_str(), file.c_str(), 0) == 0; };
    if (std::none_of(repository.files.begin(), repository.files.end(), matches) &&
        std::none_of(repository.folders.begin(), repository.folders.end(), matches))
      problems.add(page, line, "`" + word + "` matches no file of the repository");
  } else if (!repository.has(word)) {
    problems.add(page, line, "`" + word + "` names nothing in the repository");
  }
}

// Checks inline code and returns the line with it blanked out, so that links in code are not taken for links.
std::string without_code(const Repository& repository, const Page& page, std::size_t line,
                         Problems& problems) {
  std::string text = page.lines[line];
  for (std::size_t at = 0; (at = text.find('`', at)) != std::string::npos;) {
    std::size_t run = 0;
    while (at + run < text.size() && text[at + run] == '`') ++run;
    const std::size_t close = text.find(std::string(run, '`'), at + run);
    if (close == std::string::npos) break;
    for (const std::string& word : words_of(text.substr(at + run, close - at - run)))
      check_code_word(repository, page, line, word, problems);
    for (std::size_t k = at; k < close + run; ++k) text[k] = ' ';
    at = close + run;
  }
  return text;
}

}  // namespace

void check_links(const Repository& repository, const Page& page, Problems& problems) {
  const std::vector<bool> fenced = fenced_lines(page.lines);
  for (std::size_t i = 0; i < page.lines.size(); ++i) {
    if (fenced[i]) continue;
    const std::string text = without_code(repository, page, i, problems);
    for (std::size_t at = 0; (at = text.find("](", at)) != std::string::npos;) {
      at += 2;
      int depth = 1;
      std::size_t end = at;
      for (; end < text.size(); ++end) {
        if (text[end] == '(') ++depth;
        if (text[end] == ')' && --depth == 0) break;
      }
      std::string target = trimmed(text.substr(at, end - at));
      if (const std::size_t title = target.find(" \""); title != std::string::npos) target.resize(title);
      check_target(repository, page, i, target, problems);
    }
    for (const std::string open : {"href=\"", "src=\""})
      for (std::size_t at = 0; (at = text.find(open, at)) != std::string::npos;) {
        at += open.size();
        check_target(repository, page, i, text.substr(at, text.find('"', at) - at), problems);
      }
    const std::string line = trimmed(text);  // a reference's definition: [name]: target
    const std::size_t colon = line.find("]: ");
    if (!line.empty() && line[0] == '[' && colon != std::string::npos && line.find(']') == colon)
      check_target(repository, page, i, words_of(line.substr(colon + 2)).front(), problems);
  }
}

}  // namespace docs
