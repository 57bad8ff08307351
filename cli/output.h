#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace rooftile::cli {

/// Adds to standard output, which is written in large pieces. A reader that went away (`| head`) ends the
/// output, not the command; any other error throws a Failure.
void print_text(std::string_view text);

template <class... T>
void say(fmt::format_string<T...> format, T&&... values) {
  print_text(fmt::format(format, std::forward<T>(values)...));
}

/// Writes what is still held back.
void flush_output();

/// A sentence of the library without the C++ name of what could not be opened: "Queue::cuda: there is no …".
std::string without_class(std::string_view sentence);

/// "rooftile: <sentence>" on standard error, as one line whatever the sentence quotes.
void print_error(std::string_view sentence) noexcept;

/// Early word on a file to be written after long work: throws a Failure where its folder is missing or closed
/// to us.
/// "-" and an empty path pass.
void check_destination(const std::string& path);

/// Puts the text at `path`, whole or not at all; "-" is standard output.
void write_destination(const std::string& path, std::string_view text);

/// Two outputs that would go to one place are refused.
void check_distinct(const std::string& a, const std::string& b);

}  // namespace rooftile::cli
