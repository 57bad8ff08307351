#pragma once
// The Python process that holds PyTorch and OpenCV: JSON lines over a socket, one call timed at a time.
#include <sys/types.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rooftile/harness/bench/baselines.h"

namespace rooftile::harness {

class PythonBaselines {
 public:
  /// Starts `$ROOFTILE_PYTHON words…` (or python3), the script and what it is to be told; null where that has
  /// none of the `libraries`. `why` gets a sentence where it failed though it was asked for.
  static std::unique_ptr<PythonBaselines> start(const std::vector<std::string>& words, std::string& why,
                                                const char* libraries = "neither torch nor cv2");
  ~PythonBaselines();

  std::vector<std::unique_ptr<BaselineCall>> calls(const Spec& spec, const Case& c, const BenchData& data,
                                                   int threads, std::string& why);
  bool alive() const { return socket_ >= 0; }
  const nlohmann::json& hello() const { return hello_; }  ///< its answer when it started

  /// One request, one answer. Where the process has died or hangs: it is ended, and the answer is
  /// {"error": sentence}.
  nlohmann::json ask(const nlohmann::json& request, int seconds);

 private:
  PythonBaselines(pid_t process, int socket) : process_(process), socket_(socket) {}
  void end();
  pid_t process_;
  int socket_;
  std::string pending_;  // read, but not a whole line yet
  nlohmann::json hello_;
};

/// The dimensions behind an operand's outer ones; -1 where its shape has no outer ones.
int letters_of(const Signature& signature, const char* operand);

/// A case's operands as a Python baseline gets them: patterns from `data`; null: nothing but sizes. `offset`:
/// elements behind a boundary, for operands that keep the case's layout.
nlohmann::json operands_json(const Spec& spec, const std::vector<Operand>& operands, const BenchData* data,
                             std::int64_t offset);

/// What a version is called with beside its operands: the function's "options", f32 ones rounded as the
/// library's are; "own_options", those that differ from the default; "all_outputs", their names in order.
nlohmann::json options_json(const Spec& spec, const Case& c);

/// `more` with the function, its operands, the case's parameters and options.
nlohmann::json case_json(const Spec& spec, const Case& c, nlohmann::json operands, nlohmann::json more);

}  // namespace rooftile::harness
