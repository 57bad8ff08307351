#pragma once
// The memory report of a profiler, without a GPU: for each line of a kernel that touches memory, what its
// warps ask for. Only the checked build sees accesses; in the plain build a trace has no lines.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rooftile::emulated {

enum class TraceKind : int { kGlobalLoad, kGlobalStore, kSharedLoad, kSharedStore, kAtomic };
const char* name(TraceKind) noexcept;

/// One line of source and one kind of access. A request is one instruction of one warp.
struct TraceLine {
  char file[120];
  int line;
  TraceKind kind;
  int access_bytes;          // by one lane; the largest, where they differ
  std::uint64_t requests;    // by warps
  std::uint64_t lanes;       // that took part, over all requests
  std::uint64_t bytes;       // that lanes asked for; the same byte asked for twice counts twice
  std::uint64_t used_bytes;  // different bytes, request by request
  std::uint64_t sectors;     // of 32 bytes; global memory only
  std::uint64_t wavefronts;  // passes over the 32 banks; shared memory only
  std::uint64_t conflicts;   // of these, what banks that were asked for several words cost

  double sectors_per_request() const { return requests ? double(sectors) / double(requests) : 0; }
  double wavefronts_per_request() const { return requests ? double(wavefronts) / double(requests) : 0; }
  /// Of the bytes that global memory moves, the share that a lane asked for.
  double used_share() const { return sectors ? double(used_bytes) / (32. * double(sectors)) : 0; }
};

/// Of a whole trace.
struct TraceTotals {
  std::uint64_t launches;         // of kernels
  std::uint64_t sectors;          // of global memory, over all requests
  std::uint64_t read_bytes;       // different bytes of global memory that were read: what must come at least
  std::uint64_t written_bytes;    // and written
  std::uint64_t different_bytes;  // read, written or both
  std::uint64_t barriers;         // at which a block's threads met
  double
      busiest_block;  // its share of a launch's accesses of global memory; of launches of 4 blocks and more
};

void start_trace();
/// The lines since start_trace, by file, line and kind.
std::vector<TraceLine> stop_trace(TraceTotals* totals = nullptr);

}  // namespace rooftile::emulated
