#pragma once
// Where checks write down what they saw.
#include <functional>
#include <map>
#include <set>
#include <string>

#include "rooftile/harness/check/check.h"
#include "rooftile/harness/check/compare.h"
#include "rooftile/harness/check/runner.h"

namespace rooftile::harness {

/// The results of one op and dtype, by instruction set and variant.
class Ledger {
 public:
  static constexpr const char* kChoice = "automatic";  ///< the variant's name where the library chooses
  static constexpr const char* kOracle = "oracle";     ///< ... where no kernel ran
  static constexpr std::size_t kMaxFailures = 10;

  Ledger(const Spec& spec, DType dtype) : spec_(spec), dtype_(dtype) {}

  CheckResult& of(const std::string& isa, const std::string& variant);
  /// Counts a case as passed, or failed with the sentence that follows "softmax tile avx512: ".
  void note(const std::string& isa, const std::string& variant, const std::string& failure);
  void add(const std::string& isa, const std::string& variant, const Comparison& comparison);
  std::vector<CheckResult> close();

 private:
  struct Sums {
    CheckResult result;
    double squares = 0;
    std::int64_t count = 0;
    std::size_t failed = 0;
  };
  Sums& sums(const std::string& isa, const std::string& variant);

  const Spec& spec_;
  DType dtype_;
  std::vector<std::pair<std::string, std::string>> order_;
  std::map<std::pair<std::string, std::string>, Sums> sums_;
};

/// What a check runs on: variants by name (null: the library's choice) on queues.
struct Subjects {
  std::vector<Queues>& isas;
  std::vector<const char*> variants;
  /// Those that ended the process before, by instruction set and the result's variant.
  std::set<std::pair<std::string, std::string>> dead = {};
  /// Instruction sets on which bits are compared each way through a kernel once, and not at every offset.
  std::vector<std::string> brief = {};
  /// The variants left on one instruction set.
  std::vector<const char*> of(const Queues& queues) const {
    std::vector<const char*> left;
    for (const char* v : variants)
      if (!dead.count({queues.isa, v ? v : Ledger::kChoice})) left.push_back(v);
    return left;
  }
};

}  // namespace rooftile::harness
