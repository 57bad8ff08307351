#include "cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "cli/failure.h"

namespace rooftile::cli {
namespace {

std::atomic<bool> signalled{false};
std::atomic<int> cancellable{0};
std::atomic<int> held{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void end_now() {
  constexpr char kSentence[] = "rooftile: interrupted\n";
  // The new line leaves what a progress bar drew.
  if (::isatty(STDERR_FILENO) && ::write(STDERR_FILENO, "\n", 1) < 0) ::_exit(kInterrupted);
  if (::write(STDERR_FILENO, kSentence, sizeof kSentence - 1) < 0) ::_exit(kInterrupted);
  ::_exit(kInterrupted);
}

void on_signal(int) {
  const int error = errno;
  const bool first = !signalled.exchange(true);
  if (held == 0 && (cancellable == 0 || !first)) end_now();
  errno = error;
}

}  // namespace

void install_signal_handlers() {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction before {};
    if (::sigaction(number, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    ::sigaction(number, &action, nullptr);
  }
}

const std::atomic<bool>& interrupted() { return signalled; }

Cancellable::Cancellable() { ++cancellable; }
Cancellable::~Cancellable() { --cancellable; }
HoldSignals::HoldSignals() { ++held; }
HoldSignals::~HoldSignals() { --held; }

void stop_if_interrupted() {
  if (signalled) throw Failure(kInterrupted, "interrupted");
}

}  // namespace rooftile::cli
