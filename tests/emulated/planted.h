#pragma once
// Launches of the kernels in planted.cu.
#include "rooftile/backend/emulated/engine.h"

namespace rooftile::emulated::test {

enum class Bug {
  kNone,
  kOnlyBarrier,        // the only barrier is gone
  kSecondBarrier,      // of two in a loop, the second
  kDivergentBarrier,   // half of the block goes to a barrier, the rest ends
  kTwoBarriers,        // half of the block goes to one, the rest to another
  kMissingWait,        // an asynchronous copy nobody waits for
  kBarrierAfterWait,   // each thread waits for its own copies, and reads others'
  kBarrierBeforeCopy,  // a copy into what others still read
  kOverrun,            // through a pointer, one past the end of a shared array
  kUnwritten,          // shared memory that nobody wrote
  kMissingFence,       // the last block reads what others did not fence
  kBlocksCollide,      // two blocks write one word
  kMissingSyncwarp,    // lanes exchange through shared memory
  kClusterBarrier,     // another block's shared memory, after one's own barrier only
  kSourceWritten,      // what an asynchronous copy has yet to read
  kTwoShuffles,        // teams of a warp have unequal numbers of rows, and exchange after the last one
  kVolatileTail,       // a warp's last steps of a sum, volatile and without __syncwarp()
  kMisaligned,         // 8 bytes at once, from the second float on
};
constexpr int kRightPrograms = 21;

/// The grid has 2 blocks or more, clusters of 2 for kClusterBarrier; x and y hold 8192 floats, counter 64.
Status launch_planted(Bug, const Geometry&, const Options&, const float* x, float* y, unsigned* counter);
/// The same without the defect, then others that are right.
Status launch_right(int which, const Geometry&, const Options&, const float* x, float* y, unsigned* counter);
Status launch_past_the_end(const Geometry&, const float* x, float* y, int by);

}  // namespace rooftile::emulated::test
