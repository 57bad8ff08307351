#pragma once
// From a problem to programs on a GPU: which team a row gets, which element type, which block runs which
// rows.
#include <utility>

#include "rooftile/backend/cuda/launch.h"
#include "rooftile/core/plugin.h"
#include "rooftile/core/rows.h"
#include "rooftile/tile/cuda/team.h"

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
/// Of a block with short rows, or of parts of rows.
inline constexpr int kFewThreads = 256;
inline constexpr int kMostCluster = 16;

/// `columns` elements, `lanes` to a thread and chunk, at most `chunks` chunks: as few threads as hold the row
/// (16 to 32 elements a thread move the most bytes), a power of two within a warp and whole warps up to
/// `held`; then blocks of a cluster, each with a part of the row. No cluster before it must be: its barriers
/// wait for all memory (softmax, f32 4096x16384, H200: a block 136 µs, two 146, four 161).
constexpr RowShape row_shape(std::int64_t columns, int lanes, int chunks, int least_threads, int held,
                             bool clusters) {
  const std::int64_t words = (columns + lanes - 1) / lanes, wanted = (words + chunks - 1) / chunks;
  const auto whole_warps = [](std::int64_t threads) { return static_cast<int>((threads + 31) / 32 * 32); };
  if (wanted <= 32) {
    // Eight neighbours read whole 128-byte lines together.
    int threads = least_threads;
    while (threads < wanted || (threads < 8 && threads < words)) threads *= 2;
    return {threads, kFewThreads / 2 / threads, 1, columns};
  }
  if (wanted <= held) return {whole_warps(wanted), 1, 1, columns};
  const std::int64_t most = std::min(kMostCluster, kMostPartials * kWarp / held);
  if (!clusters || wanted > held * most) return {kMostThreads, 1, 0, columns};
  int cluster = 2;
  while (std::int64_t{cluster} * held < wanted) cluster *= 2;
  const std::int64_t part = (words + cluster - 1) / cluster;
  return {whole_warps((part + chunks - 1) / chunks), 1, cluster, part * lanes};
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
/// Those of all operands, behind one branch.
template <int kOperands>
struct Offsets {
  std::int64_t at[kOperands];
};
template <int kOperands>
ROOFTILE_TILE Offsets<kOperands> offsets_of(const Rows<kOperands>& rows, std::int64_t row) {
  Offsets<kOperands> r;
  if (rows.rank <= 1) {
    ROOFTILE_UNROLL for (int o = 0; o < kOperands; ++o) r.at[o] = row * rows.stride[o][0];
  } else {
    ROOFTILE_UNROLL for (int o = 0; o < kOperands; ++o) r.at[o] = far_offset(rows, o, row);
  }
  return r;
}

/// Where a program's part of a row lies.
struct PartOfRow {
  std::int64_t row, first, size;
};
/// Part of an operand, whose row begins `offset` elements from its start; without data where it is absent.
/// `alone`: its neighbours' memory may be written meanwhile (the output is the input); else what surrounds a
/// row of a dense tensor may be read with it.
template <class T, int kOperands>
ROOFTILE_TILE Row<T> part_at(const Rows<kOperands>& rows, int operand, const void* data, std::int64_t offset,
                             const PartOfRow& part, bool alone = false) {
  if (!data) return {nullptr, part.size};
  const std::int64_t stride = rows.column_stride[operand];
  auto* first = static_cast<T*>(const_cast<void*>(data));
  Row<T> r{first + offset + part.first * stride, part.size, stride};
  r.elsewhere = rows.columns - part.size;
  if (!alone && stride == 1 && rows.rank <= 1 &&
      (rows.rank == 0 || rows.stride[operand][0] == rows.columns)) {
    r.begin = first;
    r.end = first + rows.rows * rows.columns;
  }
  return r;
}
/// This thread's team among those of its block.
ROOFTILE_TILE
int team_in_block(const RowShape& shape) {
  return shape.teams == 1 ? 0 : static_cast<int>(threadIdx.x) >> (31 - __clz(shape.threads));
}

/// Each team of the grid takes one row after the other. Those that meet at barriers are a block each, or a
/// cluster, and shuffles do not wait for threads of other teams that have none left.
template <int kBlock, int kLeastBlocks, class Team, class Program>
__global__ void __launch_bounds__(kBlock, kLeastBlocks)
    run_rows(const __grid_constant__ Program program, std::int64_t rows,
             const __grid_constant__ RowShape shape) {
  int turn = 0;
  const Team team(shape.threads, turn, shape.cluster);
  std::int64_t block = blockIdx.x, blocks = gridDim.x;
  PartOfRow part{0, 0, program.columns()};
#if defined(ROOFTILE_HAS_SM90)
  if (shape.cluster > 1) {
    block = blockIdx.x / static_cast<unsigned>(shape.cluster);
    blocks = gridDim.x / static_cast<unsigned>(shape.cluster);
    part.first = shape.part * (blockIdx.x % static_cast<unsigned>(shape.cluster));
    part.size = part.size - part.first < shape.part ? part.size - part.first : shape.part;
    rooftile::cuda::cluster_sync();  // all are there before anyone writes to another's shared memory
  }
#endif
  const int mine = team_in_block(shape);
  for (part.row = block * shape.teams + mine; part.row < rows; part.row += blocks * shape.teams)
    program(team, part);
}

inline constexpr std::int64_t kMostBlocks = (std::int64_t{1} << 31) - 1;

/// Runs program(team, part) for each row, `kLanes` elements to a thread and chunk. A program says
///   kHeldThreads  of the longest block that holds a row: with 1024 a thread has 64 registers, with 512 it
///   has
///                 128
///   kLeastBlocks  such blocks that a multiprocessor must be able to have; 0: as the compiler likes
///   kRereads      whether rows may be longer than a cluster holds
///   kRare         whether few kernels are enough: not the fastest one for each way that rows lie
template <int kLanes, int kChunks, class Program, int kLeastThreads = 1>
Status for_rows(const CudaLaunch& launch, const char* name, std::int64_t rows, Layout layout,
                const Program& program) {
  if (rows <= 0) return {};
  const std::int64_t columns = program.columns();
  const RowShape shape =
      row_shape(columns, kLanes, kChunks, kLeastThreads, Program::kHeldThreads, has_clusters(launch));
  const int cluster = std::max(1, shape.cluster);
  const std::int64_t blocks = std::min((rows + shape.teams - 1) / shape.teams, kMostBlocks / cluster);
  const rooftile::cuda::Grid grid{static_cast<unsigned>(blocks * cluster),
                                  static_cast<unsigned>(shape.threads * shape.teams), 0,
                                  static_cast<unsigned>(cluster)};
  const auto run = [&]<int kBlock, int kLeastBlocks, class Team>() {
    return rooftile::cuda::launch(launch, name, grid, run_rows<kBlock, kLeastBlocks, Team, Program>, program,
                                  rows, shape);
  };
  const auto held = [&]<Access kAccess>() {
    return run.template
    operator()<Program::kHeldThreads, Program::kLeastBlocks, CudaTeam<float, kLanes, kChunks, kAccess>>();
  };
  if constexpr (Program::kRereads)
    if (shape.cluster == 0)
      return run.template operator()<kMostThreads, 1, CudaTeam<float, kLanes, 0, Access::any>>();
  if constexpr (!Program::kRare) {
    if (layout == Layout::words && columns == std::int64_t{cluster} * shape.threads * kLanes * kChunks)
      return held.template operator()<Access::full>();
    if (layout == Layout::neighbours && shape.threads >= kWarp)
      return held.template operator()<Access::strided>();
  }
  if (layout == Layout::words) return held.template operator()<Access::aligned>();
  return held.template operator()<Access::any>();
}

}  // namespace cuda
}  // namespace rooftile::tile
