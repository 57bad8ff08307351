#pragma once
// The engine's state: a launch, the runners of fibers that work on it, and the blocks and threads that a
// runner runs now.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "rooftile/backend/emulated/device/calls.h"
#include "rooftile/backend/emulated/device/vectors.h"
#include "rooftile/backend/emulated/engine.h"
#include "rooftile/backend/emulated/fiber.h"
#include "rooftile/backend/emulated/observer.h"

namespace rooftile::emulated {

constexpr unsigned kWarpSize = 32, kMaxThreads = 1024, kMaxCluster = 16, kNamedBarriers = 16;
constexpr std::size_t kStackBytes = 64 << 10;

enum class Wait : std::uint8_t { kNothing, kBlock, kNamed, kWarp, kCluster, kMbarrier, kWgmma, kRegisters };

struct AsyncCopy {
  std::byte* to;
  const std::byte* from;
  std::uint32_t bytes, zeros;
  const void* pc;
  unsigned issuer;            // the thread's number in the block
  std::uint64_t* arrives_at;  // an mbarrier, or null
};

struct Warp {
  unsigned alive = 0;    // lanes that have begun or will, and have not ended
  unsigned waiting = 0;  // lanes in a warp operation
  Thread* lanes = nullptr;
};

struct alignas(64) Thread {  // what a switch touches stands in the first cache line
  Block* block = nullptr;
  Fiber* fiber = nullptr;
  Warp* warp = nullptr;
  uint3 index{};
  Wait wait = Wait::kNothing;
  bool ended = false, cluster_arrived = false;
  Site where;  // what it waits at, or waited at last
  device::BlockVote vote{};
  unsigned number = 0, lane = 0;  // in the block, in the warp
  // The warp operation it is in.
  device::WarpOperation operation{};
  unsigned mask = 0, source_lane = 0;
  std::uint64_t value = 0, result = 0;
  // Its own copies, in order, and where each committed group ends.
  std::vector<AsyncCopy> copies;
  std::vector<std::size_t> groups;
  unsigned in_cluster = 0;  // over the cluster's blocks
  unsigned parity = 0;      // of the mbarrier at `waits_at`
  const void* waits_at = nullptr;
  std::uint64_t learnt = 0;       // the runner's progress when it last met others
  bool sums_pending = false;      // of a wgmma that it has not waited for
  const void* last_pc = nullptr;  // of its last access, in the checked build
};

struct SharedArray {
  const SharedSite* site;  // null: the dynamic one
  std::size_t offset, bytes;
};

struct NamedBarrier {
  unsigned expected = 0, arrived = 0;
  bool any = false;  // a predicate held
  std::vector<Thread*> waiting;
};

struct Mbarrier {
  std::uint64_t* address = nullptr;
  const Block* block = nullptr;
  unsigned arrivals = 0, pending = 0;
  std::int64_t bytes_missing = 0, announced = 0;  // of this phase
  unsigned phase = 0;  // its number: the parity that waiters name is its lowest bit
  Site made, announced_at;
  unsigned maker = 0;             // the thread's number in the cluster
  bool visible = false;           // to the copy engine: its maker has fenced
  unsigned loads = 0;             // that arrived in this phase
  unsigned loaded = 0, seen = 0;  // phases until the last one with loads, and the last that was waited for
};

struct Block {
  ClusterRunner* runner = nullptr;
  uint3 index{};
  unsigned rank = 0;    // in the cluster
  unsigned linear = 0;  // in the grid
  unsigned alive = 0;   // threads that have not ended
  Thread* threads = nullptr;
  std::vector<Warp> warps;
  // __syncthreads
  std::vector<Thread*> waiting;
  device::BlockVote vote{};
  std::array<NamedBarrier, kNamedBarriers> named;
  // The arena: the dynamic array first, then the static ones as the kernel comes to them, guards between.
  std::byte* arena = nullptr;
  std::vector<SharedArray> arrays;
  std::size_t arena_used = 0, shared_bytes = 0;
};

/// One launch, shared by the host threads that work on it.
struct Launch {
  Geometry geometry;
  Options options;
  void (*kernel)(const void*);
  const void* arguments;
  const char* name;
  std::uint64_t seed;
  std::size_t shared_limit;
  unsigned threads_per_block, clusters;
  std::atomic<unsigned> next_cluster{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  Status status;                                    // the first failure
  std::array<std::atomic<unsigned>, 1024> running;  // of the runners that there are: its cluster, or ~0
  int runners = 1;
};

struct AsyncUnits;

/// What one host thread works with: fibers with their stacks, arenas, and the threads of the cluster it runs.
struct ClusterRunner {
  Launch* launch = nullptr;
  int number = 0;  // within the launch
  unsigned cluster = 0, live = 0;
  std::vector<Block> blocks;
  std::vector<Thread> threads;  // of all blocks of the cluster
  std::vector<Mbarrier> mbarriers;
  unsigned cluster_arrived = 0;
  std::shared_ptr<AsyncUnits> units;  // copy engine and tensor cores: what they have yet to do
  bool units_turn = false;            // they work next

