#include "cli/output.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "cli/failure.h"
#include "cli/interrupt.h"
#include "cli/replace_file.h"

namespace rooftile::cli {
namespace {

constexpr std::size_t kPiece = 1 << 16;

std::string held_back;
bool closed = false;

std::string reason(int error) { return std::generic_category().message(error); }

}  // namespace

void print_text(std::string_view text) {
  held_back += text;
  if (held_back.size() >= kPiece) flush_output();
}

void flush_output() {
  std::string_view rest = held_back;
  while (!rest.empty() && !closed) {
    const ssize_t put = ::write(STDOUT_FILENO, rest.data(), rest.size());
    if (put >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(put));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      pollfd wait{STDOUT_FILENO, POLLOUT, 0};
      ::poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      const int error = errno;
      closed = true;
      held_back.clear();
      if (error != EPIPE) fail("standard output cannot be written: {}", reason(error));
    }
  }
  held_back.clear();
}

std::string without_class(std::string_view sentence) {
  constexpr std::string_view kClass = "Queue::";
  if (sentence.starts_with(kClass))
    if (const std::size_t colon = sentence.find(": "); colon != sentence.npos)
      sentence.remove_prefix(colon + 2);
  return std::string(sentence);
}

void print_error(std::string_view sentence) noexcept try {
  std::string line = "rooftile: ";
  for (const char c : without_class(sentence)) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    if (!control)
      line += c;
    else if (line.back() != ' ')
      line += ' ';
  }
  line += '\n';
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;  // nowhere left to say so
} catch (...) {
}

void check_destination(const std::string& path) {
  if (path.empty() || path == "-") return;
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) fail("{}: a folder, not a file", path);
    if (::access(path.c_str(), W_OK) != 0) fail("{}: cannot be written: {}", path, reason(errno));
    if (!S_ISREG(info.st_mode)) return;
  } else if (errno != ENOENT) {
    fail("{}: cannot be written: {}", path, reason(errno));
  }
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (::stat(folder.c_str(), &info) != 0) fail("{}: cannot be written: its folder: {}", path, reason(errno));
  if (!S_ISDIR(info.st_mode)) fail("{}: cannot be written: {} is not a folder", path, folder.string());
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    fail("{}: cannot be written: its folder: {}", path, reason(errno));
}

void write_destination(const std::string& path, std::string_view text) {
  if (path == "-") return print_text(text);
  const HoldSignals hold;
  if (const Status s = replace_file(path, text.data(), text.size()); !s) throw Failure(kTrouble, s.message());
}

void check_distinct(const std::string& a, const std::string& b) {
  if (!a.empty() && a == b)
    refuse("two outputs cannot both go to {}", a == "-" ? std::string("standard output") : a);
}

}  // namespace rooftile::cli
