#include "rooftile/harness/check/survive.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>
#include <vector>

#include "rooftile/harness/check/problem.h"
#include "rooftile/runtime/queue_state.h"

namespace rooftile::harness {
namespace {

/// What runs, in memory that a parent shares: all that is left of a process that died.
struct Running {
  std::atomic<bool> active{false};
  std::atomic<std::uint64_t> calls{0};
  char isa[32] = "", variant[64] = "", dtype[16] = "", what[1024] = "";
};
Running& running() {
  static Running* const shared = [] {
    void* memory = mmap(nullptr, sizeof(Running), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? new Running : new (memory) Running;
  }();
  return *shared;
}
std::string context;

template <std::size_t N>
void put(char (&to)[N], const std::string& text) {
  const std::size_t length = std::min(text.size(), N - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

void write_all(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t done = write(fd, data, size);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) _exit(2);  // nobody listens any more
    data += done, size -= static_cast<std::size_t>(done);
  }
}

/// Whole messages out of a stream of bytes, each behind its length.
class Messages {
 public:
  void add(const char* data, std::size_t size, const std::function<void(const std::string&)>& receive) {
    bytes_.append(data, size);
    std::size_t at = 0;
    for (std::uint32_t length = 0; bytes_.size() - at >= sizeof length;) {
      std::memcpy(&length, bytes_.data() + at, sizeof length);
      if (bytes_.size() - at - sizeof length < length) break;
      receive(bytes_.substr(at + sizeof length, length));
      at += sizeof length + length;
    }
    bytes_.erase(0, at);
  }

 private:
  std::string bytes_;
};

/// Seconds that all threads of a process ran; 0 where it is gone.
double cpu_seconds_of(pid_t process) {
  clockid_t clock;
  timespec time{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::string end_of(int status) {
  if (WIFSIGNALED(status)) {
    const char* name = sigabbrev_np(WTERMSIG(status));
    return fmt::format("died of SIG{} ({})", name ? name : "?", strsignal(WTERMSIG(status)));
  }
  return fmt::format("ended the program with exit code {}", WEXITSTATUS(status));
}

constexpr int kDeadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

void last_words(int number) {
  const Running& r = running();
  const auto say = [](const char* text) { (void)!write(STDERR_FILENO, text, std::strlen(text)); };
  if (r.active) {
    for (const char* text : {"check: ", r.variant, " ", r.isa, ": ", r.what, ": the kernel died\n"})
      say(text);
  } else {
    say("check: died outside of a kernel\n");
  }
  signal(number, SIG_DFL);
  raise(number);
}

}  // namespace

std::string isa_of(const Queue& queue) {
  if (queue.device() == Device::cpu) return queue.state().isa;
  return queue.state().backend ? queue.state().backend->name : "none";
}

Announced::Announced(const Queue& queue, const char* variant, const Case& c, const char* how) {
  Running& r = running();
  put(r.isa, isa_of(queue));
  put(r.variant, variant ? variant : "automatic");
  put(r.dtype, rooftile::name(c.dtype));
  put(r.what, fmt::format("{}{}{}{}", context, describe(c), *how ? ", " : "", how));
  r.calls.fetch_add(1);
  r.active = true;
}
Announced::~Announced() { running().active = false; }
void announce_context(const std::string& text) { context = text; }

bool can_fork() {
#if defined(__SANITIZE_THREAD__)
  return false;
#else
  return true;
#endif
}

Death in_child(const std::function<void(const std::function<void(const std::string&)>&)>& work,
               const std::function<void(const std::string&)>& receive, const std::function<bool()>& stop,
               double seconds, double cpu_seconds) {
  Running& r = running();
  r.active = false;
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("check: no pipe can be had");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("check: no process can be had");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ends[0]);
    work([&](const std::string& message) {
      const auto length = static_cast<std::uint32_t>(message.size());
      write_all(ends[1], reinterpret_cast<const char*>(&length), sizeof length);
      write_all(ends[1], message.data(), message.size());
    });
    _exit(0);
  }
  close(ends[1]);

  Messages messages;
  std::vector<char> piece(1 << 16);
  std::uint64_t calls = r.calls;
  double waited = 0, began = 0;
  bool stopped = false, hangs = false, busy = false;
  for (;;) {
    constexpr double kStep = 0.1;
    pollfd fd{ends[0], POLLIN, 0};
    const int ready = poll(&fd, 1, static_cast<int>(kStep * 1000));
    if (ready > 0) {
      const ssize_t got = read(ends[0], piece.data(), piece.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      if (!stopped) messages.add(piece.data(), static_cast<std::size_t>(got), receive);
    }
    const bool same = r.active && r.calls == calls;
    waited = same ? waited + (ready == 0 ? kStep : 0) : 0;
    if (!same) began = cpu_seconds_of(child);
    calls = r.calls;
    busy = busy || (cpu_seconds > 0 && same && cpu_seconds_of(child) - began > cpu_seconds);
    hangs = hangs || busy || waited > seconds;
    stopped = stopped || stop();
    if (hangs || stopped) kill(child, SIGKILL);
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  Death death;
  if (stopped || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) return death;
  death.died = true;
  death.how = busy    ? fmt::format("did not return within {:g} s of a processor's time", cpu_seconds)
              : hangs ? fmt::format("did not return within {:g} s", seconds)
                      : end_of(status);
  death.in_kernel = r.active;
  death.isa = r.isa, death.variant = r.variant, death.dtype = r.dtype, death.what = r.what;
  return death;
}

LastWords::LastWords() {
  struct sigaction mine = {};
  mine.sa_handler = last_words;
  for (int i = 0; i < kSignals; ++i) sigaction(kDeadly[i], &mine, &before_[i]);
}
LastWords::~LastWords() {
  for (int i = 0; i < kSignals; ++i) sigaction(kDeadly[i], &before_[i], nullptr);
}

}  // namespace rooftile::harness
