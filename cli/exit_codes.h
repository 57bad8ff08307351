#pragma once

namespace rooftile::cli {

/// What the command's exit codes mean; `rooftile --help` prints kExitCodeHelp.
enum ExitCode : int {
  kOk = 0,
  kFailedCheck = 1,   ///< a check failed, or the library would refuse the call (why, trace, profile)
  kUsage = 2,         ///< the command line was not understood, or names what does not exist
  kTrouble = 3,       ///< a file, a plug-in, the memory: it was asked rightly and could not be done
  kInterrupted = 130  ///< Ctrl-C (SIGINT) or SIGTERM; no half-written file remains
};

inline constexpr const char* kExitCodeHelp =
    "Exit codes: 0 all is well; 1 a check failed, or no variant takes the call (why, trace, profile); 2 the "
    "command "
    "line was\n"
    "not understood; 3 a file, a plug-in or the memory was missing or could not be used; 130 interrupted. "
    "Every "
    "error is\n"
    "one sentence on standard error, and no half-written file remains.";

}  // namespace rooftile::cli
