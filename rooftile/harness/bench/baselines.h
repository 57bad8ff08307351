#pragma once
// What a user would call instead: oneDNN through a shared library of its own, PyTorch and OpenCV through a
// Python process. All optional and found at run time.
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "rooftile/harness/bench/bench_data.h"
#include "rooftile/harness/bench/roofs.h"

namespace rooftile::harness {

/// A baseline, ready to compute one case.
class BaselineCall {
 public:
  virtual ~BaselineCall() = default;
  std::string name, version;
  double call_us = 0;  ///< of a call that has nothing to do: its own overhead, known for Python baselines

  virtual void prepare(CacheState cache) = 0;  ///< before the next time(): brings the caches into that state
  virtual double time(int calls) = 0;          ///< seconds; 0 where the baseline failed
  /// Computes once and gives each written operand's values where BenchData::sample() looks; empty where the
  /// baseline does not compute that one.
  virtual std::vector<std::vector<double>> results() = 0;
};

class PythonBaselines;
class LibraryBaseline;

class Baselines {
 public:
  /// Looks in `folder` (empty: $ROOFTILE_BASELINES, else rooftile-baselines beside librooftile.so) for
  /// rooftile-baseline-*.so and baselines.py, which $ROOFTILE_PYTHON runs, or python3. `only`: names of
  /// baselines to time alone; empty: all. `versions`: the kernels' versions in Python's languages, too.
  /// Throws std::invalid_argument where one of them is not here.
  explicit Baselines(const std::string& folder, std::vector<std::string> only = {}, bool versions = false);
  ~Baselines();

  /// Those that compute this case. `data` must outlive them; libraries overwrite its outputs. Any sentence
  /// about a baseline that fell out is added to notes().
  std::vector<std::unique_ptr<BaselineCall>> calls(const Spec& spec, const Case& c, BenchData& data,
                                                   int threads);

  const std::vector<std::string>& notes() const { return notes_; }
  void note(const std::string& sentence);  ///< once, however often it is said

 private:
  std::vector<std::unique_ptr<LibraryBaseline>> libraries_;
  std::unique_ptr<PythonBaselines> python_;
  std::vector<std::string> only_, notes_;
  std::set<std::string> said_;
};

/// The folder that baselines' programs lie in; `named`: not by default.
std::filesystem::path baselines_place(const std::string& folder, bool& named);

/// Whether the list names the baseline, in any case of letters; an empty one names all.
bool is_wanted(const std::string& baseline, const std::vector<std::string>& only);

/// Throws std::invalid_argument with a sentence where `only` names a baseline that is none of those `here`.
void check_baselines(const std::vector<std::string>& only, const std::vector<std::string>& here);

/// An empty text when a baseline's values are the kernel's up to what another order of rounding may do; else
/// how they differ. `theirs` may be empty: not computed.
std::string disagreement(const std::vector<double>& ours, const std::vector<double>& theirs, DType dtype);

/// The folder that librooftile.so lies in.
std::string library_folder();

}  // namespace rooftile::harness
