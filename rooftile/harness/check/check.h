#pragma once
// Checks every variant of every op against its oracle, its wrong results and itself.
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "rooftile/harness/spec.h"

namespace rooftile::harness {

struct Progress {
  std::int64_t done, total;
  std::string what;  ///< "softmax tile f16"
};

struct CheckOptions {
  std::vector<std::string> functions;  ///< "softmax", "softmax_backward"; empty: all
  std::vector<std::string> variants;   ///< empty: all
  std::vector<std::string> isas;       ///< empty: every one built here that this CPU runs
  std::vector<DType> dtypes;           ///< empty: all
  bool quick = false;  ///< two cases of each variant and dtype, one of each real option, no wrong results
  bool paths = false;  ///< the cases, and each way through a kernel once, where else bits are compared often
  std::vector<std::string> brief;  ///< instruction sets where bits are compared as rarely as by `paths`
  bool huge = false;               ///< one case of each op beyond 2^31 elements instead of the list
  int random_cases = 0;            ///< that many of each function beside the list, shared out over its dtypes
  bool listed = true;              ///< false: the random cases alone
  std::uint64_t seed = 1;
  double seconds = 300;  ///< after which a call hangs; beyond 2^31 elements ten times that
  std::function<void(const Progress&)> progress;
  const std::atomic<bool>* cancel = nullptr;
};

/// One variant with one dtype on one instruction set. Beside the variants' names there are "automatic", the
/// library's choice, and "oracle" on the instruction set "any": what needs no kernel (wrong results,
/// gradient, flops and bytes).
struct CheckResult {
  std::string function, op, direction, variant, isa, dtype;
  int cases = 0, passed = 0, refused = 0;  ///< refused: the variant said why it does not take a case
  int wrong_results = 0, rejected = 0;     ///< of the oracle's: wrong results shown to the cases
  double worst_of_tolerance = 0;           ///< the largest error as a share of its tolerance
  double rms_of_tolerance = 0;
  std::vector<std::int64_t>
      ulp_histogram;  ///< outputs off by 0, ≤ 1, ≤ 2, ≤ 4, ≤ 8 … ulp of the output's dtype
  std::vector<std::string> failures;  ///< sentences; the first ten
  std::vector<std::string> notes;     ///< what was left out, and why
  bool ok() const { return failures.empty() && passed == cases; }
  bool applicable() const { return cases > 0; }  ///< else the variant takes none of these cases
};

/// Throws std::invalid_argument with a sentence where an option names nothing. On a CPU and the emulated
/// device each function is checked in a forked child: a kernel that dies or does not return fails its
/// variant, and the check goes on without it.
std::vector<CheckResult> check(const CheckOptions& options);

/// The same for one spec, which need not be one of all_specs().
std::vector<CheckResult> check_spec(const Spec& spec, const CheckOptions& options);

}  // namespace rooftile::harness
