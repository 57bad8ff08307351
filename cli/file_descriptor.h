#pragma once
// What reading and writing a file share.
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>

namespace rooftile::cli {

/// Closes the file that it holds.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  /// False with errno set where the last writes failed only now (NFS reports a full disk so).
  bool close() { return fd_ < 0 || ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

/// The path as sentences show it: a very long one loses its beginning, not the reason that follows it.
std::string shown(const std::filesystem::path& path);

/// An errno's words.
std::string reason(int error);

}  // namespace rooftile::cli
