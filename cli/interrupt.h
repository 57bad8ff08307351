#pragma once
#include <atomic>
#include <string>

namespace rooftile::cli {

/// Ctrl-C ends the command with exit code 130, SIGTERM with 143; a signal that the parent ignores (nohup)
/// stays ignored. A closed pipe and a file size limit become errors of write() instead of signals.
void install_signal_handlers();

/// Set by the first signal; what check() and bench() look at.
const std::atomic<bool>& interrupted();

/// While one lives, the first signal sets interrupted() and leaves it to the command to stop; a second one
/// ends it.
class Cancellable {
 public:
  Cancellable();
  ~Cancellable();
  Cancellable(const Cancellable&) = delete;
  Cancellable& operator=(const Cancellable&) = delete;
};

/// While one lives, signals wait, however many: a file is being put in its place, or a temporary one is
/// there.
class HoldSignals {
 public:
  HoldSignals();
  ~HoldSignals();
  HoldSignals(const HoldSignals&) = delete;
  HoldSignals& operator=(const HoldSignals&) = delete;
};

/// Prints the sentence with which the command ends; a signal that comes now ends it without a second one.
void print_last_error(const std::string& sentence);

/// Throws the Failure of exit code 130 or 143 once a signal came.
void stop_if_interrupted();

}  // namespace rooftile::cli