  // Scheduling: threads that may run, in a ring; those not begun yet, in `order` from `begun` on.
  std::vector<Thread*> ready;
  std::size_t ready_first = 0, ready_count = 0;
  std::vector<unsigned> order;
  unsigned begun = 0;
  std::uint64_t random = 0;  // 0: in order
  std::uint64_t polls = 0, yields = 0, progress = 0,
                progress_seen = 0;  // what other threads may wait for has happened
  std::int64_t quiet_since = 0;
  uint3 shape{};  // of the blocks that `threads` was made for

  std::vector<std::unique_ptr<Fiber>> fibers;
  Fiber host;
  Fiber* free_fibers = nullptr;
  std::vector<std::pair<std::byte*, std::size_t>> stacks;  // and how many
  std::byte* arenas = nullptr;
  std::size_t arenas_bytes = 0;
  ClusterRunner* next = nullptr;  // in the pool
  bool damaged = false;           // fibers were left in the middle of a kernel

  ClusterRunner() = default;
  ClusterRunner(const ClusterRunner&) = delete;
  ClusterRunner& operator=(const ClusterRunner&) = delete;
  ~ClusterRunner();
  Status prepare(Launch&);  // std::bad_alloc may come out of it
  void run_cluster(unsigned which);
  std::uint64_t draw();  // of `random`
  void make_ready(Thread& t) {
    std::size_t at = ready_first + ready_count++;
    if (at >= ready.size()) at -= ready.size();
    ready[at] = &t;
  }
};

/// The thread that runs now on this host thread; null outside kernels.
extern __thread Thread* current __attribute__((tls_model("initial-exec")));

/// The current thread waits until someone makes it ready.
void wait(Wait, Site);
/// Lets others run for a moment.
void yield();
/// Ends the launch: `sentence` becomes its status, unless it has one. Does not return to the kernel.
[[noreturn]] void fail(int finding_kind, Site, const char* format, ...) __attribute__((format(printf, 3, 4)));
/// Ends the launch with a sentence that is no finding of the checked build.
[[noreturn]] void fail_plainly(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// A source's name without its folders: a deadlock's sentence names many places.
inline const char* base_name(const char* file) {
  const char* slash = file ? std::strrchr(file, '/') : nullptr;
  return slash ? slash + 1 : file ? file : "?";
}

// What one file of the engine asks of another.
void thread_ended(Thread&);  // barriers.cpp: those who waited for it may go on
void check_block_barrier(Block&);
void check_warp(Warp&);                                // warps.cpp
void run_collective(Thread* lanes, unsigned members);  // fragments.cpp
void finish_copies(Thread&);                           // async.cpp
bool start_arena(Block&);                              // arena.cpp
void start_units(ClusterRunner&);                      // units.cpp, and the next six
bool run_units(ClusterRunner&);                        // one thing; false: there is nothing to do
bool units_busy(const ClusterRunner&);
void finish_units(Thread&);
void check_units(ClusterRunner&);
void describe_wait(const Thread&, char* text, std::size_t capacity);
/// By an ordinary instruction; `exact`: in that place, else somewhere behind it.
void note_write(const Thread&, const Block&, std::size_t offset, std::size_t bytes, Site, bool exact);
/// Whether a store or a wgmma has yet to read the bytes, and where it was asked for.
bool units_read(const Block&, std::size_t offset, std::size_t bytes, Site* asked);
/// Whether a wgmma that the thread has not waited for writes there (wgmma.cpp).
bool wgmma_writes(const Thread&, const void* at, std::size_t bytes, Site* made);
const SharedArray* damaged_guard(const Block&);
std::size_t arena_stride();
std::size_t arena_margin();

}  // namespace rooftile::emulated
