#pragma once
// From a problem to programs on a GPU: which team a row gets, which element type, which block runs which
// rows.
#include <utility>

#include "rooftile/backend/cuda/launch.h"
#include "rooftile/core/plugin.h"
#include "rooftile/core/rows.h"
#include "rooftile/tile/cuda/stage.h"

namespace rooftile::tile {
inline namespace cuda {

/// Whether blocks can work on a row together. This build then has code for compute capability 9.0; other GPUs
/// from 8.0 on run that for 8.0.
#if defined(ROOFTILE_EMULATED)
inline constexpr bool kBuiltForSm90 = true;
#elif defined(__CUDA_ARCH_LIST__)
inline constexpr bool kBuiltForSm90 = [] {
  for (int architecture : {__CUDA_ARCH_LIST__})
    if (architecture == 900) return true;
  return false;
}();
#else
inline constexpr bool kBuiltForSm90 = false;
#endif
inline bool has_clusters(const CudaLaunch& launch) { return kBuiltForSm90 && launch.architecture == 90; }

/// How many threads a row gets. It follows from the row's length and the architecture alone: bits depend on
/// it.
struct RowShape {
  int threads;        ///< of a team, in one block
  int teams;          ///< of a block
  int cluster;        ///< blocks of a team; 0: the row is too long to hold, and read again
  std::int64_t part;  ///< elements of a row in a block
};

/// Of a block that reads rows again; its threads have 64 registers.
inline constexpr int kMostThreads = 1024;
/// Of a block with parts of rows, or small matrices.
inline constexpr int kFewThreads = 256;
/// Of a launch.
inline constexpr std::int64_t kMostBlocks = (std::int64_t{1} << 31) - 1;

/// How a program cuts rows among the blocks of a cluster.
struct Clusters {
  int alone;    ///< threads of a row that one block takes, on GPUs that have clusters
  int pair;     ///< of a block of two
  int threads;  ///< and of more
  int chunks;   ///< of such a thread at most
};

/// Which of a program's rows come to shared memory while the row before is computed, where all are whole
/// aligned words.
struct Streaming {
  Span from = Span::any;  ///< of the shortest teams that do, if they can; any: none
  int slots = 0;          ///< operands that do
  int resident = 0;       ///< threads that a multiprocessor runs at once
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
/// with a part of the row. `stages`: rows that begin anywhere come from shared memory.
constexpr RowShape row_shape(std::int64_t columns, int lanes, int chunks, int held, int least, bool stages,
                             const Clusters* clusters) {
  const std::int64_t words = (columns + lanes - 1) / lanes, wanted = (words + chunks - 1) / chunks;
  const auto whole_warps = [](std::int64_t threads) { return static_cast<int>((threads + 31) / 32 * 32); };
  if (wanted <= 32) {
    // Neighbours read lines of memory together, but every thread takes part in its row's reductions and has
    // fewer elements to show for it. In shared memory, where rows are that cannot be aligned since they are
    // no whole words, as few as hold a row are best.
    if (stages && columns % lanes != 0) least = 1;
    int threads = 1;
    while (threads < wanted || (threads < least && threads < words)) threads *= 2;
    return {threads, kWarpsThreads / threads, 1, columns};
  }
  if (wanted <= (clusters ? clusters->alone : held)) return {whole_warps(wanted), 1, 1, columns};
  if (clusters) {
    const std::int64_t needed = (words + clusters->chunks - 1) / clusters->chunks;
    const std::int64_t most = std::min(kMostCluster, kMostPartials * kWarp / clusters->threads);
    int cluster = 2;
    while (std::int64_t{cluster} * (cluster == 2 ? clusters->pair : clusters->threads) < needed) cluster *= 2;
    if (cluster <= most) {
      const std::int64_t part = (words + cluster - 1) / cluster;
      return {whole_warps((part + clusters->chunks - 1) / clusters->chunks), 1, cluster, part * lanes};
    }
  }
  return {kMostThreads, 1, 0, columns};
}

/// Calls f with the C++ type of `dtype`, one of `T...`; validation refused all others.
template <class... T, class F>
Status with_type(DType dtype, F&& f) {
  Status status = Status::error("rooftile: this dtype has no kernel");
  (void)((dtype == dtype_of<T> ? (status = f.template operator()<T>(), true) : false) || ...);
  return status;
}

/// Whether every row of an operand begins and ends at a 16-byte boundary, its elements side by side.
template <int kOperands>
bool aligned_rows(const Rows<kOperands>& rows, int operand, const void* data, int element_bytes) {
  if (rows.columns > 1 && rows.column_stride[operand] != 1) return false;
  const auto whole = [&](std::int64_t elements) { return elements * element_bytes % 16 == 0; };
  if (reinterpret_cast<std::uintptr_t>(data) % 16 != 0 || !whole(rows.columns)) return false;
  for (int d = 0; d < rows.rank; ++d)
    if (!whole(rows.stride[operand][d])) return false;
  return true;
}

/// An operand with rows. `follows`: of an output the input that it may follow in its place, since a thread
/// holds its elements of that when it writes its own.
struct StagedRows {
  const void* data;
  int follows = -1;
};
/// The places of operands 0, 1, … in shared memory, those without data left out; none where rows of one do
/// not follow one upon the other.
template <int kOperands>
Places touching_places(const Rows<kOperands>& rows, std::initializer_list<StagedRows> operands) {
  Places places;
  for (int o = 0; o < static_cast<int>(operands.size()); ++o) {
    const auto [data, follows] = operands.begin()[o];
    if (!data) continue;
    if (rows.rank > 1 || (rows.rank == 1 && rows.stride[o][0] != rows.columns)) return {};
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    const void* input = follows >= 0 ? operands.begin()[follows].data : nullptr;
    const bool same = input && (begin - reinterpret_cast<std::uintptr_t>(input)) % 16 == 0;
    places.set(o, same ? places[follows] : places.rows++);
    places.begins |= begin;
  }
  return places;
}

/// How rows lie: in whole 16-byte words, side by side, or apart. Of several operands the last one counts.
enum class Layout : std::uint8_t { words, neighbours, apart };
template <int kOperands>
Layout layout_of(const Rows<kOperands>& rows, int operand, const void* data, int element_bytes) {
  if (aligned_rows(rows, operand, data, element_bytes)) return Layout::words;
  return rows.columns <= 1 || rows.column_stride[operand] == 1 ? Layout::neighbours : Layout::apart;
}

/// Elements from an operand's start to a row's. Outer dimensions that one stride cannot walk are rare, and
/// their divisions long: kept apart, they cost the others nothing.
template <int kOperands>
__device__ __noinline__ std::int64_t far_offset(const Rows<kOperands>& rows, int operand, std::int64_t row) {
  return rows.offset(operand, row);
}
template <int kOperands>
ROOFTILE_TILE std::int64_t offset_of(const Rows<kOperands>& rows, int operand, std::int64_t row) {
  return rows.rank <= 1 ? row * rows.stride[operand][0] : far_offset(rows, operand, row);
}
/// Whether one stride walks all rows, and a number of 32 bits tells which;
template <int kOperands>
bool one_stride(const Rows<kOperands>& rows) {
  return rows.rank <= 1 && rows.rows < kMostBlocks;
}
/// and what relies on it: offsets are fewer instructions.
template <class Team>
inline constexpr bool kOneStride = Team::kStreams || Team::kStaged || Team::kReads == Access::full;
template <class Team, int kOperands>
ROOFTILE_TILE std::int64_t offset_for(const Rows<kOperands>& rows, int operand, std::int64_t row) {
  if constexpr (kOneStride<Team>)
    return static_cast<unsigned>(row) * rows.stride[operand][0];
  else
    return offset_of(rows, operand, row);
}
/// The rows of a team, `step` from one to the next, and the part of each that its block has.
struct Walk {
  std::int64_t row, step, count, first, size;
  Stage stage{};  // with the block's rows from `staged` on
  std::int64_t staged = 0;
};

/// Row i of a walk, or a block's part of it; without data where an optional operand is absent. `alone`: its
/// neighbours' memory may be written meanwhile (the output is the input); else what surrounds a row of a
/// dense tensor may be read with it.
template <class T, class Team, int kOperands>
ROOFTILE_TILE Row<T> row_of(const Rows<kOperands>& rows, int operand, const void* data, const Walk& walk,
                            std::int64_t i, bool alone = false, bool optional = false) {
#if defined(ROOFTILE_EMULATED)
  optional = true;  // of an empty tensor any may be; C++ adds nothing to null, a GPU does
#endif
  if (optional && !data) return {nullptr, walk.size};
  auto* first = static_cast<T*>(const_cast<void*>(data));
  const std::int64_t row = walk.row + i * walk.step;
  if constexpr (Team::kStreams) {
    Row<T> r{first + offset_for<Team>(rows, operand, row) + walk.first, walk.size};
    r.elsewhere = rows.columns - walk.size;
    r.ahead = i + 1 < walk.count ? offset_for<Team>(rows, operand, walk.step) : 0;
    return r;
  } else if constexpr (Team::kStaged) {
    const int number = static_cast<int>(row - walk.staged);
    return {walk.stage.at(operand, first + walk.staged * walk.size) + number * static_cast<int>(walk.size),
            walk.size};
  } else {
    const std::int64_t stride = rows.column_stride[operand];
    Row<T> r{first + offset_for<Team>(rows, operand, row) + walk.first * stride, walk.size, stride};
    r.elsewhere = rows.columns - walk.size;
    if (!alone && stride == 1 && rows.rank <= 1 &&
        (rows.rank == 0 || rows.stride[operand][0] == rows.columns)) {
      r.begin = first;
      r.end = first + rows.rows * rows.columns;
    }
    return r;
  }
}
/// This thread's team among those of its block.
ROOFTILE_TILE
int team_in_block(const RowShape& shape) {
  return shape.teams == 1 ? 0 : static_cast<int>(threadIdx.x) >> (31 - __clz(shape.threads));
}

/// Which rows teams take.
struct RowsEach {
  std::int64_t rows;     ///< of teams with one row each, how many there are; else rows of an early team
  std::int64_t all = 0;  ///< rows that stream
  int early = 0;         ///< teams whose rows lie so far apart
  int late = 0;          ///< rows of each later team, neighbours behind theirs
};

/// A team for each row; or, where rows stream, for one after the other. Those that meet at barriers are a
/// block each, or a cluster, and shuffles do not wait for threads of other teams that have none left.
template <int kBlock, int kLeastBlocks, class Team, class Program>
__global__ void __launch_bounds__(kBlock, kLeastBlocks)
    run_rows(const __grid_constant__ Program program, const __grid_constant__ RowShape shape,
             const __grid_constant__ RowsEach each) {
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
  if constexpr (Team::kSpan == Span::warp || Team::kSpan == Span::any)
    walk.row = std::int64_t{block} * shape.teams + team_in_block(shape);
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

/// The same for rows that are staged: a block takes `each.rows` rows for each of its teams, all of them
/// neighbours. In the last block some of them are not the tensor's: all teams of a warp must come to its
/// shuffles, and a warp without a row goes on.
template <class Team, class Program>
__global__ void __launch_bounds__(kWarpsThreads, Program::least_blocks(Span::warp))
    run_staged(const __grid_constant__ Program program, const __grid_constant__ RowShape shape,
               const __grid_constant__ RowsEach each, const __grid_constant__ Places places) {
  ROOFTILE_DYNAMIC_SHARED(all);
  Turns turns;
  const Team team(shape.threads, turns);
  const std::int64_t columns = program.p.rows.columns, rows = each.rows * shape.teams;
  const std::int64_t begin = blockIdx.x * rows, rest = program.p.rows.rows - begin;
  const int size = static_cast<int>(columns), room = static_cast<int>(rows * columns);
  const int elements = rest < rows ? static_cast<int>(rest * columns) : room;
  Walk walk{begin + team_in_block(shape), shape.teams, each.rows, 0, columns, {all, places}, begin};
  if (rest < rows) {
    const int before = team_in_block(shape) & ~(kWarp / shape.threads - 1);  // the first team of its warp
    walk.count = rest <= before ? 0 : (rest - before + shape.teams - 1) / shape.teams;
  }
  const auto none = [](int, const auto*) {};
  program.each_staged(
      [&](int operand, const auto* data, bool output) {
        if (data && !output) stage_in(walk.stage, operand, data + begin * columns, elements, room);
      },
      [&](int operand, const auto* data) {
        if (data) stage_vector(walk.stage, operand, data, size);
      });
  finish_stage();
  if (walk.count > 0) program(team, walk);
  __syncthreads();
  program.each_staged(
      [&](int operand, const auto* data, bool output) {
        using T = std::remove_const_t<std::remove_pointer_t<decltype(data)>>;
        if (data && output) stage_out(walk.stage, operand, const_cast<T*>(data) + begin * columns, elements);
      },
      none);
}

/// Dynamic shared memory that a block may have beside the team's own, and all blocks of a multiprocessor
/// together (CUDA C++ Programming Guide, "Compute Capabilities").
struct SharedLimits {
  static constexpr std::int64_t kOther = 6 * 1024;  // of the team and the system
  std::int64_t block, multiprocessor;
};
constexpr SharedLimits shared_limits(int architecture) {
  const bool large = architecture == 80 || architecture == 87 || (architecture >= 90 && architecture < 120);
  const std::int64_t all = std::int64_t{!large ? 100 : architecture < 90 ? 164 : 228} * 1024;
  return {all - SharedLimits::kOther, all};
}

/// The threads of a program's longest block with such teams, and how many a multiprocessor must have.
template <class Team, class Program>
inline constexpr int kBlockOf =
    Team::kSpan == Span::warp      ? kWarpsThreads
    : !Team::kHoldsRows            ? kMostThreads
    : Team::kSpan == Span::cluster ? std::max(Program::kClusters.pair, Program::kClusters.threads)
                                   : Program::kHeldThreads;
/// The chunks of a thread.
template <class Program, int kChunks, Span kSpan>
inline constexpr int kChunksOf = kSpan == Span::cluster ? Program::kClusters.chunks : kChunks;
template <class Team, class Program>
inline constexpr int kLeastOf = Team::kHoldsRows ? Program::least_blocks(Team::kSpan) : 1;
/// Dynamic shared memory of a block of so many threads.
template <class Team>
constexpr std::int64_t shared_bytes(int threads) {
  return (threads + kWarp - 1) / kWarp * kWarp * std::int64_t{Team::kSharedBytes};
}

/// Runs a program with so many clusters (of one block, as a rule).
template <class Team, class Program>
Status launch_rows(const CudaLaunch& launch, const char* name, const Program& program, const RowShape& shape,
                   std::int64_t clusters, const RowsEach& each) {
  const int cluster = std::max(1, shape.cluster), threads = shape.threads * shape.teams;
  if (clusters > kMostBlocks / cluster)
    return Status::error("%s: %lld rows of %lld elements take more blocks than the %lld of a launch", name,
                         static_cast<long long>(program.p.rows.rows),
                         static_cast<long long>(program.p.rows.columns), static_cast<long long>(kMostBlocks));
  const rooftile::cuda::Grid grid{static_cast<unsigned>(clusters * cluster), static_cast<unsigned>(threads),
                                  static_cast<std::size_t>(shared_bytes<Team>(threads)),
                                  static_cast<unsigned>(cluster)};
  constexpr auto kKernel = run_rows<kBlockOf<Team, Program>, kLeastOf<Team, Program>, Team, Program>;
  return rooftile::cuda::launch(launch, name, grid, kKernel, program, shape, each);
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
  const std::int64_t shared = shared_bytes<Team>(threads);
  if (shared > limits.block || !one_stride(program.p.rows) || rows > kMostBlocks / cluster) return false;
  const std::int64_t resident = std::max<std::int64_t>(
      1, std::min<std::int64_t>(Program::kStreaming.resident / threads,
                                limits.multiprocessor / (shared + SharedLimits::kOther)));
  const std::int64_t at_once = std::max<std::int64_t>(1, launch.multiprocessors * resident / cluster);
  const Late late = Program::late(shape);
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

/// Rows that are staged. False where they cannot be. Four operands and two vectors take 70 KiB at most, which
/// blocks of every GPU may have.
template <int kLanes, int kChunks, class Program>
bool launch_staged(const CudaLaunch& launch, const char* name, const Program& program, const RowShape& shape,
                   std::int64_t rows, Status& status) {
  Places places = program.places();
  if (program.p.rows.columns == 0 || shape.threads >= kWarp || places.rows == 0 ||
      !one_stride(program.p.rows))
    return false;
  constexpr std::int64_t kPlaceBytes = 16 * 1024;
  const std::int64_t columns = program.p.rows.columns, pass = columns * shape.teams * (16 / kLanes);
  const std::int64_t each = std::clamp<std::int64_t>(kPlaceBytes / pass, 1, 8);
  const std::int64_t blocks = (rows + each * shape.teams - 1) / (each * shape.teams);
  places.row_bytes = static_cast<int>((each * pass + 15) / 16 * 16 + 16);
  places.vector_bytes = static_cast<int>(vector_elements(columns)) * 4;  // of f32 at most
  const rooftile::cuda::Grid grid{static_cast<unsigned>(blocks),
                                  static_cast<unsigned>(shape.threads * shape.teams),
                                  static_cast<std::size_t>(places.bytes())};
  const auto run = [&]<Access kAccess>() {
    using Team = CudaTeam<float, kLanes, kChunks, kAccess, Span::warp>;
    status = rooftile::cuda::launch(launch, name, grid, run_staged<Team, Program>, program, shape,
                                    RowsEach{each}, places);
    return true;
  };
  constexpr Access kSmallest = kLanes == 8 ? Access::staged_2 : Access::staged_4;
  const std::uint64_t pieces = places.begins | static_cast<std::uint64_t>(columns) * (16 / kLanes);
  if constexpr (!Program::kRare) {
    if (pieces % 8 == 0) return run.template operator()<Access::staged_8>();
    if (pieces % 4 == 0) return run.template operator()<Access::staged_4>();
  }
  return run.template operator()<kSmallest>();
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
///                 not follow one upon the other. each_staged() tells which they are
///   kShortest,    spans of its rows' teams; Span::any: a row may be longer than a cluster holds, and is
///   kLongest      read again
///   kRare         whether few kernels are enough: not the fastest one for each way that rows lie
/// and may have
///   reread()      the program that reads rows again, if not itself
template <int kLanes, int kChunks, class Program>
Status for_rows(const CudaLaunch& launch, const char* name, std::int64_t rows, Layout layout,
                const Program& program) {
  static_assert(Program::kStreaming.from == Span::any || Program::kStreaming.resident > 0);
  if (rows <= 0) return {};
  const std::int64_t columns = program.p.rows.columns;
  static constexpr Clusters kClusters = Program::kClusters;
  RowShape shape = row_shape(columns, kLanes, kChunks, Program::kHeldThreads, Program::least_threads(columns),
                             Program::kStages, has_clusters(launch) ? &kClusters : nullptr);
  if constexpr (Program::kLongest == Span::any)
    if (shape.cluster == 0) {
      using Team = CudaTeam<float, kLanes, 0, Access::any>;
      if constexpr (requires { program.reread(); })
        return launch_direct<Team>(launch, name, program.reread(), shape, rows);
      else
        return launch_direct<Team>(launch, name, program, shape, rows);
    }
  const auto direct = [&]<Access kAccess, Span kSpan>() {
    constexpr int kKept = in_words(kAccess) ? Program::kept(kSpan) : 0;
    return launch_direct<
        CudaTeam<float, kLanes, kChunksOf<Program, kChunks, kSpan>, kAccess, kSpan, 0, kKept>>(
        launch, name, program, shape, rows);
  };
  // Kernels that know the span. False where there is none: words that must stream, and cannot.
  Status status;
  const auto run = [&]<Access kAccess, Span kSpan>() {
    constexpr bool kHas = Program::kShortest <= kSpan && kSpan <= Program::kLongest;
    if constexpr (kHas && in_words(kAccess) && kSpan >= Program::kStreaming.from) {
      using Team = CudaTeam<float, kLanes, kChunksOf<Program, kChunks, kSpan>, kAccess, kSpan,
                            Program::kStreaming.slots, Program::kept(kSpan)>;
      if (launch_streams<Team>(launch, name, program, shape, rows, status)) return true;
    }
    if constexpr (kHas && !(in_words(kAccess) && kSpan >= Program::kStreaming.from)) {
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
    return run.template operator()<kAccess, Span::block>();
  };

  if (layout == Layout::words) {
    const int chunks = shape.cluster > 1 ? Program::kClusters.chunks : kChunks;
    const bool full = columns == std::max(1, shape.cluster) * std::int64_t{shape.threads} * kLanes * chunks;
    if constexpr (!Program::kRare)
      if (full && one_stride(program.p.rows) && run_known.template operator()<Access::full>()) return status;
    if (run_known.template operator()<Access::aligned>()) return status;
  }
  if constexpr (Program::kStages)
    if (layout == Layout::neighbours &&
        launch_staged<kLanes, kChunks>(launch, name, program, shape, rows, status))
      return status;
  if constexpr (!Program::kStages && Program::kShortest == Span::warp)
    if (layout == Layout::neighbours && shape.threads < kWarp)
      return direct.template operator()<Access::singly, Span::warp>();
  if constexpr (!Program::kRare)
    if (layout != Layout::apart && shape.threads >= kWarp) {
      if (shape.threads == kWarp) shape.teams = 1;  // a block, as longer rows'
      if (run_known.template operator()<Access::strided>()) return status;
    }
  if constexpr (Program::kClusters.chunks != kChunks)
    if (shape.cluster > 1) return direct.template operator()<Access::any, Span::cluster>();
  return direct.template operator()<Access::any, Span::any>();
}

}  // namespace cuda
}  // namespace rooftile::tile
