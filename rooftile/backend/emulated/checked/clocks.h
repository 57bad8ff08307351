#pragma once
// Who knows what. Within a block, a barrier of all its threads orders everything before it with everything
// after it: a number tells. What orders fewer threads (a warp's operations, named barriers, mbarriers,
// atomics with fences) is kept in clocks: for each other thread the last moment of it that this one knows of.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "rooftile/backend/emulated/checked/shadow.h"
#include "rooftile/backend/emulated/state.h"

namespace rooftile::emulated {

class Clocks {
 public:
  void begin_launch() {
    releases_.clear();
    locations_.clear();
    acquired_.clear();
    first_cluster_ = cluster_ + 1;
    moment_ = 0;
  }
  void begin_cluster(const ClusterRunner&);

  /// What this thread does now, as later ones will see it.
  Stamp stamp(const Thread& t) const {
    Stamp s;
    s.cluster = cluster_;
    s.serial = serial_;
    s.time = threads_[t.in_cluster].time;
    s.thread = static_cast<std::uint16_t>(t.in_cluster);
    return s;
  }
  /// Whether that access was before all that `me` does from now on.
  bool ordered(const Stamp& then, const Thread& me) const;
  std::uint32_t cluster() const { return cluster_; }
  bool in_this_launch(const Stamp& s) const { return s.cluster >= first_cluster_; }
  std::uint32_t cluster_index(const Stamp& s) const { return s.cluster - first_cluster_; }

  void block_barrier(const Block&);
  void cluster_barrier(const ClusterRunner&);
  void warp_sync(const Thread& any, unsigned lanes);
  void release(const Thread&, const void* key);
  void acquire(const Thread&, const void* key);
  void forget(const void* key) { objects_.erase(key); }
  void fence(const Thread&);
  void atomic(const Thread&, const void* at, bool reads, bool wrote, bool ordered);

 private:
  using Times = std::vector<std::uint32_t>;
  /// Shared by all threads that know the same: most of a warp's, a block's or a cluster's do, and joining
  /// what they know is then nothing to do.
  using Known = std::shared_ptr<const Times>;
  struct Clock {
    std::uint32_t time = 1;
    std::array<std::uint32_t, kWarpSize> near{};  // the warp's lanes
    Known far;  // all threads of the cluster, then the serials known of its blocks; null: nothing of them
    bool fenced = false;
    std::uint32_t fence_time = 0, fence_serial = 0;
    std::array<std::uint32_t, kWarpSize> fence_near{};
  };
  /// What a block of another cluster has let know at a location.
  struct Release {
    std::uint64_t moment;
    const void* location;
    std::uint32_t rank, serial, cluster_serial, thread, time;
    std::array<std::uint32_t, kWarpSize> near;
  };
  using Acquired = std::unordered_map<const void*, std::uint64_t>;

  /// What both know.
  Known joined(const Known&, const Known&);
  /// An object's, to be changed: a copy where threads know it.
  Times& object(const void* key);
  void merge_into(Times& times, const Thread&) const;
  bool ordered_by_atomics(const Stamp&) const;

  std::vector<Clock> threads_;  // of the cluster that runs
  std::size_t ranks_ = 1, per_block_ = 1;
  std::array<std::uint32_t, kMaxCluster> block_serial_{}, fenced_serial_{};
  std::uint32_t serial_ = 1, cluster_serial_ = 0;
  std::unordered_map<const void*, std::shared_ptr<Times>> objects_;
  Known last_a_, last_b_, last_joined_;  // one thread after the other joins the same two

  std::uint32_t cluster_ = 0, first_cluster_ = 1;
  std::uint64_t moment_ = 0;
  std::unordered_map<std::uint32_t, std::vector<Release>> releases_;  // by cluster
  std::unordered_map<const void*, Acquired> locations_;  // what those who released there had acquired
  Acquired acquired_;                                    // by the cluster that runs
};

}  // namespace rooftile::emulated
