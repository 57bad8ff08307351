#include "cli/replace_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include "cli/file_descriptor.h"

namespace rooftile::cli {

namespace fs = std::filesystem;

std::string shown(const fs::path& path) {
  constexpr std::size_t kMax = 140;
  const std::string text = path.string();
  return text.size() <= kMax ? text : "..." + text.substr(text.size() - kMax);
}

std::string reason(int error) { return std::generic_category().message(error); }

namespace {

/// Holds back Ctrl-C and its like for this thread while a temporary file has a name.
class SignalPause {
 public:
  SignalPause() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&set, signal);
    pthread_sigmask(SIG_BLOCK, &set, &before_);
  }
  ~SignalPause() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalPause(const SignalPause&) = delete;
  SignalPause& operator=(const SignalPause&) = delete;

 private:
  sigset_t before_{};
};

/// 0, or the errno of the write that failed.
int write_all(int fd, const void* data, std::size_t size) {
  const auto* from = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t put = ::write(fd, from, std::min<std::size_t>(size, 1 << 24));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return put < 0 ? errno : EIO;
    from += put;
    size -= static_cast<std::size_t>(put);
  }
  return 0;
}

/// A file without a name in `folder`, or -1: it vanishes with the process, even when that is killed.
int open_nameless(const fs::path& folder) {
#ifdef O_TMPFILE
  if (::access("/proc/self/fd", X_OK) == 0)  // needed to name it later
    return ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
#endif
  (void)folder;
  return -1;
}

/// Calls `make(name)` with fresh names in `folder` until it does not answer EEXIST; 0 or an errno.
template <class Make>
int with_fresh_name(const fs::path& folder, fs::path& name, const Make& make) {
  for (int i = 0; i < 100; ++i) {
    name = folder / (".rooftile-" + std::to_string(::getpid()) + "-" + std::to_string(i) + ".tmp");
    if (make(name.c_str()) >= 0) return 0;
    if (errno != EEXIST) return errno;
  }
  return EEXIST;
}

}  // namespace

Status replace_file(const fs::path& path, const void* data, std::size_t size) {
  const std::string name = shown(path);
  const auto refuse = [&](const char* what, int error) {
    return Status::error("%s: %s: %s", name.c_str(), what, reason(error).c_str());
  };
  std::error_code unresolved;
  const fs::path real = fs::canonical(path, unresolved);  // fails where there is no such file yet
  const fs::path& target = unresolved ? path : real;
  struct stat info {};
  const bool exists = ::stat(target.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) return Status::error("%s: a folder, not a file", name.c_str());
  if (exists && ::access(target.c_str(), W_OK) != 0) return refuse("cannot be written", errno);
  if (exists && !S_ISREG(info.st_mode)) {
    Descriptor fd(::open(target.c_str(), O_WRONLY | O_CLOEXEC));
    if (fd.get() < 0) return refuse("cannot be opened", errno);
    if (const int error = write_all(fd.get(), data, size)) return refuse("cannot be written", error);
    return fd.close() ? Status() : refuse("cannot be written", errno);
  }

  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  fs::path temporary;
  SignalPause pause;
  Descriptor fd(open_nameless(folder));
  int named = -1;
  if (fd.get() < 0) {
    const int error = with_fresh_name(folder, temporary, [&](const char* fresh) {
      return named = ::open(fresh, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    });
    if (error) return refuse("cannot create a file in its folder", error);
  }
  Descriptor named_fd(named);
  Descriptor& out = named < 0 ? fd : named_fd;

  const auto fill = [&]() -> int {
    if (const int error = write_all(out.get(), data, size)) return error;
    if (exists && ::fchmod(out.get(), info.st_mode & 07777) != 0) return errno;
    if (::fsync(out.get()) != 0 && errno != EINVAL && errno != ENOTSUP) return errno;
    if (named < 0) {
      const std::string self = "/proc/self/fd/" + std::to_string(out.get());
      const int error = with_fresh_name(folder, temporary, [&](const char* fresh) {
        return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, fresh, AT_SYMLINK_FOLLOW);
      });
      if (error) {
        temporary.clear();  // the last name tried is another's
        return error;
      }
    }
    if (!out.close()) return errno;
    return ::rename(temporary.c_str(), target.c_str()) == 0 ? 0 : errno;
  };
  const int error = fill();
  if (!error) return Status();
  if (!temporary.empty()) ::unlink(temporary.c_str());
  return refuse("cannot be written", error);
}

}  // namespace rooftile::cli
