#pragma once
// Which block gets which rows, and how they lie; row_shape.h: which team a row gets.
#include <utility>

#include "rooftile/backend/cuda/launch.h"
#include "rooftile/core/element.h"
#include "rooftile/core/plugin.h"
#include "rooftile/core/row_problem.h"
#include "rooftile/core/rows.h"
#include "rooftile/tile/cuda/staging.h"

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

/// Whether this build has kernels of T. f16's touch the same addresses in the same order as bf16's: an
/// emulated device for tests may lack them (-DROOFTILE_EMULATED_F16=OFF), a fifth of what it takes to
/// compile.
#if defined(ROOFTILE_WITHOUT_F16)
template <class T>
inline constexpr bool kBuilt = !std::is_same_v<T, f16>;
#else
template <class T>
inline constexpr bool kBuilt = true;
#endif

/// Calls f with the C++ type of `dtype`, one of `T...`; validation refused all others.
template <class... T, class F>
Status with_type(DType dtype, F&& f) {
  Status status = Status::error("rooftile: %s has no kernel in this build", name(dtype));
  const auto run = [&]<class U>() {
    if constexpr (kBuilt<U>) status = f.template operator()<U>();
    return true;
  };
  (void)((dtype == dtype_of<T> && run.template operator()<T>()) || ...);
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

/// How rows lie: in whole 16-byte vectors, contiguous but unaligned, or strided. Of several operands the last
/// one counts.
enum class RowAlignment : std::uint8_t { vectorized, contiguous, strided };
template <int kOperands>
RowAlignment alignment_of(const Rows<kOperands>& rows, int operand, const void* data, int element_bytes) {
  if (aligned_rows(rows, operand, data, element_bytes)) return RowAlignment::vectorized;
  return rows.columns <= 1 || rows.column_stride[operand] == 1 ? RowAlignment::contiguous
                                                               : RowAlignment::strided;
}

/// The same of a vector over the columns; an absent one is no obstacle.
inline RowAlignment vector_alignment(const ColumnVector& c, std::int64_t columns) {
  if (c.data && c.stride != 1 && columns > 1) return RowAlignment::strided;
  return reinterpret_cast<std::uintptr_t>(c.data) % 16 == 0 ? RowAlignment::vectorized
                                                            : RowAlignment::contiguous;
}

/// Elements from an operand's start to a row's. Outer dimensions that one stride cannot cover are rare, and
/// their divisions long: kept apart, they cost the others nothing.
template <int kOperands>
__device__ __noinline__ std::int64_t far_offset(const Rows<kOperands>& rows, int operand, std::int64_t row) {
  return rows.offset(operand, row);
}
template <int kOperands>
ROOFTILE_TILE std::int64_t offset_of(const Rows<kOperands>& rows, int operand, std::int64_t row) {
  return rows.rank <= 1 ? row * rows.stride[operand][0] : far_offset(rows, operand, row);
}
/// Whether one stride covers all rows, and a number of 32 bits tells which;
template <int kOperands>
bool one_stride(const Rows<kOperands>& rows) {
  return rows.rank <= 1 && rows.rows < kMaxBlocks;
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
struct RowRange {
  std::int64_t row, step, count, first, size;
  Staging staging{};  // with the block's rows from `staged` on
  std::int64_t staged = 0;
};

/// Row i of a range, or a block's part of it; without data where an optional operand is absent. `alone`: its
/// neighbours' memory may be written meanwhile (the output is the input); else what surrounds a row of a
/// dense tensor may be read with it.
template <class T, class Team, int kOperands>
ROOFTILE_TILE Row<T> row_of(const Rows<kOperands>& rows, int operand, const void* data, const RowRange& range,
                            std::int64_t i, bool alone = false, bool optional = false) {
#if defined(ROOFTILE_EMULATED)
  optional = true;  // of an empty tensor any may be; C++ adds nothing to null, a GPU does
#endif
  if (optional && !data) return {nullptr, range.size};
  auto* first = static_cast<T*>(const_cast<void*>(data));
  const std::int64_t row = range.row + i * range.step;
  const auto surrounded = [&] {
    return !alone && rows.rank <= 1 && (rows.rank == 0 || rows.stride[operand][0] == rows.columns);
  };
  if constexpr (Team::kStreams) {
    Row<T> r{first + offset_for<Team>(rows, operand, row) + range.first, range.size};
    r.elsewhere = rows.columns - range.size;
    r.ahead = i + 1 < range.count ? offset_for<Team>(rows, operand, range.step) : 0;
    if (!in_words(Team::kReads) && surrounded()) r.begin = first;
    return r;
  } else if constexpr (Team::kStaged) {
    const int number =
        static_cast<int>(range.row - range.staged) + static_cast<int>(i) * static_cast<int>(range.step);
    return {
        range.staging.at(operand, first + range.staged * range.size) + number * static_cast<int>(range.size),
        range.size};
  } else {
    const std::int64_t stride = rows.column_stride[operand];
    Row<T> r{first + offset_for<Team>(rows, operand, row) + range.first * stride, range.size, stride};
    r.elsewhere = rows.columns - range.size;
    if (stride == 1 && surrounded()) {
      r.begin = first;
      r.end = first + rows.rows * rows.columns;
    }
    return r;
  }
}
/// This thread's team among those of its block.
template <bool kOfWarps = false>
ROOFTILE_TILE int team_in_block(const RowShape& shape) {
  if constexpr (kOfWarps)
    return static_cast<int>(threadIdx.x) / shape.threads;
  else
    return shape.teams == 1 ? 0 : static_cast<int>(threadIdx.x) >> (31 - __clz(shape.threads));
}

/// Which rows teams take.
struct RowsEach {
  std::int64_t rows;     ///< of teams with one row each, how many there are; else rows of an early team
  std::int64_t all = 0;  ///< rows that stream
  int early = 0;         ///< teams whose rows lie so far apart
  int late = 0;          ///< rows of each later team, neighbours behind theirs
};

}  // namespace cuda
}  // namespace rooftile::tile
