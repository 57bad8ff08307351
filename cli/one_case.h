#pragma once
// One call of one function, as `trace`, `profile` and `asm` take it from the command line.
#include <string>
#include <vector>

#include "rooftile/core/op.h"
#include "rooftile/harness/spec.h"

namespace rooftile::cli {

struct CaseArguments {
  std::string op, shape, dtype;  ///< shape and dtype may be empty
  std::vector<std::string> parameters;
  bool backward = false;
};

struct OneCase {
  const Op* op;
  const harness::Spec* spec;
  harness::Case c;
  std::string text() const;  ///< "softmax 64x1024 f32"
};

/// The function that an op's or a function's name stands for. Throws a Failure where there is none.
const Op* one_op(const std::string& name, bool backward);

/// What is not named comes from the op's own cases: of those for a GPU (`large`), or those that fit a cache.
OneCase one_case(const CaseArguments& arguments, bool large);

/// Refuses a case that this machine's memory cannot hold.
void check_memory(const OneCase& one);

/// Variants by name, "" for the library's choice; `all`: those that the queue's plug-in has, but the oracle.
std::vector<std::string> variants_of(const Op& op, const std::vector<std::string>& named, bool all,
                                     const Queue& queue);

/// Folders in which the repository's sources may lie: the current one and those above the command.
std::vector<std::string> source_folders();

}  // namespace rooftile::cli
