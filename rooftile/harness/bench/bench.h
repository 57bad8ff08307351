#pragma once
// Times variants beside the best copy this machine can do, and beside the baselines, in one interleaved run.
#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rooftile/harness/check/check.h"

namespace rooftile::harness {

enum class Scope { report, standard, full };  ///< what is measured: see bench()

struct BenchOptions {
  std::vector<std::string> functions;  ///< "softmax", "softmax_backward"; empty: all
  std::vector<std::string> variants;   ///< empty: what the library chooses, and by scope the ladder or all
  std::vector<std::string> isas;  ///< empty: the best, with Scope::full every one built that this CPU runs
  std::vector<DType> dtypes;      ///< empty: those of the spec's bench()
  std::vector<Shape> shapes;      ///< empty: those of the spec's bench()
  std::vector<int> threads;       ///< empty: 1 and all
  Scope scope = Scope::standard;
  bool series = false;  ///< speed against size: `shapes`, or series_cases(), of every variant asked for
  bool roofs = true;    ///< measure every level and peak first (8 s), not only what the rows need
  bool baselines = true;
  std::vector<std::string> baseline_names;  ///< these alone; empty: all that are here
  bool versions = false;          ///< the kernels' versions in Python's languages are baselines, too
  double baseline_seconds = 300;  ///< on a GPU: at most so long for compiling the baselines' kernels ahead
  std::string baselines_folder;   ///< of the baselines' programs; empty: $ROOFTILE_BASELINES, else
                                  ///< rooftile-baselines beside librooftile.so
  double seconds = 0;  ///< stop starting new rows after so long; 0: 120 for Scope::report, else no end
  std::string command = "rooftile bench";  ///< for the record
  int part = 1, parts = 1;                 ///< on a GPU: every parts-th case, beginning with the part-th
  nlohmann::json resumed;                  ///< on a GPU: a record to go on with; null: none
  std::function<void(const nlohmann::json&)> save;  ///< gets the record so far after each row
  std::function<void(const Progress&)> progress;
  const std::atomic<bool>* cancel = nullptr;
};

/// The whole record: {"schema": 1, "rooftile", "date", "command", "machine": …, "overheads": […], "results":
/// […], "errors": […], "notes": […]}. Rows by scope:
///   report    the best variant of every op at one size in L2 and one in memory, the whole ladder of two
///             ops (softmax's first of all rows) and two sweeps over sizes, within 120 s
///   standard  every spec's cache cases (warm and cold) and memory cases, best variants
///   full      all variants, instruction sets, dtypes, shapes, ladders and sweeps, 1 and all threads; 2 GiB
///   in memory
/// "errors" holds a sentence for each row that could not be believed (an impossible time, outputs that
/// changed while it was timed) or failed; such a row is not among the results. "notes": what was left out,
/// and why. Throws std::invalid_argument with a sentence where options name nothing, or no case.
nlohmann::json bench(const BenchOptions& options);

/// The results of a record as CSV: a line of names, then one line for each result, its shape as 64x1024, and
/// a column for each baseline's median.
std::string to_csv(const nlohmann::json& record);

}  // namespace rooftile::harness
