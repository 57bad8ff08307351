// Writes docs/reference.md, one section for each function of the library, from the functions' signatures and
// the first sentence of the comment at their declaration.
//   reference_tool --check  [ROOT]   exits 1 where the page differs
//   reference_tool --update [ROOT]   writes it
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "rooftile/core/op.h"
#include "rooftile/harness/signature_text.h"
#include "tools/main.h"

namespace {

namespace fs = std::filesystem;
using rooftile::Op;

std::string contents_of(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

struct Declaration {
  std::string header, summary;  ///< "rooftile/ops/softmax/softmax.h"; what the comment says first
};

/// The comment's text up to the end of its first sentence, or up to the equation that a colon announces.
std::string first_sentence(const std::vector<std::string>& comment) {
  std::string text;
  for (const std::string& line : comment) {
    if (line.empty()) break;
    text += (text.empty() ? "" : " ") + line;
  }
  for (std::size_t i = 0; i < text.size(); ++i)
    if ((text[i] == '.' || text[i] == ':') && (i + 1 == text.size() || text[i + 1] == ' '))
      return text.substr(0, i) + ".";
  return text;
}

/// Every function that an op's header declares with a comment.
std::map<std::string, Declaration> declarations(const fs::path& root) {
  std::map<std::string, Declaration> found;
  for (const auto& folder : fs::directory_iterator(root / "rooftile/ops")) {
    const fs::path header = folder.path() / (folder.path().filename().string() + ".h");
    std::istringstream lines(contents_of(header));
    std::vector<std::string> comment;
    for (std::string line; std::getline(lines, line);) {
      const std::string start = "Status ";
      if (line.rfind("///", 0) == 0) {
        comment.push_back(line.substr(std::min<std::size_t>(line.size(), 4)));
        continue;
      }
      if (line.rfind(start, 0) == 0 && line.find('(') != line.npos && !comment.empty())
        found[line.substr(start.size(), line.find('(') - start.size())] = {
            fs::relative(header, root).string(), first_sentence(comment)};
      comment.clear();
    }
  }
  return found;
}

std::string page(const fs::path& root) {
  const std::map<std::string, Declaration> declared = declarations(root);
  std::string text =
      "# Reference\n\n"
      "Every function of the library and what it takes, written by `make docs` from the functions' "
      "signatures. Shapes: `…` is\n"
      "any outer sizes, a letter is one size; where two operands have the same letter, they have the same "
      "size. Any strides, up to 8 dimensions.\n"
      "Headers say what a function computes, its errors, cost and source; lessons say how.\n";
  for (const Op* op : rooftile::all_ops()) {
    const auto at = declared.find(op->function);
    if (at == declared.end()) throw std::runtime_error(std::string(op->function) + ": no header declares it");
    const std::string folder = at->second.header.substr(0, at->second.header.rfind('/'));
    text += fmt::format("\n## {}\n\n{}\n[Header](../{}), [lesson](../{}/README.md).\n\n", op->function,
                        at->second.summary, at->second.header, folder);
    text += "| Operand | Role | Dtypes | Shape | Notes |\n|---|---|---|---|---|\n";
    for (const auto& o : rooftile::harness::operand_texts(op->signature))
      text += fmt::format("| `{}` | {} | {} | {} | {} |\n", o.name, o.role, o.dtypes, o.shape, o.notes);
    const auto options = rooftile::harness::option_texts(op->signature);
    if (options.empty()) continue;
    text += "\n| Option | Values | Default |\n|---|---|---|\n";
    for (const auto& o : options)
      text += fmt::format("| `{}` | {} | {} |\n", o.name, o.values, o.default_value);
  }
  return text;
}

/// "const rooftile_view* x, ", for each operand; of lists first how many views each has.
std::string c_operands(const rooftile::Signature& signature) {
  std::string text = signature.has_lists() ? ", int64_t tensors" : "";
  for (int o = 0; o < signature.operand_count(); ++o)
    text += fmt::format(", const rooftile_view* {}", signature.operands[o].name);
  return text;
}

/// An array in C, which has none without elements.
std::string c_array(const char* type, const char* name, const std::vector<std::string>& elements) {
  return fmt::format("  const {} {}[] = {{{}}};\n", type, name,
                     elements.empty() ? "0" : fmt::format("{}", fmt::join(elements, ", ")));
}

std::string c_functions() {
  std::string text =
      "#pragma once\n"
      "#include \"rooftile/c.h\"\n"
      "/* Written by `make docs` from the functions' signatures; included by rooftile/c.h. */\n"
      "/* clang-format off */\n";
  for (const Op* op : rooftile::all_ops()) {
    const rooftile::Signature& s = op->signature;
    const bool lists = s.has_lists();
    std::vector<std::string> operands, options;
    std::string numbers;
    for (int o = 0; o < s.operand_count(); ++o) operands.emplace_back(s.operands[o].name);
    for (int k = 0; k < s.option_count(); ++k) {
      const auto kind = s.options[k].kind;
      const bool real =
          kind == rooftile::Signature::Option::Kind::real || kind == rooftile::Signature::Option::Kind::any;
      const bool whole = kind == rooftile::Signature::Option::Kind::whole;
      numbers += fmt::format(", {} {}", real ? "double" : whole ? "int64_t" : "int", s.options[k].name);
      options.push_back(real ? s.options[k].name : fmt::format("(double){}", s.options[k].name));
    }
    const std::string views = c_array("rooftile_view* const", "views", operands);
    text += fmt::format(
        "static inline rooftile_status rooftile_{0}(const rooftile_queue* queue{1}{2}{3}) {{\n{4}{5}{6}"
        "  return rooftile_call{8}(queue, \"{0}\", views, {9}options, NULL, {7});\n}}\n",
        op->function, c_operands(s), numbers, op->workspace ? ", rooftile_workspace workspace" : "", views,
        c_array("double", "options", options),
        op->workspace ? "" : "  const rooftile_workspace none = {NULL, 0};\n",
        op->workspace ? "workspace" : "none", lists ? "_lists" : "", lists ? "tensors, " : "");
    if (op->workspace)
      text += fmt::format(
          "static inline rooftile_status rooftile_{0}_workspace(const rooftile_queue* queue{1}{2}, size_t* "
          "bytes) "
          "{{\n{3}{4}  return rooftile_workspace_of{5}(queue, \"{0}\", views, {6}options, bytes);\n}}\n",
          op->function, c_operands(s), numbers, views, c_array("double", "options", options),
          lists ? "_lists" : "", lists ? "tensors, " : "");
  }
  return text;
}

int run(bool is_update, const fs::path& root) {
  bool right = true;
  for (const auto& [name, fresh] : {std::pair<const char*, std::string>{"docs/reference.md", page(root)},
                                    {"rooftile/c_functions.h", c_functions()}}) {
    if (contents_of(root / name) == fresh) continue;
    if (is_update) {
      std::ofstream(root / name, std::ios::trunc) << fresh;
      fmt::print("{} updated\n", name);
    } else {
      fmt::print(stderr, "{} differs from the functions' signatures; run make docs\n", name);
      right = false;
    }
  }
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) { return tool_main(argc, argv, "reference_tool", run); }
