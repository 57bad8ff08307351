#pragma once
// The Python process that holds PyTorch and OpenCV: JSON lines over a socket, one call timed at a time.
#include <sys/types.h>

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "rooftile/harness/peers.h"

namespace rooftile::harness {

class PythonPeers {
 public:
  /// Starts `$ROOFTILE_PYTHON script` (or python3); null where that has neither library. `why` gets a
  /// sentence where it failed though it was asked for.
  static std::unique_ptr<PythonPeers> start(const std::string& script, std::string& why);
  ~PythonPeers();

  std::vector<std::unique_ptr<PeerCall>> calls(const Spec& spec, const Case& c, const BenchData& data,
                                               int threads, std::string& why);
  bool alive() const { return socket_ >= 0; }

  /// One request, one answer. Where the process has died or hangs: it is ended, and the answer is
  /// {"error": sentence}.
  nlohmann::json ask(const nlohmann::json& request, int seconds);

 private:
  PythonPeers(pid_t process, int socket) : process_(process), socket_(socket) {}
  void end();
  pid_t process_;
  int socket_;
  std::string pending_;  // read, but not a whole line yet
};

}  // namespace rooftile::harness
