// The table of the library's kernels, a row an op's folder, between
//   <!-- kernels: rooftile/ops -->  and  <!-- /kernels -->
// What is there is read from the folder: its public functions, its sources for CPUs and GPUs, its backward,
// and the languages of its versions.py. A new folder brings its row.
#include <fmt/format.h>

#include <algorithm>

#include "tools/docs.h"

namespace docs {
namespace {

const char* const kTick = "✓";

/// The functions that the op's header declares, without their workspaces: "softmax", "softmax_backward".
std::vector<std::string> functions_of(const Repository& repository, const std::string& folder,
                                      const std::string& op) {
  std::vector<std::string> found;
  for (const std::string& line : repository.lines_of(folder + op + ".h")) {
    if (!starts_with(line, "Status ") || line.find('(') == line.npos) continue;
    const std::string name = line.substr(7, line.find('(') - 7);
    if (!name.ends_with("_workspace") && std::find(found.begin(), found.end(), name) == found.end())
      found.push_back(name);
  }
  return found;
}

/// Whether versions.py has each of the functions in a language: a tick, "3 of 8", or nothing.
std::string versions_in(const std::vector<std::string>& lines, const std::vector<std::string>& functions,
                        const std::string& language) {
  std::size_t there = 0;
  for (const std::string& function : functions)
    there += std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return starts_with(line, "def " + function + "_" + language + "(");
    });
  if (there == functions.size()) return kTick;
  return there ? fmt::format("{} of {}", there, functions.size()) : "";
}

std::string rows_of(const Repository& repository, const Page& page, const std::string& ops,
                    std::vector<std::string>& rows) {
  const std::pair<const char*, const char*> languages[] = {{"plain", "Python"},  {"torch", "PyTorch"},
                                                           {"triton", "Triton"}, {"numba", "Numba"},
                                                           {"cutile", "cuTile"}, {"cute", "CuTe"}};
  std::string head = "| Kernels | CPU | GPU | Backward |", rule = "|---|:-:|:-:|:-:|";
  for (const auto& [suffix, name] : languages) head += fmt::format(" {} |", name), rule += ":-:|";
  rows = {head, rule};
  for (const std::string& header : repository.files) {
    const std::filesystem::path path = header;
    const std::string op = path.stem(), folder = ops + "/" + op + "/";
    if (header != folder + op + ".h") continue;
    std::vector<std::string> forward;
    bool has_backward = false;
    for (const std::string& function : functions_of(repository, folder, op))
      if (function.ends_with("_backward"))
        has_backward = true;
      else
        forward.push_back(function);
    if (forward.empty()) continue;
    const bool on_cpu = repository.has(folder + op + ".cpu.cpp"),
               on_gpu = repository.has(folder + op + ".cu");
    // One text for both; or none, where a function is composed of others, which run on both.
    const bool both = repository.has(folder + op + ".kernels.cpp") || (!on_cpu && !on_gpu);
    const std::string names = fmt::format("{}", fmt::join(forward, ", "));
    const std::string way = relative_to(page.path, folder + "README.md");
    rows.push_back(
        fmt::format("| {} | {} | {} | {} |",
                    repository.has(folder + "README.md") ? fmt::format("[{}]({})", names, way) : names,
                    both || on_cpu ? kTick : "", both || on_gpu ? kTick : "", has_backward ? kTick : ""));
    const std::vector<std::string> versions = repository.lines_of(folder + "versions.py");
    for (const auto& language : languages)
      rows.back() += fmt::format(" {} |", versions_in(versions, forward, language.first));
  }
  return rows.size() > 2 ? "" : "no folder in " + ops + " has a header of its name";
}

}  // namespace

Page with_kernels(const Repository& repository, const Page& page, Problems& problems) {
  return with_generated(page, "kernels", problems,
                        [&](const std::string& ops, std::vector<std::string>& rows) {
                          return rows_of(repository, page, ops, rows);
                        });
}

}  // namespace docs
