#pragma once
// From a problem to programs on a GPU: which kernel runs it, and with which blocks.
#include "rooftile/tile/cuda/run_staged.h"
#include "rooftile/tile/cuda/walk.h"

namespace rooftile::tile {
inline namespace cuda {

/// A team for each row; or, where rows stream, for one after the other. Those that meet at barriers are a
/// block each, or a cluster, and shuffles do not wait for threads of other teams that have none left.
template <int kBlock, int kLeastBlocks, class Team, class Program>
__global__ void __launch_bounds__(kBlock, kLeastBlocks)
    run_rows(const __grid_constant__ Program program, const __grid_constant__ RowShape shape,
             const __grid_constant__ RowsEach each) {
#if !defined(ROOFTILE_HAS_SM90)
  // Never launched without clusters; it would be a quarter of layer_norm's machine code.
  if constexpr (Team::kSpan != Span::cluster)
#endif
  {
    Turns turns;
    const Team team(shape.threads, turns, shape.cluster);
    unsigned block = blockIdx.x;
    Walk walk{0, 0, 1, 0, program.p.rows.columns};
#if defined(ROOFTILE_HAS_SM90)
    if (Team::kSpan == Span::cluster || (Team::kSpan == Span::any && shape.cluster > 1)) {
      const auto cluster = static_cast<unsigned>(shape.cluster);
      walk.first = shape.part * (block % cluster);
      walk.size = walk.size - walk.first < shape.part ? walk.size - walk.first : shape.part;
      block /= cluster;
    }
#endif
    walk.row = block;
    if constexpr (Team::kSpan == Span::warp || Team::kSpan == Span::any || Team::kSharesBlock)
      walk.row = std::int64_t{block} * shape.teams + team_in_block<Team::kSharesBlock>(shape);
    if constexpr (Team::kStreams) {
      if (walk.row < each.early) {
        walk.step = each.early;
        walk.count = each.rows;
      } else {
        walk.row = each.early * each.rows + (walk.row - each.early) * each.late;
        walk.step = 1;
        const std::int64_t rest = each.all - walk.row;
        walk.count = rest < each.late ? rest : each.late;
      }
      if (walk.count > 0) program(team, walk);
    } else {
      if (walk.row < each.rows) program(team, walk);
    }
  }
}

/// Dynamic shared memory that a block may have beside the team's own, and all blocks of a multiprocessor
/// together (CUDA C++ Programming Guide, "Compute Capabilities").
struct SharedLimits {
  static constexpr std::int64_t kOther = 7 * 1024;  // of the team and the system
  std::int64_t block, multiprocessor;
};
constexpr SharedLimits shared_limits(int architecture) {
  const bool large = architecture == 80 || architecture == 87 || (architecture >= 90 && architecture < 120);
  const std::int64_t all = std::int64_t{!large ? 100 : architecture < 90 ? 164 : 228} * 1024;
  return {all - SharedLimits::kOther, all};
}

/// Whether a program's teams of several warps share a block.
template <class Program>
inline constexpr bool kSharesBlocks = requires(const Program& program) {
  program.teams;
};
/// Threads of a multiprocessor whose warps have the work of several: 128 registers for each.
inline constexpr int kWideThreads = 512;
/// Of how many warps each has the work: of blocks whose rows are whole words, what the program says, if it
/// does.
template <class Program, Access kAccess = Access::full, Span kSpan = Span::block>
inline constexpr int kPartsOf = [] {
  if constexpr (in_words(kAccess) && kSpan == Span::block && requires { Program::kParts; })
    return Program::kParts;
  else
    return 1;
}();
/// The threads of a program's longest block with such teams, and how many a multiprocessor must have.
template <class Team, class Program>
inline constexpr int kBlockOf =
    Team::kSpan == Span::warp      ? kWarpsThreads
    : !Team::kHoldsRows            ? kMostThreads
    : Team::kSpan == Span::cluster ? std::max(Program::kClusters.pair, Program::kClusters.threads)
                                   : Program::kHeldThreads / Team::kParts;
/// The chunks of a thread.
template <class Program, int kChunks, Span kSpan>
inline constexpr int kChunksOf = kSpan == Span::cluster ? Program::kClusters.chunks : kChunks;
template <class Team, class Program>
inline constexpr int kLeastOf = Team::kParts > 1   ? kWideThreads / kBlockOf<Team, Program>
                                : Team::kHoldsRows ? Program::least_blocks(Team::kSpan)
                                                   : 1;
/// Dynamic shared memory of a block of so many threads.
template <class Team>
constexpr std::int64_t shared_bytes(int threads) {
  return (threads + kWarp - 1) / kWarp * std::int64_t{Team::Slots::kWarpBytes};
}

/// The same with what its teams of several warps gather together, which comes when rows have gone.
template <class Team>
constexpr std::int64_t all_shared_bytes(const RowShape& shape) {
  const int threads = shape.threads * shape.teams;
  return std::max(shared_bytes<Team>(threads),
                  Team::kSharesBlock ? threads * std::int64_t{sizeof(float)} * Team::kElements : 0);
}

/// A launch of so many clusters (of one block, as a rule), and its kernel.
template <class Team>
rooftile::cuda::Grid grid_of(const RowShape& shape, std::int64_t clusters) {
  const int cluster = std::max(1, shape.cluster);
  return {static_cast<unsigned>(clusters * cluster), static_cast<unsigned>(shape.threads * shape.teams),
          static_cast<std::size_t>(all_shared_bytes<Team>(shape)), static_cast<unsigned>(cluster)};
}
template <class Team, class Program>
inline constexpr auto kRunRows = run_rows<kBlockOf<Team, Program>, kLeastOf<Team, Program>, Team, Program>;
template <class Team, class Program>
Status launch_rows(const CudaLaunch& launch, const char* name, const Program& program, const RowShape& shape,
                   std::int64_t clusters, const RowsEach& each) {
  if (clusters > kMostBlocks / std::max(1, shape.cluster))
    return Status::error("%s: %lld rows of %lld elements take more blocks than the %lld of a launch", name,
                         static_cast<long long>(program.p.rows.rows),
                         static_cast<long long>(program.p.rows.columns), static_cast<long long>(kMostBlocks));
  return rooftile::cuda::launch(launch, name, grid_of<Team>(shape, clusters), kRunRows<Team, Program>,
                                program, shape, each);
}

/// A team for each row.
template <class Team, class Program>
Status launch_direct(const CudaLaunch& launch, const char* name, const Program& program,
                     const RowShape& shape, std::int64_t rows) {
  return launch_rows<Team>(launch, name, program, shape, (rows + shape.teams - 1) / shape.teams,
                           RowsEach{rows});
}

/// Rows that stream: most of them through as many blocks as the device runs at once. False where it cannot
/// be.
template <class Team, class Program>
bool launch_streams(const CudaLaunch& launch, const char* name, const Program& program, const RowShape& shape,
                    std::int64_t rows, Status& status) {
  const SharedLimits limits = shared_limits(launch.architecture);
  const int threads = shape.threads * shape.teams, cluster = std::max(1, shape.cluster);
  const std::int64_t shared = all_shared_bytes<Team>(shape);
  if (shared > limits.block || !one_stride(program.p.rows) || rows > kMostBlocks / cluster) return false;
  const std::int64_t resident = std::max<std::int64_t>(
      1, std::min<std::int64_t>(Program::kStreaming.resident / threads,
                                limits.multiprocessor / (shared + SharedLimits::kOther)));
  std::int64_t at_once = std::max<std::int64_t>(1, launch.multiprocessors * resident / cluster);
  const Late late = Program::late(shape);
  if (cluster > 1 && late.percent < 100)
    if (const int clusters = rooftile::cuda::clusters_at_once(
            launch, reinterpret_cast<const void*>(kRunRows<Team, Program>), grid_of<Team>(shape, 1)))
      at_once = clusters;
  const std::int64_t each = rows / (at_once * shape.teams);
  const std::int64_t early =
      std::max<std::int64_t>(0, each - std::max<std::int64_t>(late.rows, (each * late.percent + 50) / 100));
  const std::int64_t teams = early > 0 ? at_once * shape.teams : 0;
  const int late_rows = each < 2 * late.rows ? 1 : late.rows;
  const std::int64_t late_teams = (rows - teams * early + late_rows - 1) / late_rows;
  const std::int64_t clusters = (teams + late_teams + shape.teams - 1) / shape.teams;
  status = launch_rows<Team>(launch, name, program, shape, clusters,
                             RowsEach{early, rows, static_cast<int>(teams), late_rows});
  return true;
}

/// The program whose kernel serves such teams: one for several is less to compile.
template <Access kAccess, Span kSpan, class Program>
auto program_for(const Program& program) {
  if constexpr (requires { program.template serving<kAccess, kSpan>(); })
    return program.template serving<kAccess, kSpan>();
  else
    return program;
}
template <Access kAccess, Span kSpan, class Program>
auto streaming_program_for(const Program& program) {
  if constexpr (requires { program.template streaming<kAccess, kSpan>(); })
    return program.template streaming<kAccess, kSpan>();
  else
    return program;
}

/// Runs program(team, walk) for `rows` rows, `kLanes` elements to a thread and chunk. A program says
///   p.rows        where the rows lie
///   kHeldThreads  of the longest block that holds a row: with 1024 a thread has 64 registers, with 512 it
///                 has 128
///   kClusters     how longer rows go to clusters
///   least_blocks  (span) blocks that a multiprocessor must be able to have: such ones, or of kWarpsThreads
///                 where teams are warps; 0: as the compiler likes
///   kStreaming    which rows come to shared memory while the row before is computed; where some do, also
///   late()        (shape) which of them are shared out late
///   kept()        (span) vectors of a row's length that teams bring to shared memory beside them, or alone
/// and
///   least_threads() (columns) of a row that has so many words, but for odd ones that are staged
///   kSkips        whether rows of a warp's teams leave out chunks that no lane reaches
///   kStages       whether short rows may be staged. places() are those of its operands; none where rows do
///                 not follow one upon the other. each_staged() tells which they are, and what a vector
///                 holds that has no data: its place it has all the same
///   kShortest,    spans of its rows' teams; Span::any: a row may be longer than a cluster holds, and is
///   kLongest      read again
///   kFull         whether rows that fill their team have a kernel of their own, and staged ones one for each
///                 size of pieces (or kAllPieces says so)
///   kStrided      whether long rows that begin at any address have kernels of their own
/// and may have
///   kParts        of how many warps one does the work, in blocks, where rows are whole words: rows do not
///                 stream then, and a thread has as many times more on its way
///   serving<Access, Span>()  the program that has the kernel for teams that do not stream, if not itself;
///   streaming<Access, Span>()  for those that do
///   Staged<Team>  for staged rows, if it gathers of many: run_staged_turns; and
///   teams         which then are in a block and gather together, of whole warps, too
template <int kLanes, int kChunks, class Program>
Status for_rows(const CudaLaunch& launch, const char* name, std::int64_t rows, Layout layout,
                const Program& program) {
  static_assert(Program::kStreaming.from == Span::any || Program::kStreaming.resident > 0);
  if (rows <= 0) return {};
  const std::int64_t columns = program.p.rows.columns;
  static constexpr Clusters kClusters = Program::kClusters;
  RowShape shape = row_shape(columns, kLanes, kChunks, Program::kHeldThreads, Program::least_threads(columns),
                             Program::kStages, has_clusters(launch) ? &kClusters : nullptr);
  if constexpr (kSharesBlocks<Program>)
    if (layout == Layout::words && shape.threads > kWarp) shape.teams = program.teams;
  if constexpr (Program::kLongest == Span::any)
    if (shape.cluster == 0)
      return launch_direct<CudaTeam<float, kLanes, 0, Access::any>>(
          launch, name, program_for<Access::any, Span::any>(program), shape, rows);
  const auto direct = [&]<Access kAccess, Span kSpan>() {
    constexpr int kParts = kPartsOf<Program, kAccess, kSpan>;
    constexpr int kKept = in_words(kAccess) && kParts == 1 ? Program::kept(kSpan) : 0;
    RowShape its = shape;
    if (kParts > 1) its.threads = (shape.threads / kWarp + kParts - 1) / kParts * kWarp;
    return launch_direct<CudaTeam<float, kLanes, kChunksOf<Program, kChunks, kSpan> * kParts, kAccess, kSpan,
                                  0, kKept, kParts>>(launch, name, program_for<kAccess, kSpan>(program), its,
                                                     rows);
  };
  // Kernels that know the span. False where there is none.
  Status status;
  const auto run = [&]<Access kAccess, Span kSpan>() {
    constexpr bool kHas = Program::kShortest <= kSpan && kSpan <= Program::kLongest;
    constexpr bool kStreams =
        kPartsOf<Program, kAccess, kSpan> == 1 &&
        kSpan >= (in_words(kAccess) ? Program::kStreaming.from : Program::kStreaming.anywhere);
    if constexpr (kHas && kStreams) {
      using Team = CudaTeam<float, kLanes, kChunksOf<Program, kChunks, kSpan>, kAccess, kSpan,
                            Program::kStreaming.slots, in_words(kAccess) ? Program::kept(kSpan) : 0>;
      if (launch_streams<Team>(launch, name, streaming_program_for<kAccess, kSpan>(program), shape, rows,
                               status))
        return true;
    }
    // A block's rows that one stride does not walk, and of them those in words, too; longer ones are rarer.
    constexpr bool kInstead = kAccess == Access::strided && kSpan == Span::block;
    if constexpr (kHas && (!kStreams || kInstead)) {
      status = direct.template operator()<kAccess, kSpan>();
      return true;
    }
    return false;
  };
  const auto run_known = [&]<Access kAccess>() {
    if (shape.cluster > 1) return run.template operator()<kAccess, Span::cluster>();
    if constexpr (kAccess != Access::strided)
      if (shape.threads <= kWarp) {
        constexpr Access kHow = kAccess == Access::aligned && Program::kSkips ? Access::reached : kAccess;
        return run.template operator()<kHow, Span::warp>();
      }
    if constexpr (in_words(kAccess) && kSharesBlocks<Program>)
      if (shape.teams > 1) return run.template operator()<kAccess, Span::warps>();
    return run.template operator()<kAccess, Span::block>();
  };

  if (layout == Layout::words) {
    const int chunks = shape.cluster > 1 ? Program::kClusters.chunks : kChunks;
    const int parts = shape.cluster > 1 ? 1 : kPartsOf<Program>;
    const bool full = columns == std::max(1, shape.cluster) * std::int64_t{shape.threads} * kLanes * chunks &&
                      (parts == 1 || shape.threads % (parts * kWarp) == 0);
    if constexpr (Program::kFull)
      if (full && one_stride(program.p.rows) && run_known.template operator()<Access::full>()) return status;
    if (run_known.template operator()<Access::aligned>()) return status;
  }
  if constexpr (Program::kStages)
    if (layout == Layout::neighbours &&
        launch_staged<kLanes, kChunks>(launch, name, program_for<Access::staged_2, Span::warp>(program),
                                       shape, rows, status))
      return status;
  if constexpr ((!Program::kStages || kTakesTurns<Program>)&&Program::kShortest == Span::warp)
    if (layout == Layout::neighbours && shape.threads < kWarp)
      return direct.template operator()<Access::singly, Span::warp>();
  if constexpr (Program::kStrided)
    if (layout != Layout::apart && shape.threads >= kWarp) {
      if (shape.threads == kWarp) shape.teams = 1;  // a block, as longer rows'
      if (run_known.template operator()<Access::strided>()) return status;
    }
  if constexpr (Program::kClusters.chunks != kChunks)
    if (shape.cluster > 1) return direct.template operator()<Access::apart, Span::cluster>();
  return direct.template operator()<Access::any, Span::any>();
}

}  // namespace cuda
}  // namespace rooftile::tile
