#pragma once

namespace rooftile::cli {

/// Which exit code a command ends with; nothing else decides one.
enum ExitCode : int {
  kOk = 0,
  kFailedCheck = 1,    ///< the answer is no: a wrong result, or a call that the function refuses
  kUsage = 2,          ///< the command line: not understood, contradicts itself, or names what does not exist
  kTrouble = 3,        ///< rightly asked, and could not be done here: a file, a plug-in, a device, memory
  kInterrupted = 130,  ///< SIGINT (Ctrl-C)
  kTerminated = 143,   ///< SIGTERM
};

struct ExitCodeMeaning {
  ExitCode code;
  const char* text;
};

/// What --help and the manual page say of each.
inline constexpr ExitCodeMeaning kExitCodeMeanings[] = {
    {kOk, "all is well"},
    {kFailedCheck, "the answer is no: a check failed, or the function refuses the call"},
    {kUsage, "the command line was not understood, contradicts itself or names what does not exist"},
    {kTrouble, "a file, plug-in, device or program, or the memory, was missing or could not be used"},
    {kInterrupted, "interrupted by Ctrl-C (SIGINT)"},
    {kTerminated, "ended by SIGTERM"},
};

}  // namespace rooftile::cli
