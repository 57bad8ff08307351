#pragma once
// Which team a row gets, in numbers. No CUDA in here: the command tells them, too.
#include <algorithm>
#include <cstdint>

namespace rooftile::tile {
inline namespace cuda {

inline constexpr int kWarp = 32;
/// Threads of a block whose teams are warps or less.
inline constexpr int kWarpsThreads = 128;

/// How many warps a block has at most, how many blocks a cluster, and how many warps such a team.
inline constexpr int kMaxWarps = 32, kMaxCluster = 16, kMaxPartials = 256;

/// Whose threads a team's are: a warp's, all of them or fewer; some warps' of a block; a block's; a
/// cluster's. A kernel that knows has no instructions for the others; `any`: it is told. From short to long:
/// comparisons rely on it.
enum class Scope : std::uint8_t { warp, warps, block, cluster, any };

/// How many threads a row gets. It follows from the row's length and the architecture alone: bits depend on
/// it.
struct RowShape {
  int threads;        ///< of a team, in one block
  int teams;          ///< of a block
  int cluster;        ///< blocks of a team; 0: the row is too long to hold, and read again
  std::int64_t part;  ///< elements of a row in a block
};

/// Of a block that reads rows again; its threads have 64 registers.
inline constexpr int kMaxThreads = 1024;
/// Of a block with parts of rows, or small matrices.
inline constexpr int kFewThreads = 256;
/// Of a launch.
inline constexpr std::int64_t kMaxBlocks = (std::int64_t{1} << 31) - 1;

/// How a program cuts rows among the blocks of a cluster.
struct Clusters {
  int alone;    ///< threads of a row that one block takes, on GPUs that have clusters
  int pair;     ///< of a block of two
  int threads;  ///< and of more
  int chunks;   ///< of such a thread at most
};

/// Which of a program's rows come to shared memory while the row before is computed.
struct Streaming {
  Scope from = Scope::any;      ///< of the shortest teams that do, if all are whole aligned words; any: none
  int stages = 0;               ///< operands that do
  int resident = 0;             ///< threads that a multiprocessor runs at once
  Scope anywhere = Scope::any;  ///< of the shortest teams, if they are not
};

/// Of rows that stream, how many wait for a multiprocessor that comes free, instead of being shared out at
/// once to the teams that run at a time: some of these are done earlier than others.
struct Late {
  int percent = 0;
  int rows = 1;  ///< of such a team
};

/// `columns` elements, `lanes` to a thread and chunk, at most `chunks` chunks: as few threads as hold the row
/// (16 to 32 elements a thread move the most bytes), but `least` if it has so many words; a power of two
/// within a warp and whole warps up to `held`; then blocks of a cluster, if `clusters` are to be had, each
/// with a part of the row. `may_stage`: rows that begin anywhere come from shared memory.
constexpr RowShape row_shape(std::int64_t columns, int lanes, int chunks, int held, int least, bool may_stage,
                             const Clusters* clusters) {
  const std::int64_t words = (columns + lanes - 1) / lanes, wanted = (words + chunks - 1) / chunks;
  const auto whole_warps = [](std::int64_t threads) { return static_cast<int>((threads + 31) / 32 * 32); };
  if (wanted <= 32) {
    // Neighbours read lines of memory together, but every thread takes part in its row's reductions and has
    // fewer elements to show for it. In shared memory, where rows are that cannot be aligned since they are
    // no whole words, as few as hold a row are best.
    if (may_stage && columns % lanes != 0) least = 1;
    int threads = 1;
    while (threads < wanted || (threads < least && threads < words)) threads *= 2;
    return {threads, kWarpsThreads / threads, 1, columns};
  }
  if (wanted <= (clusters ? clusters->alone : held)) return {whole_warps(wanted), 1, 1, columns};
  if (clusters) {
    const std::int64_t needed = (words + clusters->chunks - 1) / clusters->chunks;
    const std::int64_t most = std::min(kMaxCluster, kMaxPartials * kWarp / clusters->threads);
    int cluster = 2;
    while (std::int64_t{cluster} * (cluster == 2 ? clusters->pair : clusters->threads) < needed) cluster *= 2;
    if (cluster <= most) {
      const std::int64_t part = (words + cluster - 1) / cluster;
      return {whole_warps((part + clusters->chunks - 1) / clusters->chunks), 1, cluster, part * lanes};
    }
  }
  return {kMaxThreads, 1, 0, columns};
}

}  // namespace cuda
}  // namespace rooftile::tile
