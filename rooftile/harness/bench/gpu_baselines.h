#pragma once
// What a user would call instead on a GPU, in a Python process of its own: bench/baselines/gpu_baselines.py.
// It times its calls beside a copy of its own, since two processes cannot take turns launch by launch; the
// bench lets it alternate with rooftile's in blocks.
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rooftile/harness/bench/python_baselines.h"
#include "rooftile/harness/bench/timing.h"

namespace rooftile::harness {

/// A case that baselines compute, too.
struct GpuBaselineCase {
  const Spec* spec;
  Case c;
  bool named;  ///< one of the shapes that are tuned by search
};

class GpuBaselines {
 public:
  /// Starts the program; null where Python has no PyTorch with CUDA, with a sentence in `why` where that was
  /// asked for. `only`: names of baselines, empty: all; throws std::invalid_argument with a sentence where
  /// one is unknown. `versions`: the kernels' versions in Python's languages, too. `on_cpu`: for tests.
  static std::unique_ptr<GpuBaselines> start(const std::string& folder, std::vector<std::string> only,
                                             bool versions, bool on_cpu, std::string& why);

  /// Compiles what the cases need, in several processes, for so many seconds at most.
  void warm(const std::vector<GpuBaselineCase>& cases, double seconds);

  /// Makes a case's calls ready. `ours`: what our op computed, for each written operand; baselines that
  /// compute something else are left out. Needs no other case's memory any more.
  void prepare(const GpuBaselineCase& it, const BenchData& data, const std::vector<std::vector<double>>& ours,
               std::size_t copy_bytes);
  /// One block: `rounds` samples of each call, after a few that do not count.
  void time(int rounds, int warm_up);
  /// Of all blocks since prepare(): [{"name", "version", "way", "n", "median_us", "p5_us", "p95_us",
  /// "copy_us", "of_copy", …}]. Gives the memory back.
  nlohmann::json results();

  void note(const std::string& sentence);  ///< once, however often it is said
  std::vector<std::string> take_notes();   ///< sentences since they were last taken

 private:
  struct Call {
    std::string name, version, way;
    Samples us;
  };
  GpuBaselines() = default;
  nlohmann::json ask(nlohmann::json request, int seconds);

  std::vector<std::string> words_, only_, notes_, said_;
  std::unique_ptr<PythonBaselines> python_;
  int starts_left_ = 3;
  std::vector<Call> calls_;
  Samples copy_;
  nlohmann::json sensed_;
};

}  // namespace rooftile::harness
