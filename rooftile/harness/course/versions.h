#pragma once
// The same functions in other languages (rooftile/ops/*/versions.py), run on an op's own cases by Python
// processes (bench/baselines/check_versions.py), and judged by its oracle and tolerances.
#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "rooftile/harness/check/check.h"

namespace rooftile::harness {

/// In the order in which they are shown.
const std::vector<std::string>& version_languages();

struct VersionOptions {
  std::vector<std::string> functions;  ///< empty: all
  std::vector<std::string> languages;  ///< "numpy", …; empty: all that are installed
  std::vector<DType> dtypes;           ///< empty: all
  bool cuda = false;                   ///< on the GPU: PyTorch's tensors, kernels compiled
  bool quick = false;                  ///< the two cases of check --quick
  std::uint64_t seed = 1;
  std::function<void(const Progress&)> progress;
  const std::atomic<bool>* cancel = nullptr;
};

/// One version of one function, all its dtypes together.
struct VersionResult {
  std::string function, name, language, library;  ///< "softmax", "softmax_triton", "Triton", "3.6.0"
  std::string trap;                               ///< why it is wrong, as it says; empty: no trap
  int cases = 0, accepted = 0, passed = 0;
  std::map<std::string, int> declined;  ///< how many of the others, by what it does not take
  double worst_of_tolerance = 0;
  std::vector<std::string> failures;  ///< sentences; the first three
  /// Right in each case that it accepted; a trap must be wrong in one.
  bool ok() const { return trap.empty() ? accepted > 0 && passed == accepted : passed < accepted; }
};

struct VersionResults {
  std::vector<VersionResult> results;
  std::vector<std::string> notes;  ///< which languages are missing, and why
};

/// Throws std::invalid_argument where an option names nothing.
VersionResults check_versions(const VersionOptions& options);

}  // namespace rooftile::harness
