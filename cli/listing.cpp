#include "cli/listing.h"

#include <cxxabi.h>

#include <cstdlib>
#include <regex>
#include <string_view>

namespace rooftile::cli {
namespace {

template <class F>
void each_line(const std::string& text, F&& body) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    body(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
  }
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

/// Adds a source line unless the last one is the same.
void add_source(ListedFunction& to, std::string_view file, int line) {
  for (auto it = to.lines.rbegin(); it != to.lines.rend(); ++it) {
    if (it->file.empty()) continue;
    if (it->file == file && it->line == line) return;
    break;
  }
  // Of lines without an instruction between them only the last counts.
  if (!to.lines.empty() && !to.lines.back().file.empty()) to.lines.pop_back();
  to.lines.push_back({"", std::string(file), line});
}

}  // namespace

std::vector<ListedFunction> parse_objdump(const std::string& text) {
  std::vector<ListedFunction> functions;
  each_line(text, [&](std::string_view line) {
    if (line.size() > 18 && line.back() == ':' && line[16] == ' ' && line[17] == '<') {  // "0…4e390 <name>:"
      functions.push_back({std::string(line.substr(18, line.size() - 20)),
                           std::strtoull(std::string(line.substr(0, 16)).c_str(), nullptr, 16),
                           {},
                           {}});
      return;
    }
    if (functions.empty() || line.empty()) return;
    ListedFunction& function = functions.back();
    if (line[0] == ' ') {  // "   4e390:\tpush   %rbp"
      const std::size_t tab = line.find('\t');
      if (tab == line.npos) return;
      function.lines.push_back({std::string(trimmed(line.substr(tab + 1))), "", 0});
      // "call 1040 <name>", "lea … # 1060 <name>"; an offset behind a name is a jump within the function, or
      // constants that happen to lie behind another.
      const std::size_t open = line.rfind('<');
      if (open == line.npos || open < 2 || line.back() != '>' || line.find("+0x", open) != line.npos) return;
      const std::size_t blank = line.rfind(' ', open - 2);
      const std::string address(line.substr(blank + 1, open - 2 - blank));
      function.targets.insert(std::strtoull(address.c_str(), nullptr, 16));
      return;
    }
    // "path:line" or "path:line (discriminator 2)"; "name():" says where it was inlined.
    line = line.substr(0, line.find(" (discriminator"));
    const std::size_t colon = line.rfind(':');
    if (colon == line.npos || colon + 1 == line.size()) return;
    const int number = std::atoi(std::string(line.substr(colon + 1)).c_str());
    if (number > 0) add_source(function, line.substr(0, colon), number);
  });
  return functions;
}

std::vector<ListedFunction> parse_nvdisasm(const std::string& text) {
  std::vector<ListedFunction> functions;
  constexpr std::string_view kSection = ".text.", kFile = "//## File \"";
  bool inside = false;
  each_line(text, [&](std::string_view raw) {
    const std::string_view line = trimmed(raw);
    if (line.starts_with(kSection) && line.ends_with(":")) {
      functions.push_back(
          {std::string(line.substr(kSection.size(), line.size() - kSection.size() - 1)), 0, {}, {}});
      inside = true;
    } else if (line.starts_with(".section") || line.starts_with("//--------------------- .")) {
      inside = line.find(".text.") != line.npos && inside;
    }
    if (!inside || functions.empty()) return;
    ListedFunction& function = functions.back();
    if (line.starts_with(kFile)) {  // //## File "/path/softmax.cu", line 12 inlined at "…", line 40
      const std::size_t close = line.find('"', kFile.size()), word = line.find("line ", close);
      if (close == line.npos || word == line.npos) return;
      add_source(function, line.substr(kFile.size(), close - kFile.size()),
                 std::atoi(std::string(line.substr(word + 5)).c_str()));
    } else if (line.starts_with("/*")) {  // /*0010*/  MOV R1, c[0x0][0x28] ;
      const std::size_t code = line.find("*/");
      if (code != line.npos && line.find(';') != line.npos)
        function.lines.push_back(
            {std::string(trimmed(line.substr(code + 2, line.find(';') - code - 2))), "", 0});
    } else if (line.starts_with(".L_") && line.ends_with(":")) {
      function.lines.push_back({std::string(line), "", 0});
    }
  });
  return functions;
}

std::vector<ListedFunction> parse_ptx(const std::string& text) {
  std::vector<ListedFunction> functions;
  std::map<int, std::string> files;
  bool inside = false;
  std::size_t first = 0;  // of this module's functions: its .file lines stand behind them
  const auto name_files = [&] {
    for (; first < functions.size(); ++first)
      for (ListingLine& l : functions[first].lines)
        if (!l.file.empty()) l.file = files[std::atoi(l.file.c_str())];
    files.clear();
  };
  each_line(text, [&](std::string_view raw) {
    const std::string_view line = trimmed(raw);
    if (line.starts_with(".version")) name_files();
    if (line.starts_with(".file")) {  // .file 1 "/path/softmax.cu"
      const std::size_t open = line.find('"'), close = line.rfind('"');
      if (open != line.npos && close > open)
        files[std::atoi(std::string(line.substr(5)).c_str())] = line.substr(open + 1, close - open - 1);
      return;
    }
    if (const std::size_t entry = line.find(".entry "); entry != line.npos) {
      const std::size_t end = line.find_first_of("( \t", entry + 7);
      functions.push_back({std::string(line.substr(entry + 7, end - entry - 7)), 0, {}, {}});
      inside = true;
    }
    if (!inside || line.empty()) return;
    if (line.starts_with(".loc")) {
      std::string words(line.substr(4));
      char* rest = nullptr;
      const long file = std::strtol(words.c_str(), &rest, 10), number = std::strtol(rest, nullptr, 10);
      if (number > 0) add_source(functions.back(), std::to_string(file), static_cast<int>(number));
      return;
    }
    functions.back().lines.push_back({std::string(line), "", 0});
    if (raw == "}") inside = false;
  });
  name_files();
  return functions;
}

std::vector<const ListedFunction*> reachable(const std::vector<ListedFunction>& functions,
                                             std::uint64_t address) {
  std::map<std::uint64_t, const ListedFunction*> by_address;
  for (const ListedFunction& f : functions)
    if (f.name.find("@plt") == f.name.npos && f.name.find("6Status") >= 16) by_address.emplace(f.address, &f);
  std::vector<const ListedFunction*> reached;
  std::set<const ListedFunction*> known;
  const auto reach = [&](std::uint64_t target) {
    const auto found = by_address.find(target);
    if (found != by_address.end() && known.insert(found->second).second) reached.push_back(found->second);
  };
  reach(address);
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (const std::uint64_t target : reached[i]->targets) reach(target);
  return reached;
}

std::string without_linkage(const std::string& mangled) {
  std::string name;
  for (std::size_t i = 0; i < mangled.size(); ++i)
    if (mangled[i] != 'L' || i + 1 == mangled.size() || mangled[i + 1] < '0' || mangled[i + 1] > '9')
      name += mangled[i];
  return name;
}

bool is_for_other_dtype(const std::string& mangled, const std::string& dtype) {
  // The first parameter of a team, and of what gathers for it, is what it computes in, not what lies in
  // memory.
  static const std::regex team("(C(uda|pu)Team|gather_part|scatter_part)I[fd]");
  static const std::pair<const char*, std::regex> kinds[] = {
      {"f32", std::regex("If[EL]|If$|IfN")},
      {"f64", std::regex("Id[EL]|IdN")},
      {"f16", std::regex("3f16|7AnyHalf|6__half")},
      {"bf16", std::regex("4bf16|7AnyHalf|13__nv_bfloat16")}};
  const std::string name = std::regex_replace(mangled, team, "");
  bool other = false;
  for (const auto& [kind, pattern] : kinds) {
    if (!std::regex_search(name, pattern)) continue;
    if (dtype == kind) return false;
    other = true;
  }
  return other;
}

std::string demangled(const std::string& name) {
  const std::size_t dot = name.find('.');
  int status = 0;
  char* text = abi::__cxa_demangle(name.substr(0, dot).c_str(), nullptr, nullptr, &status);
  const std::string result = status == 0 && text ? text : name;
  std::free(text);
  return dot == name.npos || status != 0 ? result : result + " [" + name.substr(dot + 1) + "]";
}

}  // namespace rooftile::cli
