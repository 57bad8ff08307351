#pragma once
// From a problem to programs on threads: which access, which element type, which thread runs which rows.
#include <algorithm>
#include <utility>

#include "rooftile/core/convert.h"
#include "rooftile/core/element.h"
#include "rooftile/core/plugin.h"
#include "rooftile/core/rows.h"
#include "rooftile/tile/cpu/team.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// Below this many bytes to move, another thread costs more (0.1 to 0.5 µs a region) than it saves.
inline constexpr std::int64_t kBytesPerThread = 32 * 1024;

/// Calls body(scratch, begin, end) on contiguous shares of [0, programs). `bytes`: what the whole call moves.
/// Which thread runs a program never shows in its result.
template <class Body>
void for_programs(const CpuLaunch& launch, std::int64_t programs, std::int64_t bytes, Body body) {
  if (programs <= 0) return;
  const std::int64_t tasks =
      std::clamp<std::int64_t>(std::min(programs, bytes / kBytesPerThread), 1, launch.threads);
  struct Region {
    const CpuLaunch& launch;
    std::int64_t programs, tasks;
    Body& body;
  } region{launch, programs, tasks, body};
  launch.parallel(
      launch.executor, static_cast<int>(tasks),
      // Flattened: a kernel's steps are lambdas, and one left as a call costs a fifth (0.19 for 0.22 of a
      // copy).
      [](void* context, int task) ROOFTILE_FLATTEN {
        const Region& r = *static_cast<Region*>(context);
        const std::int64_t begin =
            r.programs / r.tasks * task + std::min<std::int64_t>(task, r.programs % r.tasks);
        const std::int64_t end = begin + r.programs / r.tasks + (task < r.programs % r.tasks);
        r.body(scratch_of(r.launch, task), begin, end);
      },
      &region);
}

/// Calls f with the access as a constant: f.template operator()<Access::cached>().
template <class F>
void with_access(bool dense, bool streaming, F&& f) {
  if (!dense) return f.template operator()<Access::strided>();
  if (streaming) return f.template operator()<Access::streaming>();
  return f.template operator()<Access::cached>();
}

/// Calls f with the C++ type of `dtype`, one of `T...`; validation refused all others.
template <class... T, class F>
void with_type(DType dtype, F&& f) {
  (void)((dtype == dtype_of<T> ? (f.template operator()<T>(), true) : false) || ...);
}

/// One element of f64, f32, f16 or bf16, and its way back in one rounding.
inline double load_scalar(const void* from, DType dtype) {
  double value = 0;
  with_type<double, float, f16, bf16>(dtype, [&]<class T>() {
    if constexpr (std::is_floating_point_v<T>)
      value = *static_cast<const T*>(from);
    else
      value = to_float(*static_cast<const T*>(from));
  });
  return value;
}
inline void store_scalar(void* to, DType dtype, double value) {
  with_type<double, float, f16, bf16>(dtype, [&]<class T>() {
    if constexpr (std::is_floating_point_v<T>)
      *static_cast<T*>(to) = static_cast<T>(value);
    else
      *static_cast<T*>(to) = from_double<T>(value);
  });
}

/// with_type for rows of f32, f16 or bf16.
template <Access kAccess, class F>
void with_row_type(DType dtype, F&& f) {
  if constexpr (kAccess == Access::strided) {
    if (dtype == DType::f32) return f.template operator()<float>();
    f.template operator()<AnyHalf>();
  } else {
    with_type<float, f16, bf16>(dtype, f);
  }
}

/// Both as constants: f.template operator()<Access::cached, float>(). Rows of f64 are taken for their digits:
/// one copy serves them, which treats elements as if they lay apart.
template <class Real, class F>
void with_rows(bool dense, bool streaming, DType dtype, F&& f) {
  if constexpr (std::is_same_v<Real, double>) {
    f.template operator()<Access::strided, double>();
  } else {
    with_access(dense, streaming, [&]<Access kAccess>() {
      with_row_type<kAccess>(dtype, [&]<class T>() { f.template operator()<kAccess, T>(); });
    });
  }
}

/// How far ahead of its reading memory is asked for data: less does not hide its latency, four times as much
/// is no better (layer_norm, 4096 columns of f32).
inline constexpr std::int64_t kRowAheadBytes = 16 * 1024;

/// Rows of one operand, as programs see them. What comes soon lies kRowAheadBytes ahead, in whole rows.
template <class T, int kOperands>
Row<T> row_of(const Rows<kOperands>& rows, int operand, const void* data, std::int64_t row,
              std::int64_t end) {
  const std::int64_t at = rows.offset(operand, row);
  const std::int64_t row_bytes = rows.columns * std::int64_t(sizeof(T));
  const std::int64_t coming =
      row + (row_bytes >= kRowAheadBytes ? 1 : kRowAheadBytes / std::max<std::int64_t>(row_bytes, 1));
  return {static_cast<T*>(const_cast<void*>(data)) + at, rows.columns, rows.column_stride[operand],
          coming < end ? rows.offset(operand, coming) - at : 0};
}

/// Runs program.operator()<T>(team, begin, end) on each thread's share of the rows, with the rows' access,
/// dtype (f32, f16 or bf16; of doubles f64) and a team of its own. Mark the program ROOFTILE_INLINE.
template <class Real = float, int kOperands, class Program>
void for_rows(const CpuLaunch& launch, const Rows<kOperands>& rows, DType dtype, Program program) {
  const std::int64_t bytes = rows.rows * rows.columns * bits(dtype) / 8 * kOperands;
  with_rows<Real>(rows.dense(), bytes > launch.streaming_bytes, dtype, [&]<Access kAccess, class T>() {
    for_programs(launch, rows.rows, bytes,
                 [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                   program.template operator()<T>(CpuTeam<Real, kAccess>(scratch, dtype), begin, end);
                   if (kAccess == Access::streaming) stream_fence();
                 });
  });
}

/// The same row by row: program.operator()<T>(team, row, end), for kernels that know of one row alone.
template <class Real = float, int kOperands, class Program>
void for_each_row(const CpuLaunch& launch, const Rows<kOperands>& rows, DType dtype, Program program) {
  for_rows<Real>(launch, rows, dtype,
                 [&]<class T>(auto team, std::int64_t begin, std::int64_t end) ROOFTILE_INLINE {
                   for (std::int64_t row = begin; row < end; ++row)
                     program.template operator()<T>(team, row, end);
                 });
}

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
