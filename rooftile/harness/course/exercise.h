#pragma once
// Exercises of the course: a folder rooftile/ops/<op>/exercise/<name> each, whose exercise.json says what is
// judged; and the judge of a plug-in that holds the learner's kernel in place of one of the op's variants.
#include <map>
#include <string>
#include <vector>

#include "rooftile/harness/spec.h"

namespace rooftile::harness {

struct Exercise {
  std::string name, title, lesson;  ///< lesson: a path from the repository's root
  std::string task;                 ///< what to write, in a sentence or two
  std::string folder;               ///< that holds exercise.json
  std::string extension;            ///< of start, solution and wrong answers: ".cu" or ".h"
  /// What it is judged as: rooftile's function and one of its variants, or a function of
  /// exercise_functions.h, which has none.
  std::string function, variant;
  bool on_gpu = true;  ///< judged on the checked emulated device; false: on this CPU
  std::string dtype;   ///< of the cases; empty: f32, where the function has it
  std::string oracle;  ///< another oracle than the function's: one of exercise_oracles
  int minutes = 0;
  std::vector<std::string> hints;
  std::map<std::string, std::string> likely;  ///< by Verdict::kind: the mistake that one probably made
  std::map<std::string, double> set;          ///< parameters that every case is given
  std::vector<Case> first;  ///< to judge before all others: where a mistake shows at its plainest
  std::int64_t whole = 1;   ///< columns of one step of a kernel: other lengths have a tail

  struct Traffic {
    std::vector<Shape> shapes;  ///< to trace; empty: traffic is not judged
    double of_stated = 0;       ///< bytes moved, as a share of the op's, at most; 0: not judged
    bool banks = false;         ///< no request may take more passes over the banks than its bytes need
    std::int64_t shared = -1;   ///< bytes of shared memory a block may take; -1: any
    double lanes = 0;           ///< of a warp, that work at a time, on average, at least
    double reads = 0;           ///< of a CPU's kernel: loads of each element of a row, at most; 0: any
  } traffic;

  std::string file(const std::string& stem) const { return folder + "/" + stem + extension; }
};

/// All exercises under a repository's root, by lesson and name. Throws std::runtime_error with a sentence
/// where an exercise.json is not as it should be.
std::vector<Exercise> find_exercises(const std::string& root);

struct Verdict {
  bool ok = false;
  /// "values", "tail", "race", "sectors", …: what `likely` and the wrong answers' first lines name.
  std::string kind;
  std::string sentence;
};

/// Judges the kernel in `plugin_folder`'s plug-in: in a child, since it may die. `sources`: folders to read
/// its lines from.
Verdict judge(const Exercise& exercise, const std::string& plugin_folder,
              const std::vector<std::string>& sources);

}  // namespace rooftile::harness
