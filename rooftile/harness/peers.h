#pragma once
// What a user would call instead: oneDNN through a shared library of its own, PyTorch and OpenCV through a
// Python process. All optional and found at run time.
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "rooftile/harness/bench_data.h"
#include "rooftile/harness/roofs.h"

namespace rooftile::harness {

/// A peer, ready to compute one case.
class PeerCall {
 public:
  virtual ~PeerCall() = default;
  std::string name, version;
  double call_us = 0;  ///< of a call that has nothing to do: its own overhead, known for Python peers

  virtual void prepare(CacheState cache) = 0;  ///< before the next time(): brings the caches into that state
  virtual double time(int calls) = 0;          ///< seconds; 0 where the peer failed
  /// Computes once and gives each written operand's values where BenchData::sample() looks; empty where the
  /// peer does not compute that one.
  virtual std::vector<std::vector<double>> results() = 0;
};

class PythonPeers;
class LibraryPeer;

class Peers {
 public:
  /// Looks in `folder` (empty: $ROOFTILE_PEERS, else the folder of librooftile.so) for rooftile-peer-*.so and
  /// rooftile-peers.py (or peers.py), which $ROOFTILE_PYTHON runs, or python3. `only`: names of peers to time
  /// alone; empty: all. Throws std::invalid_argument where one of them is not here.
  explicit Peers(const std::string& folder, std::vector<std::string> only = {});
  ~Peers();

  /// Those that compute this case. `data` must outlive them; libraries overwrite its outputs. Any sentence
  /// about a peer that fell out is added to notes().
  std::vector<std::unique_ptr<PeerCall>> calls(const Spec& spec, const Case& c, BenchData& data, int threads);

  const std::vector<std::string>& notes() const { return notes_; }
  void note(const std::string& sentence);  ///< once, however often it is said

 private:
  std::vector<std::unique_ptr<LibraryPeer>> libraries_;
  std::unique_ptr<PythonPeers> python_;
  std::vector<std::string> only_, notes_;
  std::set<std::string> said_;
};

/// The folder that peers' programs lie in; `named`: not by default.
std::filesystem::path peers_place(const std::string& folder, bool& named);

/// Whether the list names the peer, in any case of letters; an empty one names all.
bool is_wanted(const std::string& peer, const std::vector<std::string>& only);

/// Throws std::invalid_argument with a sentence where `only` names a peer that is none of those `here`.
void check_peers(const std::vector<std::string>& only, const std::vector<std::string>& here);

/// An empty text when a peer's values are the kernel's up to what another order of rounding may do; else how
/// they differ. `theirs` may be empty: not computed.
std::string disagreement(const std::vector<double>& ours, const std::vector<double>& theirs, DType dtype);

/// The folder that librooftile.so lies in.
std::string library_folder();

}  // namespace rooftile::harness
