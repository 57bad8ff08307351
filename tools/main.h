#pragma once
#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <string>

/// What both tools are from outside: `TOOL --check|--update [ROOT]`.
inline int tool_main(int argc, char** argv, const char* tool,
                     int (*run)(bool is_update, const std::filesystem::path& root)) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if ((mode != "--check" && mode != "--update") || argc > 3) {
    fmt::print(stderr, "usage: {} --check|--update [ROOT]\n", tool);
    return 2;
  }
  try {
    return run(mode == "--update", argc > 2 ? argv[2] : ".");
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", tool, error.what());
    return 1;
  }
}
