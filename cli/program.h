#pragma once
// Other programs: where they are, and what they print.
#include <string>
#include <vector>

namespace rooftile::cli {

struct ProgramOutput {
  int code = 0;      ///< its exit code; 128 and the signal's number where one ended it
  std::string text;  ///< standard output, and standard error where it was asked for
};

/// Runs a program to its end; standard error goes the way of standard output or, with `errors` false,
/// nowhere. `folder`: where it runs, if not here. Throws a Failure where it cannot be started.
ProgramOutput run_program(const std::vector<std::string>& words, bool errors = true,
                          const std::string& folder = {});

/// The path of a program on PATH; empty where there is none.
std::string find_on_path(const std::string& name);

/// The path of a tool of the CUDA toolkit: in `folder` if one is named, else in $ROOFTILE_CUDA_TOOLS, on
/// PATH, in $CUDA_HOME/bin or where toolkits are installed. Empty where there is none.
std::string find_cuda_tool(const std::string& name, const std::string& folder);

/// The path of this command.
std::string own_path();

}  // namespace rooftile::cli
