#pragma once
#include <CLI/CLI.hpp>
#include <functional>

#include "cli/commands.h"

namespace rooftile::cli {

struct ImageArguments {
  GrayArguments gray;
  BlurArguments blur;
  PatternArguments pattern;
};
/// `rooftile image …`: a command of commands. What was given stays in the arguments' structures, which
/// outlive the app.
void add_image(CLI::App& app, ImageArguments& image, std::function<int()>& command);

}  // namespace rooftile::cli
