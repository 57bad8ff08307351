#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <set>

#include "cli/arguments.h"
#include "cli/manual.h"
#include "rooftile/core/dtype.h"

namespace rooftile::cli {
namespace {

/// The words that a value of this type may be ("OP", "DTYPE", …: CLI11's type names); empty: a file, or
/// anything.
std::vector<std::string> values_of(const CLI::App& root, const std::string& type) {
  std::vector<std::string> words;
  if (type == "DTYPE")
    for (int t = 0; t < kDTypes; ++t) words.emplace_back(name(static_cast<DType>(t)));
  if (type == "OP")
    for (const Op* op : select_ops({})) words.emplace_back(op->function);
  if (type == "VARIANT") {
    std::set<std::string> all;
    for (const Op* op : select_ops({}))
      for (const Variant& variant : op->variants) all.insert(variant.name);
    words.assign(all.begin(), all.end());
  }
  if (type == "DEVICE") words = devices();
  if (type == "ISA") words = isas();
  if (type == "LAYOUT") words = layouts();
  if (type == "COMMAND")
    for (const CLI::App* command :
         root.get_subcommands([](const CLI::App* c) { return !c->get_group().empty(); }))
      words.push_back(command->get_name());
  return words;
}

std::string type_of(const CLI::Option& option) {
  if (!option.nonpositional()) return option.get_name();  // OP, DTYPE
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

/// Cases of the script for this command and those below it. `path`: "bench", "image gray".
void add_cases(const CLI::App& root, const CLI::App& app, const std::string& path, std::string& values,
               std::string& words) {
  std::string mine;
  const auto add = [&](const std::string& word) { mine += (mine.empty() ? "" : " ") + word; };
  for (const CLI::App* command :
       app.get_subcommands([](const CLI::App* c) { return !c->get_group().empty(); })) {
    add(command->get_name());
    add_cases(root, *command, path.empty() ? command->get_name() : path + " " + command->get_name(), values,
              words);
  }
  for (const CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    const std::vector<std::string> known = values_of(root, type_of(*option));
    if (!option->nonpositional()) {
      for (const std::string& word : known) add(word);
      continue;
    }
    std::string names;
    for (const std::string& name : option->get_snames()) add("-" + name);
    for (const std::string& name : option->get_lnames()) {
      add("--" + name);
      names += fmt::format("{}'{} --{}'", names.empty() ? "" : " | ", path, name);
    }
    if (option->get_items_expected_max() > 0)
      values += fmt::format("    {}) words='{}' value=yes ;;\n", names, fmt::join(known, " "));
  }
  words += fmt::format("    '{}') words='{}' ;;\n", path, mine);
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  std::string values, words;
  add_cases(app, app, "", values, words);
  // bash hands over "--dtype=f16" as three words. Of a list, the last element is completed.
  return fmt::format(R"(# Completion of rooftile for bash, made from the command's own model.
_rooftile() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before='' path='' value='' words='' list='' i
  [ "$COMP_CWORD" -gt 0 ] && before=${{COMP_WORDS[COMP_CWORD - 1]}}
  [ "$current" = = ] && current=''
  [ "$before" = = ] && before=${{COMP_WORDS[COMP_CWORD - 2]}}
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "${{COMP_WORDS[i]}}" in
      -*) break ;;
      image) path='image' ;;
      *)
        path=${{path:+$path }}${{COMP_WORDS[i]}}
        break
        ;;
    esac
  done
  case "$path $before" in
{}  esac
  if [ -z "$value" ]; then
    case "$path" in
{}    esac
  fi
  if [ -n "$value" ] && [ "$current" != "${{current%,*}}" ]; then
    list=${{current%,*}},
    current=${{current##*,}}
  fi
  mapfile -t COMPREPLY < <(compgen -P "$list" -W "$words" -- "$current")
}}
# Where no word fits, a file may.
complete -o bashdefault -o default -F _rooftile rooftile
)",
                     values, words);
}

}  // namespace rooftile::cli
