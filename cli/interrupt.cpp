#include "cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "cli/failure.h"
#include "cli/output.h"

namespace rooftile::cli {
namespace {

std::atomic<bool> signalled{false};
std::atomic<int> first{0};  // SIGINT or SIGTERM; it decides the exit code
std::atomic<int> signals{0};
std::atomic<int> cancellable{0};
std::atomic<int> held{0};
std::atomic<bool> told{false};  // the command said why it ends
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

ExitCode code() { return first == SIGTERM ? kTerminated : kInterrupted; }

void end_now() {
  constexpr char kSentence[] = "rooftile: interrupted\n";
  if (told.exchange(true)) ::_exit(code());
  // The new line leaves what a progress bar drew.
  if (::isatty(STDERR_FILENO) && ::write(STDERR_FILENO, "\n", 1) < 0) ::_exit(code());
  if (::write(STDERR_FILENO, kSentence, sizeof kSentence - 1) < 0) ::_exit(code());
  ::_exit(code());
}

/// Ends the command, unless a file is being written or work in hand was asked only once to stop.
void end_if_due() {
  if (held == 0 && signals > (cancellable == 0 ? 0 : 1)) end_now();
}

void on_signal(int number) {
  const int error = errno;
  int none = 0;
  first.compare_exchange_strong(none, number);
  signalled = true;
  ++signals;
  end_if_due();
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
HoldSignals::~HoldSignals() {
  --held;
  end_if_due();
}

void print_last_error(const std::string& sentence) {
  const HoldSignals wait;
  if (!told) print_error(sentence);
  told = true;
}

void stop_if_interrupted() {
  if (signalled) throw Failure(code(), "interrupted");
}

}  // namespace rooftile::cli
