#pragma once
#include <atomic>

namespace rooftile::cli {

/// Ctrl-C and SIGTERM end the command with exit code 130; a signal that the parent ignores (nohup) stays
/// ignored. A closed pipe and a file size limit become errors of write() instead of signals.
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

/// While one lives, signals wait: a file is being put in its place.
class HoldSignals {
 public:
  HoldSignals();
  ~HoldSignals();
  HoldSignals(const HoldSignals&) = delete;
  HoldSignals& operator=(const HoldSignals&) = delete;
};

/// Throws the Failure of exit code 130 once a signal came.
void stop_if_interrupted();

}  // namespace rooftile::cli
