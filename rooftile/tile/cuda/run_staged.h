#pragma once
// Programs over short rows that begin anywhere: a block brings its rows to shared memory as they lie, its
// teams compute there, and the block writes them back (rooftile/tile/cuda/staging.h).
#include "rooftile/tile/cuda/row_range.h"

namespace rooftile::tile {
inline namespace cuda {

/// An operand with rows. `follows`: of an output the input that it may follow in its place, since a thread
/// holds its elements of that when it writes its own.
struct StagedRows {
  const void* data;
  int follows = -1;
};
/// The places of operands 0, 1, … in shared memory, those without data left out; none where rows of one do
/// not follow one upon the other.
template <int kOperands, int n>
SharedLayout touching_layout(const Rows<kOperands>& rows, const StagedRows (&operands)[n]) {
  SharedLayout shared_layout;
  for (int o = 0; o < n; ++o) {
    const auto [data, follows] = operands[o];
    if (!data) continue;
    if (rows.rank > 1 || (rows.rank == 1 && rows.stride[o][0] != rows.columns)) return {};
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    const void* input = follows >= 0 ? operands[follows].data : nullptr;
    const bool same = input && (begin - reinterpret_cast<std::uintptr_t>(input)) % 16 == 0;
    shared_layout.set(o, same ? shared_layout[follows] : shared_layout.rows++);
    shared_layout.begins |= begin;
  }
  return shared_layout;
}

/// A range's rows from `range.staged` on, `elements` of them, to their places and back, and what every row
/// needs. By all threads of a block.
template <class Program>
ROOFTILE_TILE void stage_rows(const Program& program, const RowRange& range, int elements, int capacity) {
  program.each_staged(
      [&](int operand, const auto* data, bool output) {
        if (data && !output)
          stage_in(range.staging, operand, data + range.staged * range.size, elements, capacity);
      },
      [](int, const auto*, float) {});
}
template <class Program>
ROOFTILE_TILE void stage_vectors(const Program& program, const RowRange& range) {
  program.each_staged([](int, const auto*, bool) {},
                      [&](int operand, const auto* data, float absent) {
                        stage_vector(range.staging, operand, data, absent, static_cast<int>(range.size));
                      });
}
template <class Program>
ROOFTILE_TILE void write_rows(const Program& program, const RowRange& range, int elements) {
  program.each_staged(
      [&](int operand, const auto* data, bool output) {
        using T = std::remove_const_t<std::remove_pointer_t<decltype(data)>>;
        if (data && output)
          stage_out(range.staging, operand, const_cast<T*>(data) + range.staged * range.size, elements);
      },
      [](int, const auto*, float) {});
}

/// A block takes `each.rows` rows for each of its teams, all of them neighbours. In the last block some of
/// them are not the tensor's: all teams of a warp must come to its shuffles, and a warp without a row goes
/// on.
template <class Team, class Program>
__global__ void __launch_bounds__(kWarpsThreads, Program::least_blocks(Scope::warp))
    run_staged(const __grid_constant__ Program program, const __grid_constant__ RowShape shape,
               const __grid_constant__ RowsEach each, const __grid_constant__ SharedLayout shared_layout) {
  ROOFTILE_DYNAMIC_SHARED(all);
  Rounds rounds;
  const Team team(shape.threads, rounds);
  const std::int64_t columns = program.p.rows.columns, rows = each.rows * shape.teams;
  const std::int64_t begin = blockIdx.x * rows, rest = program.p.rows.rows - begin;
  const int capacity = static_cast<int>(rows * columns);
  const int elements = rest < rows ? static_cast<int>(rest * columns) : capacity;
  RowRange range{begin + team_in_block(shape), shape.teams, each.rows, 0, columns,
                 {all, shared_layout},         begin};
  if (rest < rows) {
    const int before = team_in_block(shape) & ~(kWarp / shape.threads - 1);  // the first team of its warp
    range.count = rest <= before ? 0 : (rest - before + shape.teams - 1) / shape.teams;
  }
  stage_rows(program, range, elements, capacity);
  stage_vectors(program, range);
  finish_stage();
  if (range.count > 0) program(team, range);
  __syncthreads();
  write_rows(program, range, elements);
}

/// Whether a program does what follows.
template <class Program>
inline constexpr bool kPipelined = requires {
  typename Program::template Staged<CudaTeam<float, 4, 1, Access::staged_4, Scope::warp>>;
};
/// Of programs that gather of many rows: a block takes a row for each of its teams, and so again behind those
/// of all blocks, while the rows of two more stages arrive. Staged<Team> computes a stage's rows, and keeps
/// what they give.
inline constexpr int kPipelineStages = 3;
template <class Team, class Program>
__global__ void __launch_bounds__(kWarpsThreads, Program::least_blocks(Scope::warp))
    run_staged_pipeline(const __grid_constant__ Program program, const __grid_constant__ RowShape shape,
                        const __grid_constant__ SharedLayout shared_layout) {
  ROOFTILE_DYNAMIC_SHARED(all);
  Rounds rounds;
  const Team team(shape.threads, rounds);
  const std::int64_t columns = program.p.rows.columns, rows = program.p.rows.rows;
  const int capacity = shape.teams * static_cast<int>(columns);
  const auto begin_of = [&](int stage) {
    return (blockIdx.x + std::int64_t{stage} * gridDim.x) * shape.teams;
  };
  const auto elements = [&](std::int64_t begin) {
    return rows - begin < shape.teams ? static_cast<int>((rows - begin) * columns) : capacity;
  };
  const auto range_of = [&](int stage) {
    const std::int64_t begin = begin_of(stage);
    const Staging staging{all + stage % kPipelineStages * shared_layout.rows * shared_layout.row_bytes,
                          shared_layout};
    return RowRange{begin + team_in_block(shape), 0, 1, 0, columns, staging, begin};
  };
  const auto ask = [&](int stage) {
    const RowRange range = range_of(stage);
    if (range.staged < rows) stage_rows(program, range, elements(range.staged), capacity);
    rooftile::cuda::cp_async_commit();
  };
  const RowRange first = range_of(0),
                 last = range_of(kPipelineStages - 1);  // behind the last stage are the vectors
  stage_vectors(program, last);
  rooftile::cuda::cp_async_commit();
  ROOFTILE_UNROLL for (int stage = 0; stage + 1 < kPipelineStages; ++stage) ask(stage);
  rooftile::cuda::cp_async_wait<kPipelineStages - 1>();
  __syncthreads();
  typename Program::template Staged<Team> work(program, team, first, last.staging, blockIdx.x);
  ROOFTILE_UNROLL_BY(1) for (int stage = 0; begin_of(stage) < rows; ++stage) {
    rooftile::cuda::cp_async_wait<kPipelineStages - 2>();
    __syncthreads();
    ask(stage + kPipelineStages - 1);
    const RowRange range = range_of(stage);
    work(range, range_of(stage + 1));
    __syncthreads();
    write_rows(program, range, elements(range.staged));
  }
  work.finish();
}

/// Rows that are staged. False where they cannot be. Four operands and two vectors take 70 KiB at most, three
/// stages of three operands with what their teams add up 81, which blocks of every GPU may have.
template <int kLanes, int kChunks, class Program>
bool launch_staged(const CudaLaunch& launch, const char* name, const Program& program, const RowShape& shape,
                   std::int64_t rows, Status& status) {
  SharedLayout shared_layout = program.shared_layout();
  if (program.p.rows.columns == 0 || shape.threads >= kWarp || shared_layout.rows == 0 ||
      !one_stride(program.p.rows))
    return false;
  // H200, µs of layer_norm with 16 KiB, with 24 or two passes, with 32: bf16 524288x100 78.0, 75.6, 78.6; f32
  // 2097152x30 143.4, 134.6, 134.8. Of more operands 16 KiB each: softmax_backward, bf16 2097152x30 97.3,
  // with 24 100.7.
  const bool one = shared_layout.rows == 1;
  const std::int64_t place_bytes = (one ? 24 : 16) * 1024, least_passes = one ? 2 : 1;
  const std::int64_t columns = program.p.rows.columns, pass = columns * shape.teams * (16 / kLanes);
  const std::int64_t each =
      kPipelined<Program> ? 1 : std::clamp<std::int64_t>(place_bytes / pass, least_passes, 8);
  const std::int64_t blocks = (rows + each * shape.teams - 1) / (each * shape.teams);
  shared_layout.row_bytes = static_cast<int>((each * pass + 15) / 16 * 16 + 16);
  shared_layout.vector_bytes = static_cast<int>(vector_elements(columns)) * 4;
  const std::int64_t more =
      kPipelined<Program> ? (kPipelineStages - 1) * shared_layout.rows * shared_layout.row_bytes : 0;
  const rooftile::cuda::Grid grid{static_cast<unsigned>(blocks),
                                  static_cast<unsigned>(shape.threads * shape.teams),
                                  static_cast<std::size_t>(shared_layout.bytes() + more)};
  const auto run = [&]<Access kAccess>() {
    using Team = CudaTeam<float, kLanes, kChunks, kAccess, Scope::warp>;
    if constexpr (kPipelined<Program>)
      status = rooftile::cuda::launch(launch, name, grid, run_staged_pipeline<Team, Program>, program, shape,
                                      shared_layout);
    else
      status = rooftile::cuda::launch(launch, name, grid, run_staged<Team, Program>, program, shape,
                                      RowsEach{each}, shared_layout);
    return true;
  };
  if constexpr (kLanes == 8) {  // bf16 524288x100: softmax 68 µs, by pieces of two bytes 88
    const std::uint64_t pieces = shared_layout.begins | static_cast<std::uint64_t>(columns) * (16 / kLanes);
    if (pieces % 8 == 0) return run.template operator()<Access::staged_8>();
    if (pieces % 4 != 0) return run.template operator()<Access::staged_2>();
  }
  return run.template operator()<Access::staged_4>();  // f32: pieces of 8 are worth nothing
}

}  // namespace cuda
}  // namespace rooftile::tile
