#pragma once
#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "cli/exit_codes.h"

namespace rooftile::cli {

/// Ends a command: one sentence for standard error, and the exit code.
class Failure : public std::runtime_error {
 public:
  Failure(ExitCode code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/// The user asked for what does not exist or cannot be.
template <class... T>
[[noreturn]] void refuse(fmt::format_string<T...> format, T&&... values) {
  throw Failure(kUsage, fmt::format(format, std::forward<T>(values)...));
}

/// It was asked rightly, and could not be done.
template <class... T>
[[noreturn]] void fail(fmt::format_string<T...> format, T&&... values) {
  throw Failure(kTrouble, fmt::format(format, std::forward<T>(values)...));
}

}  // namespace rooftile::cli
