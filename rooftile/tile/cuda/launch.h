#pragma once
// From a problem to programs on a GPU: which kernel runs it, and with which blocks.
#include "rooftile/tile/cuda/row_range.h"
#include "rooftile/tile/cuda/run_staged.h"

namespace rooftile::tile {
inline namespace cuda {

/// A team for each row; or, where rows stream, for one after the other. Those that synchronise are a
/// block each, or a cluster, and shuffles do not wait for threads of other teams that have none left.
template <int kBlock, int kMinBlocks, class Team, class Program>
__global__ void __launch_bounds__(kBlock, kMinBlocks)
    run_rows(const __grid_constant__ Program program, const __grid_constant__ RowShape shape,
             const __grid_constant__ RowsEach each) {
#if !defined(ROOFTILE_HAS_SM90)
  // Never launched without clusters; it would be a quarter of layer_norm's machine code.
  if constexpr (Team::kScope != Scope::cluster)
#endif
  {
    Rounds rounds;
    const Team team(shape.threads, rounds, shape.cluster);
    unsigned block = blockIdx.x;
    RowRange range{0, 0, 1, 0, program.p.rows.columns};
#if defined(ROOFTILE_HAS_SM90)
    if (Team::kScope == Scope::cluster || (Team::kScope == Scope::any && shape.cluster > 1)) {
      const auto cluster = static_cast<unsigned>(shape.cluster);
      range.first = shape.part * (block % cluster);
      range.size = range.size - range.first < shape.part ? range.size - range.first : shape.part;
      block /= cluster;
    }
#endif
    range.row = block;
    if constexpr (Team::kScope == Scope::warp || Team::kScope == Scope::any || Team::kSharesBlock)
      range.row = std::int64_t{block} * shape.teams + team_in_block<Team::kSharesBlock>(shape);
    if constexpr (Team::kStreams) {
      if (range.row < each.early) {
        range.step = each.early;
        range.count = each.rows;
      } else {
        range.row = each.early * each.rows + (range.row - each.early) * each.late;
        range.step = 1;
        const std::int64_t rest = each.all - range.row;
        range.count = rest < each.late ? rest : each.late;
      }
      if (range.count > 0) program(team, range);
    } else {
      if (range.row < each.rows) program(team, range);
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
/// The threads of a program's longest block with such teams, and how many a multiprocessor must have.
template <class Team, class Program>
inline constexpr int kBlockOf =
    Team::kScope == Scope::warp      ? kWarpsThreads
    : !Team::kHoldsRows              ? kMaxThreads
    : Team::kScope == Scope::cluster ? std::max(Program::kClusters.pair, Program::kClusters.threads)
                                     : Program::kHeldThreads;
/// The chunks of a thread.
template <class Program, int kChunks, Scope kScope>
inline constexpr int kChunksOf = kScope == Scope::cluster ? Program::kClusters.chunks : kChunks;
template <class Team, class Program>
inline constexpr int kMinBlocksOf = Team::kHoldsRows ? Program::least_blocks(Team::kScope) : 1;
/// Dynamic shared memory of a block of so many threads.
template <class Team>
constexpr std::int64_t shared_bytes(int threads) {
  return (threads + kWarp - 1) / kWarp * std::int64_t{Team::Ring::kWarpBytes};
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
inline constexpr auto kRunRows =
    run_rows<kBlockOf<Team, Program>, kMinBlocksOf<Team, Program>, Team, Program>;
template <class Team, class Program>
Status launch_rows(const CudaLaunch& launch, const char* name, const Program& program, const RowShape& shape,
                   std::int64_t clusters, const RowsEach& each) {
  if (clusters > kMaxBlocks / std::max(1, shape.cluster))
    return Status::error("%s: %lld rows of %lld elements take more blocks than the %lld of a launch", name,
                         static_cast<long long>(program.p.rows.rows),
                         static_cast<long long>(program.p.rows.columns), static_cast<long long>(kMaxBlocks));
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
  if (shared > limits.block || !one_stride(program.p.rows) || rows > kMaxBlocks / cluster) return false;
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
template <Access kAccess, Scope kScope, class Program>
auto program_for(const Program& program) {
  if constexpr (requires { program.template serving<kAccess, kScope>(); })
    return program.template serving<kAccess, kScope>();
  else
    return program;
}
template <Access kAccess, Scope kScope, class Program>
auto streaming_program_for(const Program& program) {
  if constexpr (requires { program.template streaming<kAccess, kScope>(); })
    return program.template streaming<kAccess, kScope>();
  else
    return program;
}

/// Runs program(team, range) for `rows` rows, `kLanes` elements to a thread and chunk. A program says
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
///   shared_layout()  the places of operands where short rows are staged; none where rows do not follow one
///                 upon the other. each_staged() tells which they are, and what a vector holds that has no
///                 data: its place it has all the same
///   full()        (scope) whether rows that fill their team have a kernel of their own
/// and may have
///   serving<Access, Scope>()  the program that has the kernel for teams that do not stream, if not itself;
///   streaming<Access, Scope>()  for those that do
///   Staged<Team>  for staged rows, if it gathers of many: run_staged_pipeline; and
///   teams         which then are in a block and gather together, of whole warps, too
template <int kLanes, int kChunks, class Program>
Status for_rows(const CudaLaunch& launch, const char* name, std::int64_t rows, RowAlignment alignment,
                const Program& program) {
  static_assert(Program::kStreaming.from == Scope::any || Program::kStreaming.resident > 0);
  if (rows <= 0) return {};
  const std::int64_t columns = program.p.rows.columns;
  static constexpr Clusters kClusters = Program::kClusters;
  RowShape shape = row_shape(columns, kLanes, kChunks, Program::kHeldThreads, Program::least_threads(columns),
                             true, has_clusters(launch) ? &kClusters : nullptr);
  if constexpr (kSharesBlocks<Program>)
    if (alignment == RowAlignment::vectorized && shape.threads > kWarp) shape.teams = program.teams;
  if (shape.cluster == 0)
    return launch_direct<CudaTeam<float, kLanes, 0, Access::any>>(
        launch, name, program_for<Access::any, Scope::any>(program), shape, rows);
  const auto direct = [&]<Access kAccess, Scope kScope>() {
    constexpr int kKept = in_words(kAccess) ? Program::kept(kScope) : 0;
    return launch_direct<
        CudaTeam<float, kLanes, kChunksOf<Program, kChunks, kScope>, kAccess, kScope, 0, kKept>>(
        launch, name, program_for<kAccess, kScope>(program), shape, rows);
  };
  // Kernels that know the span. False where there is none.
  Status status;
  const auto run_team = [&]<Access kAccess, Scope kScope>() {
    constexpr bool kStreams =
        kScope >= (in_words(kAccess) ? Program::kStreaming.from : Program::kStreaming.anywhere);
    if constexpr (kStreams) {
      using Team = CudaTeam<float, kLanes, kChunksOf<Program, kChunks, kScope>, kAccess, kScope,
                            Program::kStreaming.stages, in_words(kAccess) ? Program::kept(kScope) : 0>;
      if (launch_streams<Team>(launch, name, streaming_program_for<kAccess, kScope>(program), shape, rows,
                               status))
        return true;
    }
    // A block's rows that one stride does not cover, and of them those in words, too; longer ones are rarer.
    constexpr bool kInstead = kAccess == Access::interleaved && kScope == Scope::block;
    if constexpr (!kStreams || kInstead) {
      status = direct.template operator()<kAccess, kScope>();
      return true;
    }
    return false;
  };
  const auto run_known = [&]<Access kAccess>() {
    const auto run = [&]<Scope kScope>() {
      if constexpr (kAccess != Access::full || Program::full(kScope))
        return run_team.template operator()<kAccess, kScope>();
      return false;
    };
    if (shape.cluster > 1) return run.template operator()<Scope::cluster>();
    if constexpr (kAccess != Access::interleaved)
      if (shape.threads <= kWarp) return run.template operator()<Scope::warp>();
    if constexpr (in_words(kAccess) && kSharesBlocks<Program>)
      if (shape.teams > 1) return run.template operator()<Scope::warps>();
    return run.template operator()<Scope::block>();
  };

  if (alignment == RowAlignment::vectorized) {
    const int chunks = shape.cluster > 1 ? Program::kClusters.chunks : kChunks;
    const bool full = columns == std::max(1, shape.cluster) * std::int64_t{shape.threads} * kLanes * chunks;
    if constexpr (Program::full(Scope::cluster))  // and of shorter teams, if at all
      if (full && one_stride(program.p.rows) && run_known.template operator()<Access::full>()) return status;
    if (run_known.template operator()<Access::aligned>()) return status;
  }
  if (alignment == RowAlignment::contiguous &&
      launch_staged<kLanes, kChunks>(launch, name, program_for<Access::staged_2, Scope::warp>(program), shape,
                                     rows, status))
    return status;
  if constexpr (kPipelined<Program>)
    if (alignment == RowAlignment::contiguous && shape.threads < kWarp)
      return direct.template operator()<Access::singly, Scope::warp>();
  if (alignment != RowAlignment::strided && shape.threads >= kWarp) {
    if (shape.threads == kWarp) shape.teams = 1;  // a block, as longer rows'
    if (run_known.template operator()<Access::interleaved>()) return status;
  }
  if constexpr (Program::kClusters.chunks != kChunks)
    if (shape.cluster > 1) return direct.template operator()<Access::strided, Scope::cluster>();
  return direct.template operator()<Access::any, Scope::any>();
}

}  // namespace cuda
}  // namespace rooftile::tile
