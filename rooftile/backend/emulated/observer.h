#pragma once
// What the checked build hears of the engine. The plain build has none: `observer` is null there (plain.cpp),
// and each call costs a load and a branch.

#include <cstddef>
#include <cstdint>

#include "rooftile/backend/emulated/device/calls.h"

namespace rooftile::emulated {

struct Block;
struct ClusterRunner;
struct Thread;
struct SharedArray;
struct AsyncCopy;

class Observer {
 public:
  virtual void begin_launch(const char* kernel, unsigned blocks) = 0;
  virtual void end_launch() = 0;
  virtual void begin_cluster(ClusterRunner&) = 0;
  virtual void end_cluster(ClusterRunner&) = 0;
  virtual void begin_thread(Thread&) = 0;
  virtual void end_thread(Thread&) = 0;
  virtual void declare_shared(Block&, const SharedArray&) = 0;

  /// All threads of the block that are left have come to a barrier, and none has gone on.
  virtual void block_barrier(Block&) = 0;
  virtual void cluster_barrier(ClusterRunner&) = 0;
  virtual void warp_sync(Thread& any, unsigned lanes) = 0;
  /// One thread makes known, or learns, at something with an address: a named barrier, an mbarrier.
  virtual void release(Thread&, const void* key) = 0;
  virtual void acquire(Thread&, const void* key) = 0;
  virtual void forget(const void* key) = 0;
  virtual void fence(Thread&) = 0;
  /// `wrote`: the value changed hands; a failed compare-and-swap only reads. `ordered`: with its own acquire
  /// and release.
  virtual void atomic(Thread&, const void* at, unsigned bytes, bool reads, bool wrote, bool ordered,
                      const void* pc) = 0;

  virtual void async_issued(Thread&, const AsyncCopy&) = 0;
  /// Just before the bytes move, for a thread that waits for them or asked for them.
  virtual void async_done(Thread&, const AsyncCopy&) = 0;

  /// Threads met at a barrier from different lines, or one had ended.
  virtual void divergence(Thread& first, Thread& second, const char* sentence) = 0;
  virtual void failure(Thread*, int finding_kind, Site first, Site second, int second_thread,
                       const char* sentence) = 0;

 protected:
  ~Observer() = default;
};
extern Observer* const observer;

}  // namespace rooftile::emulated
