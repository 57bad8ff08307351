#pragma once
// The checked build's observer: sees every access of every thread through the hooks, and what the engine
// tells.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rooftile/backend/emulated/checked/clocks.h"
#include "rooftile/backend/emulated/checked/shadow.h"
#include "rooftile/backend/emulated/checked/tracer.h"
#include "rooftile/backend/emulated/controls.h"
#include "rooftile/backend/emulated/state.h"

namespace rooftile::emulated {

enum class AccessKind : std::uint8_t { kRead, kWrite, kAtomic };

class Checker final : public Observer {
 public:
  /// An access of the current thread, from the hooks. A `word` must lie at a multiple of its bytes: elsewhere
  /// a GPU ends the launch.
  void access(const void* at, std::size_t bytes, AccessKind, const void* pc, bool word = false);

  void begin_launch(const char* kernel, unsigned blocks) override;
  void end_launch() override;
  void begin_cluster(ClusterRunner&) override;
  void end_cluster(ClusterRunner&) override;
  void begin_thread(Thread&) override {}
  void end_thread(Thread&) override {}
  void declare_shared(Block&, const SharedArray&) override;
  void block_barrier(Block& block) override {
    const Busy busy(*this);
    clocks_.block_barrier(block);
    tracer_.barrier();
  }
  void cluster_barrier(ClusterRunner& runner) override {
    const Busy busy(*this);
    clocks_.cluster_barrier(runner);
  }
  void warp_sync(Thread& any, unsigned lanes) override {
    const Busy busy(*this);
    clocks_.warp_sync(any, lanes);
  }
  void release(Thread& t, const void* key) override {
    const Busy busy(*this);
    clocks_.release(t, key);
  }
  void acquire(Thread& t, const void* key) override {
    const Busy busy(*this);
    clocks_.acquire(t, key);
  }
  void forget(const void* key) override {
    const Busy busy(*this);
    clocks_.forget(key);
  }
  void fence(Thread& t) override {
    const Busy busy(*this);
    clocks_.fence(t);
  }
  void atomic(Thread&, const void* at, unsigned bytes, bool reads, bool wrote, bool ordered,
              const void* pc) override;
  /// A relaxed atomic of PTX; but lanes of a warp that share memory by nothing else race.
  void volatile_word(Thread&, const void* at, unsigned bytes, bool writes, const void* pc);
  void async_issued(Thread&, const AsyncCopy&) override;
  void async_done(Thread&, const AsyncCopy&) override;
  void divergence(Thread& first, Thread& second, const char* sentence) override;
  void failure(Thread*, int kind, Site first, Site second, int second_thread, const char* sentence) override;

  std::size_t take_findings(Finding* out, std::size_t capacity);
  void register_global(const void* pointer, std::size_t bytes, const char* name);
  void forget_globals();
  Tracer& tracer() { return tracer_; }
  /// Whether it is at work: what the current thread does to memory now is the checker's doing.
  bool busy() const { return busy_; }

 private:
  // What is known of each byte of a block's shared memory.
  enum : std::uint8_t { kThere = 1, kWritten = 2, kPending = 4 };
  struct Shared {
    std::vector<std::uint8_t> bytes;
    std::size_t used = 0;  // to the end of the last array; nothing is known of what follows
    std::vector<Cell> cells;
  };
  struct Pending {
    AsyncCopy copy;
    unsigned rank;
  };
  struct Range {
    std::uintptr_t begin, end;
    std::string name;
  };
  /// A finding before its addresses are lines: either an address or a site.
  struct Raw {
    FindingKind kind;
    std::string kernel, text;
    const void *first_pc, *second_pc;
    Site first_site, second_site;
    int first_thread, second_thread;
    uint3 block;
  };

  void access_sums(Thread&, const void* at, std::size_t bytes, AccessKind, const void* pc);
  void access_shared(Thread&, std::uintptr_t at, std::size_t bytes, AccessKind, const void* pc);
  void access_global(Thread&, std::uintptr_t at, std::size_t bytes, AccessKind, const void* pc);
  /// Whether the bytes are shared memory that may be used so; if not, a finding.
  bool check_shared(Thread&, const Block&, std::size_t offset, std::size_t bytes, AccessKind, const void* pc);
  void visit(Thread&, Cell* cells, std::size_t count, std::uintptr_t at, std::size_t bytes, AccessKind,
             const void* pc, bool shared);
  void visit(Thread&, Cell&, Stamp now, bool writes, bool shared);
  bool live(const Stamp& s, bool shared) const {
    return s.cluster != 0 && (shared ? s.cluster == clocks_.cluster() : clocks_.in_this_launch(s));
  }
  void tell_race(Thread&, const Stamp& then, bool then_writes, const Stamp& now, bool writes, bool shared);
  void tell(FindingKind, const void* first_pc, const void* second_pc, int first_thread, const Thread* t,
            std::string text);
  void add(Raw);
  bool in_module(std::uintptr_t at);
  /// "z[1]"; nothing where the memory is not registered.
  std::string global_at(std::uintptr_t at, std::size_t bytes);
  std::string array_at(const Block&, std::size_t offset) const;
  /// ", 4 bytes past the end of x", of an access out of bounds: the nearest registered range, if one is near.
  std::string range_beside(std::uintptr_t at, std::size_t bytes) const;

  Clocks clocks_;
  GlobalShadow global_;
  Tracer tracer_;
  std::vector<Shared> shared_;  // by rank in the cluster
  std::vector<Pending> pending_;
  std::uintptr_t pending_from_ = 0, pending_to_ = 0;  // around all sources of pending copies
  std::string kernel_;
  const ClusterRunner* runner_ = nullptr;
  class Busy {  // may be nested
   public:
    explicit Busy(Checker& checker) : flag_(checker.busy_), before_(std::exchange(flag_, true)) {}
    ~Busy() { flag_ = before_; }

   private:
    bool& flag_;
    bool before_;
  };
  void see(const void* at, std::size_t bytes, AccessKind, const void* pc, bool word = false);

  bool busy_ = false;  // only the launch's one thread asks and sets
  bool compares_ = true,
       keeps_ = true;      // what visit does: a copy is compared when issued and kept when waited for
  bool volatile_ = false;  // the access that is seen
  std::size_t last_bytes_ = 4;
  std::uintptr_t last_at_ = 0;  // of the access that is visited, for the sentence

  std::mutex mutex_;  // findings and ranges: others may ask while a launch runs
  std::vector<Raw> findings_;
  std::set<std::tuple<int, std::string, const void*, const void*, unsigned, unsigned>> told_;
  std::vector<Range> globals_;
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> modules_;
};
extern Checker checker;

}  // namespace rooftile::emulated
