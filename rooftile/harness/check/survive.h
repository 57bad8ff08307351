#pragma once
// A kernel that dies is a finding, not the check's end.
#include <signal.h>

#include <functional>
#include <string>

#include "rooftile/core/queue.h"
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

/// "avx512", "emulated": where a queue's kernels run.
std::string isa_of(const Queue& queue);

/// While it lives, a death of this process is a kernel's: of `variant` (null: the library's choice) on `c`.
class Announced {
 public:
  Announced(const Queue& queue, const char* variant, const Case& c, const char* how = "");
  ~Announced();
  Announced(const Announced&) = delete;
  Announced& operator=(const Announced&) = delete;
};
/// What the next kernels are called for, before their case: "random case 7 of seed 1, ".
void announce_context(const std::string& text);

/// How a child ended that did not end by itself.
struct Death {
  bool died = false;
  std::string how;  ///< "died of SIGSEGV (Segmentation fault)", "did not return within 300 s"
  bool in_kernel = false;
  std::string isa, variant, dtype, what;  ///< the kernel and its case
};

/// Runs `work` in a forked child, which sends messages by what it is given; hands them to `receive`. Ends the
/// child once `stop` says so, or a kernel takes more than `seconds`, or more than `cpu_seconds` (0: any) of
/// processors' time, of which a loaded machine gives less. The child may make queues, but not use the
/// parent's; a GPU's must not have been opened before.
Death in_child(const std::function<void(const std::function<void(const std::string&)>&)>& work,
               const std::function<void(const std::string&)>& receive, const std::function<bool()>& stop,
               double seconds, double cpu_seconds = 0);
/// Whether in_child can be had: not under ThreadSanitizer, which knows no threads behind a fork.
bool can_fork();

/// Where no child is possible: while it lives, a death names the kernel on stderr.
class LastWords {
 public:
  LastWords();
  ~LastWords();
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;

 private:
  static constexpr int kSignals = 5;
  struct sigaction before_[kSignals];
};

}  // namespace rooftile::harness
