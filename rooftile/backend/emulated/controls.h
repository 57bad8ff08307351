#pragma once
// What a plug-in of the emulated device lets others steer and read: plain data and functions, so that it can
// cross the plug-in's border. The plain build takes everything and has nothing to tell; the checked build has
// (checked/).

#include <cstddef>
#include <cstdint>

#include "rooftile/backend/emulated/trace.h"

namespace rooftile::emulated {

enum class FindingKind : int {
  kRace,              // two accesses, one of them a write, that nothing orders
  kOutOfBounds,       // a shared array's end, another block's or no memory at all
  kUnwritten,         // shared memory read before anyone wrote it
  kMissingWait,       // what an asynchronous copy reads or writes, touched before it was waited for
  kDivergentBarrier,  // threads at different barriers, or gone, while others wait
  kDeadlock,          // nobody can go on
  kTrap,              // __trap, or a failed assert
  kMisaligned,        // a word whose address is no multiple of its bytes
};
const char* name(FindingKind) noexcept;

struct Place {
  char file[120];  // as the compiler was given it, or the module where there is no debug information
  int line;        // 0 where unknown
};

/// One defect; the same pair of lines is told once in a launch's life.
struct Finding {
  FindingKind kind;
  char kernel[64];
  Place first, second;              // the earlier access and the later, or the same twice
  int first_thread, second_thread;  // within their blocks; -1 where there is none
  unsigned block[3];
  char sentence[1200];
};

struct Controls {
  void (*set_seed)(std::uint64_t);  // for launches that name none; 0: threads run in order
  void (*set_architecture)(int);    // instead of what launches name; 0: as they say
  /// Moves up to `capacity` findings to `out`, oldest first; returns how many. Call until it returns 0.
  std::size_t (*take_findings)(Finding* out, std::size_t capacity);
  void (*trace_start)();
  /// Ends the trace; returns its lines' number, of which up to `capacity` stand in `out`.
  std::size_t (*trace_stop)(TraceLine* out, std::size_t capacity, TraceTotals* totals);
  bool checked;
  /// A range that kernels may touch. With one registered, other memory of the heap is out of bounds.
  void (*register_global)(const void* pointer, std::size_t bytes, const char* name);
  void (*forget_globals)();
};
const Controls& controls() noexcept;

}  // namespace rooftile::emulated
