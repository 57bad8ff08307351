#pragma once
// Counts what warps ask of memory, by source line.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rooftile/backend/emulated/controls.h"
#include "rooftile/backend/emulated/state.h"
#include "rooftile/backend/emulated/trace.h"

namespace rooftile::emulated {

class Tracer {
 public:
  bool on() const { return on_; }
  void start();
  std::vector<TraceLine> stop(TraceTotals* totals = nullptr);
  void begin_launch() {
    totals_.launches += on_ ? 1 : 0;
    blocks_ = accesses_ = most_ = 0;
  }
  void end_launch();
  void barrier() { totals_.barriers += on_ ? 1 : 0; }
  void begin_cluster(const ClusterRunner&);
  void end_cluster();
  /// `kind`: 0 a load, 1 a store, 2 an atomic.
  void record(const Thread&, std::uintptr_t at, std::size_t bytes, int kind, bool shared, const void* pc);
  bool pause() { return std::exchange(on_, false); }
  void resume(bool on) { on_ = on; }

 private:
  /// What the lanes of a warp do at their n-th visit of one address in the program: one instruction of the
  /// hardware.
  struct Request {
    unsigned lanes = 0;
    bool shared = false;
    std::uint8_t kind = 0;
    std::uint16_t bytes = 0;
    std::array<std::uintptr_t, kWarpSize> at{};
  };
  struct Key {
    const void* pc;  // or a Vector's address
    std::uint32_t visit;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& k) const {
      return std::hash<const void*>()(k.pc) * 31 + k.visit * std::size_t{0x9e3779b97f4a7c15};
    }
  };
  /// Members of a vector that one line reads or writes, each by an instruction of its own: nvcc makes them
  /// one access. `line`: what warps ask for if it is one.
  struct Vector {
    std::array<const void*, 4> pcs{};
    TraceLine line{};
  };
  /// A vector's first members, while a thread has not come to its last.
  struct Begun {
    std::uintptr_t at = 0;
    std::size_t bytes = 0;  // of one member
    unsigned members = 0;
    int kind = 0;
    std::array<const void*, 4> pcs{};
  };
  struct Visitor {
    std::unordered_map<const void*, std::uint32_t> visits;
    std::array<Begun, 4> begun{};  // a line may read several vectors in turn
    unsigned next = 0;
  };
  void record_part(const Thread&, Visitor&, std::uintptr_t at, std::size_t bytes, int kind, bool shared,
                   const void* key);
  void find_vector(const Thread&, Visitor&, std::uintptr_t at, std::size_t bytes, int kind, bool shared,
                   const void* pc);
  void close(const void* key, const Request&);
  static void count(TraceLine&, const Request&);
  void merge_vectors(const std::map<const void*, Place>&);
  void touch(std::uintptr_t from, std::uintptr_t end, bool reads, bool writes);

  bool on_ = false;
  std::vector<std::unordered_map<Key, Request, Hash>> open_;  // by warp of the cluster
  std::vector<Visitor> visitors_;                             // by thread of the cluster
  std::map<std::pair<std::array<const void*, 4>, TraceKind>, std::unique_ptr<Vector>> vectors_;
  std::unordered_map<const void*, Vector*> vector_of_;  // by its address, which takes a pc's place in a key
  std::map<std::pair<const void*, TraceKind>, TraceLine> counts_;
  /// Which of a sector's 32 bytes were read, and written.
  struct Touched {
    std::uint32_t read = 0, written = 0;
  };
  std::unordered_map<std::uintptr_t, Touched> touched_;
  TraceTotals totals_{};
  /// Accesses of global memory: by each block of the cluster, of the launch, and of its busiest block.
  std::vector<std::uint64_t> by_block_;
  std::uint64_t blocks_ = 0, accesses_ = 0, most_ = 0;
};

}  // namespace rooftile::emulated
