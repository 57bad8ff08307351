#pragma once
// Kernels that treat each element by itself, on a GPU: parts of rows on teams. No result depends on how a
// tensor is cut here.
#include "rooftile/tile/cuda/launch.h"
#include "rooftile/tile/cuda/tuning.h"

namespace rooftile::tile {
inline namespace cuda {

/// How many threads a part of a row gets: as long as all hold it.
inline constexpr int kPartThreads = lanes_tuning(2).threads;

/// Where a program's part of a row lies.
struct PartOfRow {
  std::int64_t row, first, size;
};
/// The same of a tensor that is one row of whole aligned words: no offset is left to compute.
struct PartOfWords : PartOfRow {};

/// Blocks that a multiprocessor must be able to have, if a program says; 0: as the compiler likes.
template <class Program>
constexpr int least_blocks_of() {
  if constexpr (requires { Program::kLeastBlocks; })
    return Program::kLeastBlocks;
  else
    return 0;
}
/// Each team takes one part after the other.
template <class Team, class Program>
__global__ void __launch_bounds__(kPartThreads, least_blocks_of<Program>())
    run_parts(const __grid_constant__ Program program, std::int64_t count, std::int64_t columns,
              std::int64_t length, std::int64_t parts, const __grid_constant__ RowShape shape) {
  Rounds rounds;
  const Team team(shape.threads, rounds);
  for (std::int64_t index = std::int64_t{blockIdx.x} * shape.teams + team_in_block(shape); index < count;
       index += std::int64_t{gridDim.x} * shape.teams) {
    // Of 32 bits where that is enough: a fifth of the other division's instructions.
    const std::int64_t row = parts == 1 ? index
                             : index >> 32 != 0
                                 ? index / parts
                                 : static_cast<std::uint32_t>(index) / static_cast<std::uint32_t>(parts);
    const std::int64_t first = (index - row * parts) * length;
    const std::int64_t rest = columns - first;
    program(team, PartOfRow{row, first, rest < length ? rest : length});
  }
}

/// A block for each part, one word a thread. Where a thread has that little to do, what comes before its load
/// counts: of 2^28 f32 a copy takes 503 µs on an H200; by run_parts four words take 518 and one 587.
template <class Team, class Program>
__global__ void __launch_bounds__(kPartThreads)
    run_words(const __grid_constant__ Program program, std::int64_t columns) {
  constexpr int kLength = kPartThreads * Team::kLanes;
  Rounds rounds;
  const Team team(kPartThreads, rounds);
  const std::int64_t first = std::int64_t{blockIdx.x} * kLength, rest = columns - first;
  program(team, PartOfWords{{0, first, rest < kLength ? rest : kLength}});
}

/// Runs program(team, part) over `rows` rows of `columns` elements, `kLanes` to a thread and chunk. A part is
/// what kPartThreads threads hold. `aligned`: all rows of all operands are whole 16-byte words. A program may
/// have kLeastBlocks.
template <int kLanes, int kChunks, class Real, class Program>
Status for_parts(const CudaLaunch& launch, const char* name, std::int64_t rows, std::int64_t columns,
                 bool aligned, const Program& program) {
  constexpr std::int64_t kLength = std::int64_t{kPartThreads} * kLanes * kChunks;
  if (rows <= 0 || columns <= 0) return {};
  constexpr std::int64_t kWord = std::int64_t{kPartThreads} * kLanes;
  if (aligned && rows == 1 && columns / kWord < kMaxBlocks)
    return rooftile::cuda::launch(
        launch, name, {static_cast<unsigned>((columns + kWord - 1) / kWord), kPartThreads},
        run_words<CudaTeam<Real, kLanes, 1, Access::aligned, Scope::block>, Program>, program, columns);
  const std::int64_t length = columns < kLength ? columns : kLength;
  const std::int64_t parts = (columns + length - 1) / length, count = rows * parts;
  const RowShape shape = row_shape(length, kLanes, kChunks, kPartThreads, 8, false, nullptr);
  const std::int64_t blocks = std::min((count + shape.teams - 1) / shape.teams, kMaxBlocks);
  const rooftile::cuda::Grid grid{static_cast<unsigned>(blocks),
                                  static_cast<unsigned>(shape.threads * shape.teams)};
  const auto run = [&]<Access kAccess>() {
    return rooftile::cuda::launch(launch, name, grid,
                                  run_parts<CudaTeam<Real, kLanes, kChunks, kAccess>, Program>, program,
                                  count, columns, length, parts, shape);
  };
  return aligned ? run.template operator()<Access::aligned>() : run.template operator()<Access::any>();
}

/// Part of an operand. `written`: an input that is the output, too; a thread then reads no byte beside its
/// own elements, since others write theirs meanwhile.
template <class T, int kOperands, class Part>
ROOFTILE_TILE Row<T> part_of(const Rows<kOperands>& rows, int operand, const void* data, const Part& part,
                             bool written = false) {
  T* begin = static_cast<T*>(const_cast<void*>(data));
  if constexpr (std::is_same_v<Part, PartOfWords>) {
    return {begin + part.first, part.size};
  } else {
    const std::int64_t stride = rows.column_stride[operand];
    Row<T> r{begin + offset_of(rows, operand, part.row) + part.first * stride, part.size, stride};
    if (written) r.begin = r.end = r.data;
    return r;
  }
}

}  // namespace cuda
}  // namespace rooftile::tile
