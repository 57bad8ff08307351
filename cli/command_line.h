#pragma once
#include <functional>

namespace rooftile::cli {

/// What the words of the command line ask for, ready to run: it returns the exit code. Throws a Failure where
/// they were not understood.
std::function<int()> read_command_line(int argc, char** argv);

}  // namespace rooftile::cli
