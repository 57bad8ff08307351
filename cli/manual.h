#pragma once
// What follows from the model of the command line: made when the command is built, and installed with it.
#include <string>

namespace CLI {
class App;
}

namespace rooftile::cli {

/// The manual page, for man(1).
std::string manual_page(const CLI::App& app);

/// A script for bash that completes commands, options and the values that are known.
std::string bash_completion(const CLI::App& app);

}  // namespace rooftile::cli
