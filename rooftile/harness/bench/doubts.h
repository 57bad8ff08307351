#pragma once
// What a record's own figures give reason to doubt: a machine that other work slowed for a while shows it
// here.
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "rooftile/harness/bench/machine.h"

namespace rooftile::harness {

/// A sentence for each pair of measured roofs that cannot both be right: a level slower than the one outside
/// it, or several threads slower than one. Rates within 5% of each other count as equal.
std::vector<std::string> contradictions(const std::vector<LevelRate>& levels);

/// What is doubtful about one result.
struct Doubts {
  bool spread = false;  ///< 5% and 95% of its samples are more than half the median apart
  bool copy = false;  ///< its copy varied as much, or took 20% more than another row's copy of as many bytes
  bool any() const { return spread || copy; }
};

/// For each of a record's results. Fields that are missing or of another type raise no doubt.
std::vector<Doubts> doubts_of(const nlohmann::json& results);

/// Writes each result's doubts into it: "doubts": ["spread", "copy"].
void write_doubts(nlohmann::json& results);

/// What the marks in a table mean.
inline constexpr const char* kSpreadDoubt =
    "5% and 95% of the samples are more than half the median apart: other work ran, or the clock moved";
inline constexpr const char* kCopyDoubt =
    "the copy beside the row moved: it varied as much, or took 20% longer than another row's copy of as many "
    "bytes";
/// Stands before the contradictions, and what to do about them after.
inline constexpr const char* kContradictions = "The measured roofs contradict each other:";
inline constexpr const char* kContradictionsAdvice =
    "Shares of the limit are doubtful here: measure again when nothing else runs.";

}  // namespace rooftile::harness
