#pragma once
// What an exercise's plugin.cpp is made of: a plug-in of one kernel, the learner's file, which it includes by
// the macro ROOFTILE_EXERCISE. `rooftile exercise check` compiles it alone.
#include "rooftile/core/plugin.h"

namespace rooftile::exercise {

/// What the judge reads beside the results.
struct Counts {
  long long shared_bytes = 0;  // that blocks declare, by their arrays
  long long loads = 0;         // of elements, by a CPU's kernel
  // What the plug-in itself finds wrong: a kind of verdict, and a sentence.
  char kind[16] = "", note[200] = "";
};
inline Counts counts;

}  // namespace rooftile::exercise

/// What the judge calls: its own symbols beside the plug-in's.
#define ROOFTILE_EXERCISE_COUNTS                                                                             \
  extern "C" __attribute__((visibility("default"))) rooftile::exercise::Counts* rooftile_exercise_counts() { \
    return &rooftile::exercise::counts;                                                                      \
  }
