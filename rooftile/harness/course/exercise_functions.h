#pragma once
// What exercises compute and no function of the library does: judged like one, by an oracle and cases.
#include "rooftile/harness/course/exercise.h"

namespace rooftile::harness {

/// Null: there is none of this name. Its `call` is empty: the judge's plug-in has the only kernel.
const Spec* find_exercise_spec(std::string_view function);

/// What an exercise is judged as: a function of the library, perhaps by another oracle, or one of its own.
Spec spec_of(const Exercise& exercise);
/// What it computes in: the exercise's dtype, else f32 where it may.
DType dtype_of(const Exercise& exercise, const Spec& spec);
/// Its first cases, the op's own and the standard ones, contiguous and not too large, each once.
std::vector<Case> cases_of(const Exercise& exercise, const Spec& spec);

}  // namespace rooftile::harness
