#include "cli/manual.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/environment.h"
#include "cli/exit_codes.h"
#include "rooftile/harness/bench/commit.h"

namespace rooftile::cli {
namespace {

/// Text as roff prints it: no character is a command, and none depends on the reader's locale.
std::string roff(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool begins_line = out.empty() || out.back() == '\n';
    if (byte >= 0xC0) {
      const int more = byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : 1;
      unsigned code = byte & (0x3Fu >> more);
      for (int k = 0; k < more && i + 1 < text.size(); ++k)
        code = code << 6 | (static_cast<unsigned char>(text[++i]) & 0x3F);
      out += fmt::format("\\[u{:04X}]", code);
    } else if (byte == '\\') {
      out += "\\e";
    } else if (byte == '-') {
      out += "\\-";
    } else {
      if (begins_line && (byte == '.' || byte == '\'')) out += "\\&";
      out += text[i];
    }
  }
  return out;
}

/// "\fB\-h\fR, \fB\-\-help\fR", with the value's name.
std::string names_of(const CLI::Option& option) {
  std::string out;
  for (const std::string& name : option.get_snames())
    out += (out.empty() ? "" : ", ") + fmt::format("\\fB{}\\fR", roff("-" + name));
  for (const std::string& name : option.get_lnames())
    out += (out.empty() ? "" : ", ") + fmt::format("\\fB{}\\fR", roff("--" + name));
  const std::string type = option.get_type_name();
  if (out.empty()) return fmt::format("\\fI{}\\fR", roff(option.get_name()));
  if (option.get_items_expected_max() > 0)
    out += fmt::format(" \\fI{}\\fR", roff(type.substr(0, type.find(':'))));
  return out;
}

std::string options_of(const CLI::App& app) {
  std::string out;
  for (const bool positional : {true, false})
    for (const CLI::Option* option : app.get_options([&](const CLI::Option* o) {
           return o->nonpositional() != positional && !o->get_group().empty();
         }))
      out += fmt::format(".TP\n{}\n{}\n", names_of(*option), roff(option->get_description()));
  return out;
}

/// A footer's lines stand as they are: its examples are code.
std::string footer_of(const CLI::App& app) {
  return app.get_footer().empty() ? "" : fmt::format(".PP\n.nf\n{}\n.fi\n", roff(app.get_footer()));
}

std::vector<const CLI::App*> shown(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::string command_of(const CLI::App& command, const std::string& path) {
  std::string words = path + " " + command.get_name();
  std::string out;
  if (shown(command).empty())
    out = fmt::format(".SS {}\n{}.\n{}{}", roff(words), roff(command.get_description()), options_of(command),
                      footer_of(command));
  for (const CLI::App* inner : shown(command)) out += command_of(*inner, words);
  return out;
}

}  // namespace

std::string manual_page(const CLI::App& app) {
  std::string out = fmt::format(".TH ROOFTILE 1 \"{}\" \"rooftile {}\" \"User Commands\"\n",
                                harness::commit_date(), ROOFTILE_VERSION);
  out += ".SH NAME\nrooftile \\- checks and times compute kernels for CPUs and GPUs\n";
  out += ".SH SYNOPSIS\n.B rooftile\n.I COMMAND\n.RI [ OPTION ]...\n.br\n.B rooftile help\n.RI [ COMMAND ]\n";
  out += fmt::format(".SH DESCRIPTION\n{}\n{}", roff(app.get_description()), footer_of(app));
  out += ".SH OPTIONS\n" + options_of(app) + ".SH COMMANDS\n";
  for (const CLI::App* command : shown(app)) out += command_of(*command, "rooftile");
  out += ".SH ENVIRONMENT\n";
  for (const EnvironmentVariable& variable : kEnvironment)
    out += fmt::format(".TP\n.B {}\n{}\n", variable.name, roff(variable.text));
  out += ".SH EXIT STATUS\n";
  for (const ExitCodeMeaning& meaning : kExitCodeMeanings)
    out += fmt::format(".TP\n.B {}\n{}\n", static_cast<int>(meaning.code), roff(meaning.text));
  return out;
}

}  // namespace rooftile::cli
