// The course's index: docs/course/course.json lists every lesson to be, docs/course/README.md shows between
//   <!-- course-index -->  and  <!-- /course-index -->
// which are there (linked) and which are to come (greyed, no link). A lesson's "continued" are its further
// pages.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/docs.h"

namespace docs {
namespace {

using nlohmann::json;

const char* const kIndex = "docs/course/README.md";
const char* const kList = "docs/course/course.json";

struct Lesson {
  int number = 0;
  std::string title, file;
};

std::string row_of(const Repository& repository, const Lesson& lesson, std::string& error) {
  const std::string number = std::to_string(lesson.number);
  const std::size_t hash = lesson.file.find('#');
  const std::string file = lesson.file.substr(0, hash);
  if (file.empty() || repository.files.count(file) == 0)
    return "| <sub>" + number + "</sub> | <sub><i>" + lesson.title + "</i></sub> | <sub>to come</sub> |";
  if (hash != std::string::npos &&
      anchors_of(repository.lines_of(file)).count(lesson.file.substr(hash + 1)) == 0)
    error = "lesson " + number + ": " + file + " has no heading " + lesson.file.substr(hash);
  return "| " + number + " | [" + lesson.title + "](" + relative_to(kIndex, lesson.file) + ") | `" + file +
         "` |";
}

/// A lesson that is there leads to the next one that is: its line "**Next:**" links to it.
void check_next(const Repository& repository, const std::vector<std::string>& lessons, Problems& problems) {
  for (std::size_t i = 0; i + 1 < lessons.size(); ++i) {
    const Page page{lessons[i], repository.lines_of(lessons[i])};
    const std::string link = "](" + relative_to(page.path, lessons[i + 1]) + ")";
    const auto next = std::find_if(page.lines.begin(), page.lines.end(),
                                   [](const std::string& line) { return starts_with(line, "**Next:**"); });
    if (next == page.lines.end())
      problems.add(page, page.lines.empty() ? 0 : page.lines.size() - 1,
                   "a lesson ends with **Next:** […" + link);
    else if (next->find(link) == std::string::npos)
      problems.add(page, static_cast<std::size_t>(next - page.lines.begin()),
                   "the next lesson that is there is […" + link);
  }
}

}  // namespace

Page with_course_index(const Repository& repository, const Page& page, Problems& problems) {
  if (page.path != kIndex) return page;
  std::string whole;
  for (const std::string& line : repository.lines_of(kList)) whole += line + "\n";
  const json sections = json::parse(whole, nullptr, false);
  if (sections.is_discarded() || !sections.is_array()) {
    problems.add(page, 0, std::string(kList) + " is not a JSON list of sections");
    return page;
  }
  std::string ignored;
  const auto find = [&](const char* name) {
    return std::find_if(page.lines.begin(), page.lines.end(),
                        [&](const std::string& line) { return is_marker(line, name, ignored); });
  };
  const auto begin = find("course-index");
  const auto end = find("/course-index");
  if (begin == page.lines.end() || end == page.lines.end() || end < begin) {
    problems.add(page, 0, "there is no <!-- course-index --> … <!-- /course-index -->");
    return page;
  }

  Page out{page.path, {page.lines.begin(), begin + 1}};
  std::set<std::string> named = {kIndex};
  std::vector<std::string> there;
  int expected = 1;
  for (const json& section : sections) {
    out.lines.insert(out.lines.end(), {"", "## " + section.at("title").get<std::string>(), "",
                                       "| | Lesson | Where |", "|---:|---|---|"});
    for (const json& entry : section.at("lessons")) {
      const Lesson lesson{entry.at("number"), entry.at("title"), entry.value("file", "")};
      if (lesson.number != expected)
        problems.add(page, 0,
                     "lesson " + std::to_string(lesson.number) + " stands where " + std::to_string(expected) +
                         " should in " + kList);
      expected = lesson.number + 1;
      std::string error;
      out.lines.push_back(row_of(repository, lesson, error));
      if (!error.empty()) problems.add(page, 0, error);
      const std::string file = lesson.file.substr(0, lesson.file.find('#'));
      named.insert(file);
      if (repository.has(file) && (there.empty() || there.back() != file)) there.push_back(file);
      for (const json& more : entry.value("continued", json::array())) {  // further pages of this lesson
        const std::string page_file = more.at("file");
        named.insert(page_file);
        if (!repository.has(page_file)) continue;
        out.lines.push_back("| | [" + more.at("title").get<std::string>() + "](" +
                            relative_to(kIndex, page_file) + ") | `" + page_file + "` |");
      }
    }
  }
  check_next(repository, there, problems);
  out.lines.push_back("");
  out.lines.insert(out.lines.end(), end, page.lines.end());
  for (const std::string& file : repository.pages())
    if (starts_with(file, "docs/course/") && named.count(file) == 0)
      problems.add(page, 0, file + " is in no entry of " + kList);
  return out;
}

}  // namespace docs
