#pragma once
// The units of a multiprocessor that work on their own: copy engine and tensor cores. What they have been
// told to do stands here until they do it, which is as late as can be: when no thread of the cluster can go
// on, or, with a seed, at a moment drawn from it. So whoever forgot to wait runs into what is not there yet.
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "rooftile/backend/emulated/controls.h"
#include "rooftile/backend/emulated/device/hopper_calls.h"
#include "rooftile/backend/emulated/matrix_operand.h"
#include "rooftile/backend/emulated/state.h"
#include "rooftile/backend/emulated/tensor_core.h"
#include "rooftile/backend/emulated/tensor_map.h"

namespace rooftile::emulated {

// NaNs that nobody else makes. In an accumulator that is not there yet stands a signalling one: what computes
// with it leaves the quiet one. The third comes of shared memory that nobody has written.
constexpr std::uint32_t kPendingPoison = 0xffbfa5a5, kPendingUsed = 0xffffa5a5, kUnwrittenPoison = 0xffffa5a6;
constexpr unsigned kWarpgroup = 128;

struct Range {  // of a block's shared memory
  const Block* block = nullptr;
  std::uint32_t begin = 0, end = 0;
  bool meets(const Range& r) const { return block == r.block && begin < r.end && r.begin < end; }
  std::uint32_t bytes() const { return end - begin; }
  std::byte* data() const { return block->arena + begin; }
};

/// A copy into one block's shared memory (one to all blocks is one for each): poison stands there until it is
/// made.
struct Load {
  Range to;
  std::uint64_t* barrier = nullptr;
  EncodedMap map{};  // magic 0: bytes from `from`
  std::array<int, 5> at{};
  const std::byte* from = nullptr;
  Thread* issuer = nullptr;
  Site where;
  AsyncCopy told{};  // as the observer knows it
};
/// A store by tensor map: reads shared memory when its thread waits for that, at the latest moment.
struct Store {
  Range from;
  EncodedMap map{};
  std::array<int, 5> at{};
  Site where;
  const Thread* issuer = nullptr;
  std::size_t group = 0;  // of its thread's
};
/// What a load left; also to tell of a descriptor that reads it otherwise.
struct Loaded {
  Range range;
  Swizzle swizzle;
  bool by_map;
  Site where;
};
/// By an ordinary instruction, to 16 bytes of shared memory.
struct Written {
  const Thread* writer = nullptr;
  std::uint64_t progress = 0;  // the runner's
  std::uint64_t order = 0;     // among writes and fences
  Site where;
  bool exact = true;  // where; else the last place before it that is known
};

/// One wgmma of a warpgroup.
struct WgmmaStep {
  device::Product product{};
  MatrixOperand a, b;
  Range a_bounds, b_bounds;  // around them
  Site where;
  unsigned issued = 0, committed = 0;  // by so many of its threads
  std::size_t sums = 0;                // which accumulator
  std::array<std::uint32_t, kWarpgroup * 4> a_held{};
  std::array<const std::uint32_t*, kWarpgroup> a_from{};
};
struct Accumulator {
  int n = 0;
  std::vector<float> sums;               // 64 rows
  std::vector<std::uint32_t> integers;   // in their place, of bytes
  std::array<bool, 64> poisoned_rows{};  // by unwritten shared memory
  std::array<bool, 256> poisoned_columns{};
  unsigned returned = 0;  // to so many threads
};
struct Warpgroup {
  std::deque<WgmmaStep> steps;  // from number `first` on
  std::size_t first = 0, wanted = 0;
  std::map<std::size_t, Accumulator> accumulators;
};
struct PendingSums {
  float* at;
  int count;
  std::size_t number, last_step;
};
struct ThreadUnits {
  std::size_t issued = 0, committed = 0, waits_for = 0, accumulators = 0;
  std::vector<std::size_t> groups;  // of wgmma: where each ends
  std::vector<PendingSums> pending;
  bool fenced = false;
  std::uint64_t proxy_fenced = 0;  // `order` of its last proxy fence
  std::size_t store_groups = 0;    // committed
  unsigned registers_wanted = 0;
};
struct BlockUnits {
  std::vector<Warpgroup> warpgroups;
  std::vector<unsigned> registers;  // of each warp, by thread
  unsigned free_registers = 0;
  std::vector<Written> written;  // by 16 bytes of the arena
};

struct AsyncUnits {
  ClusterRunner* runner = nullptr;
  bool used = false;  // by this cluster
  std::vector<Load> loads;
  std::vector<Store> stores;
  std::vector<Loaded> loaded;
  std::vector<BlockUnits> blocks;
  std::vector<ThreadUnits> threads;
  std::uint64_t order = 0, fenced_before = 0;  // the progress that some proxy fence covers all writes before
  float a[64][tensor_core::kDepth], b[256][tensor_core::kDepth];  // a product's operands
  std::int8_t a_bytes[64][tensor_core::kDepth], b_bytes[256][tensor_core::kDepth];
  std::bitset<(1 << 18) / 16> seen;  // pieces of an operand, while it is checked
};

/// State of the cluster that the current thread is in.
inline AsyncUnits& units() {
  AsyncUnits& u = *current->block->runner->units;
  u.used = true;
  return u;
}
inline ThreadUnits& own_units() { return units().threads[current->in_cluster]; }
Range range_of(const ClusterRunner&, const void* at, std::size_t bytes);  // block null: in no array

/// Ends the launch like fail(), but returns: the host calls it, too, which is no thread.
void report(ClusterRunner&, FindingKind, Site, const char* format, ...) __attribute__((format(printf, 4, 5)));

// units.cpp
/// The write that made the 16 bytes at this address, if no proxy fence came between; null if one did.
const Written* unfenced(const AsyncUnits&, const Block&, std::uint32_t address);
/// Whether nobody has written the bytes: they are poison and no load brought them.
bool never_written(const AsyncUnits&, const Block&, std::uint32_t address, std::uint32_t bytes);
void refuse_unread(const Range&, const char* who, Site);  // a store has yet to read it
// mbarriers.cpp
Mbarrier* find_mbarrier(ClusterRunner&, const std::uint64_t*);
void complete_bytes(ClusterRunner&, const Load&);
void describe_mbarrier(const Thread&, char* text, std::size_t capacity);
// copy_engine.cpp
bool make_a_load(AsyncUnits&);  // the oldest, or one drawn; false: there is none
// wgmma.cpp
bool run_tensor_cores(AsyncUnits&);
const WgmmaStep* step_that_reads(const AsyncUnits&, const Range&, std::size_t* warpgroup);
void refuse_in_use(const Range&, const char* who, Site);  // a wgmma has yet to read it
void refuse_poison(std::uint32_t bits, Site);             // what stands in the place of a sum
void describe_wgmma(const Thread&, char* text, std::size_t capacity);

}  // namespace rooftile::emulated
