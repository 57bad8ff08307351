#pragma once
// Wrong answers that a good list of cases tells from the right one.
#include <array>
#include <map>
#include <string>
#include <vector>

#include "rooftile/harness/check/compare.h"

namespace rooftile::harness {

/// Shows each wrong result of each output to the cases of one op and dtype, until one rejects it; an excused
/// one must pass wherever its excuse says that it is right. Only one output is wrong at a time.
class WrongResults {
 public:
  WrongResults(const Spec& spec, DType dtype, std::string variant)
      : spec_(spec), dtype_(dtype), variant_(std::move(variant)) {}

  /// Tries those that no case has rejected yet.
  void show(const Problem& problem);
  /// A sentence for each that no case rejects, and for each excuse that is not true. Call it once, behind the
  /// last case.
  std::vector<std::string> verdict() const;
  int rejected() const;
  int tried() const;  ///< those that no excuse covers throughout

 private:
  struct Record {
    bool tried = false, rejected = false;
    int excused = 0;
    std::string false_excuse;
  };
  const Excuse* excuse(const char* wrong_result, const char* output, const Case& c) const;

  const Spec& spec_;
  DType dtype_;
  std::string variant_;
  std::map<std::pair<std::string, std::string>, Record> records_;  // by output and wrong result
};

}  // namespace rooftile::harness
