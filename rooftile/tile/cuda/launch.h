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

/// How many threads a row gets and how many rows a block. It follows from the row's length alone: bits depend
/// on it.
struct RowShape {
  int threads, teams;
  bool held;  ///< in registers; longer rows are read again
};

/// The longest block is 1024 threads, and then a thread has 64 registers: 32 elements and what their use
/// takes.
inline constexpr int kMostThreads = 1024, kFewThreads = 256;

/// `columns` elements, `lanes` to a thread and chunk, `chunks` chunks: as few threads as hold the row (16 to
/// 32 elements a thread move the most bytes), a power of two within a warp and whole warps beyond.
constexpr RowShape row_shape(std::int64_t columns, int lanes, int chunks, int least_threads = 1) {
  const std::int64_t words = (columns + lanes - 1) / lanes, wanted = (words + chunks - 1) / chunks;
  if (wanted > kMostThreads) return {kMostThreads, 1, false};
  if (wanted > 32) return {static_cast<int>((wanted + 31) / 32 * 32), 1, true};
  // Eight neighbours read whole 128-byte lines together.
  int threads = least_threads;
  while (threads < wanted || (threads < 8 && threads < words)) threads *= 2;
  return {threads, kFewThreads / 2 / threads, true};
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

/// Elements from an operand's start to a row's. Outer dimensions that one stride cannot walk are rare, and
/// their divisions long: kept apart, they cost the others nothing.
template <int kOperands>
__device__ __noinline__ std::int64_t far_offset(const Rows<kOperands>& rows, int operand, std::int64_t row) {
  return rows.offset(operand, row);
}
template <int kOperands>
ROOFTILE_TILE std::int64_t offset_of(const Rows<kOperands>& rows, int operand, std::int64_t row) {
  if (rows.rank <= 1) return rows.rank == 0 ? 0 : row * rows.stride[operand][0];
  return far_offset(rows, operand, row);
}

/// Row `row` of an input, as programs see it; without data where this team has none. `alone`: its neighbours'
/// memory may be written meanwhile (the output is the input); else what surrounds a row of a dense tensor may
/// be read with it.
template <class T, int kOperands>
ROOFTILE_TILE Row<const T> input_row(const Rows<kOperands>& rows, int operand, const void* data,
                                     std::int64_t row, bool there, bool alone) {
  if (!there) return {nullptr, rows.columns};
  const auto* first = static_cast<const T*>(data);
  Row<const T> r{first + offset_of(rows, operand, row), rows.columns, rows.column_stride[operand]};
  if (!alone && r.stride == 1 && rows.rank <= 1 &&
      (rows.rank == 0 || rows.stride[operand][0] == rows.columns)) {
    r.begin = first;
    r.end = first + rows.rows * rows.columns;
  }
  return r;
}
/// Row `row` of an output; without data where this team has none.
template <class T, int kOperands>
ROOFTILE_TILE Row<T> output_row(const Rows<kOperands>& rows, int operand, const void* data, std::int64_t row,
                                bool there) {
  if (!there) return {nullptr, rows.columns};
  return {static_cast<T*>(const_cast<void*>(data)) + offset_of(rows, operand, row), rows.columns,
          rows.column_stride[operand]};
}

/// Program::kLeastBlocks: of kFewThreads threads, that a multiprocessor must be able to hold; 0: as
/// the compiler likes, which 2 made 6% slower (softmax's backward, bf16 8192x4096, H200: 55 µs, 61).
///
/// Each team of the grid takes one row after the other; all threads of a block take as many steps, since they
/// meet at barriers. Past the last row a team's rows have no data (`there` is false).
template <int kBlock, class Team, class Program>
__global__ void __launch_bounds__(kBlock, kBlock == kFewThreads ? Program::kLeastBlocks : 0)
    run_rows(const __grid_constant__ Program program, std::int64_t rows, int threads) {
  const int teams = static_cast<int>(blockDim.x) / threads;
  const std::int64_t step = std::int64_t{gridDim.x} * teams;
  int turn = 0;
  const Team team(threads, turn);
  for (std::int64_t first = std::int64_t{blockIdx.x} * teams; first < rows; first += step) {
    const std::int64_t row = first + static_cast<int>(threadIdx.x) / threads;
    const bool there = row < rows;
    program(team, there ? row : first, there);
  }
}

inline constexpr std::int64_t kMostBlocks = (std::int64_t{1} << 31) - 1;

/// Runs program(team, row, there) for each row, `lanes` elements to a thread and chunk.
template <int kLanes, int kChunks, bool kRereads, class Real = float, int kLeastThreads = 1, class Program>
Status for_rows(const CudaLaunch& launch, const char* name, std::int64_t rows, std::int64_t columns,
                bool aligned, const Program& program) {
  if (rows <= 0) return {};
  const RowShape shape = row_shape(columns, kLanes, kChunks, kLeastThreads);
  const std::int64_t blocks = (rows + shape.teams - 1) / shape.teams;
  const rooftile::cuda::Grid grid{static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks),
                                  static_cast<unsigned>(shape.threads * shape.teams)};
  const auto run = [&]<int kBlock, class Team>() {
    return rooftile::cuda::launch(launch, name, grid, run_rows<kBlock, Team, Program>, program, rows,
                                  shape.threads);
  };
  const auto held = [&]<int kBlock>() {
    if (aligned) return run.template operator()<kBlock, CudaTeam<Real, kLanes, kChunks, true>>();
    return run.template operator()<kBlock, CudaTeam<Real, kLanes, kChunks, false>>();
  };
  if (shape.held && shape.threads <= kFewThreads) return held.template operator()<kFewThreads>();
  if constexpr (kRereads) {
    if (shape.held) return held.template operator()<kMostThreads>();
    return run.template operator()<kMostThreads, CudaTeam<Real, kLanes, 0, false>>();
  }
  return Status::error("%s: rows of %lld elements are too long for this kernel", name,
                       static_cast<long long>(columns));
}

}  // namespace cuda
}  // namespace rooftile::tile
