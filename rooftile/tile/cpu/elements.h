#pragma once
// Kernels that treat each element by itself: from tensors of any strides to parts of rows on threads. A
// kernel sees dense rows only; what lies apart is gathered in front of it and scattered behind. No result
// depends on how a tensor is cut here, only the speed does.
#include <cstring>

#include "rooftile/tile/cpu/launch.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// Threads share a row by multiples of so many elements. A thread's own are one part, so small costs nothing.
inline constexpr std::int64_t kShareElements = 1024;

/// How far ahead of its loads a streaming kernel asks for memory: beyond the latency at one core's speed,
/// well within the first cache with three operands.
inline constexpr std::int64_t kAheadBytes = 3072;

/// Some elements side by side, in every operand.
template <int kOperands>
struct Part {
  std::int64_t size;
  std::int64_t index;  ///< of its first element among all, if the rows are in row-major order
  std::byte* data[kOperands];

  template <class T>
  Row<T> row(int operand) const {
    return {reinterpret_cast<T*>(data[operand]), size, 1, kAheadBytes / std::int64_t(sizeof(T))};
  }
};

/// The operands of a call, outputs first; what is read and written is both.
template <int kOperands>
struct Operands {
  const Rows<kOperands>& rows;  ///< by elements_of
  const void* data[kOperands];
  int outputs = 1;

  std::byte* at(int operand, std::int64_t row, int element_bytes) const {
    return static_cast<std::byte*>(const_cast<void*>(data[operand])) +
           rows.offset(operand, row) * element_bytes;
  }
};

/// Calls body(part) for parts of dense rows. From a row's second part on the output begins at a multiple of
/// 64 bytes, so that streaming stores write whole cache lines.
template <int kOperands, class Body>
void for_dense_parts(const CpuLaunch& launch, const Operands<kOperands>& operands, int element_bytes,
                     bool streaming, Body body) {
  constexpr std::int64_t kWorthAligning = 512;
  const std::int64_t columns = operands.rows.columns;
  const std::int64_t bytes = operands.rows.rows * columns * element_bytes * kOperands;
  const std::int64_t shares = std::max<std::int64_t>(1, (columns + kShareElements - 1) / kShareElements);
  for_programs(launch, operands.rows.rows * shares, bytes,
               [&](const ThreadScratch&, std::int64_t begin, std::int64_t end) {
                 while (begin < end) {
                   const std::int64_t row = begin / shares;
                   const std::int64_t share = begin - row * shares,
                                      share_end = std::min(shares, share + end - begin);
                   Part<kOperands> part;
                   for (int o = 0; o < kOperands; ++o) part.data[o] = operands.at(o, row, element_bytes);
                   std::int64_t head = 0;  // elements before the output's first whole line
                   if (columns >= kWorthAligning)
                     head = static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(part.data[0]) % 64) /
                            element_bytes;
                   const auto place = [&](std::int64_t s) {
                     return s == 0 ? 0 : s == shares ? columns : std::min(columns, head + s * kShareElements);
                   };
                   std::int64_t at = place(share);
                   const std::int64_t stop = place(share_end);
                   for (int o = 0; o < kOperands; ++o) part.data[o] += at * element_bytes;
                   while (at < stop) {
                     part.size = at == 0 && head > 0 ? head : stop - at;
                     part.index = row * columns + at;
                     body(part);
                     at += part.size;
                     for (int o = 0; o < kOperands; ++o) part.data[o] += part.size * element_bytes;
                   }
                   begin += share_end - share;
                 }
                 if (streaming) stream_fence();
               });
}

/// `height` rows of `width` elements, a row's neighbours `across` apart and rows `down`, side by side to
/// `to`; or, with kScatter, back from there. Where rows lie closer together than neighbours do, in blocks of
/// 16 columns by a cache line's rows: each line is used whole while it is at hand, even if a power of two for
/// a stride puts all into one set. A call, or each task's flat function would hold a copy for each operand.
template <bool kScatter, class T>
__attribute__((noinline)) void move_block(T* at, std::int64_t width, std::int64_t height, std::int64_t across,
                                          std::int64_t down, T* to) {
  const auto move = [](T* far, T* near) {
    if constexpr (kScatter)
      *far = *near;
    else
      *near = *far;
  };
  if (height == 1 || std::llabs(down) >= std::llabs(across)) {
    for (std::int64_t r = 0; r < height; ++r) {
      T* far = at + r * down;
      for (std::int64_t c = 0; c < width; ++c, far += across, ++to) move(far, to);
    }
    return;
  }
  constexpr std::int64_t kColumns = 16, kRows = 64 / std::int64_t(sizeof(T));
  for (std::int64_t top = 0; top < height; top += kRows)
    for (std::int64_t left = 0; left < width; left += kColumns) {
      const std::int64_t bottom = std::min(height, top + kRows), right = std::min(width, left + kColumns);
      for (std::int64_t c = left; c < right; ++c) {
        T* far = at + top * down + c * across;
        T* near = to + top * width + c;
        for (std::int64_t r = top; r < bottom; ++r, far += down, near += width) move(far, near);
      }
    }
}

/// The same for strided rows, whose parts are staged in tiles of 8 KiB: where an operand's neighbours lie
/// across the rows (a transposed matrix), tiles of 64 columns by as many rows as two cache lines hold
/// elements.
template <class T, int kOperands, class Body>
void for_staged_parts(const CpuLaunch& launch, const Operands<kOperands>& operands, Body body) {
  constexpr std::int64_t kWide = 64, kHigh = 128 / std::int64_t(sizeof(T)), kTile = kWide * kHigh;  // 8 KiB
  static_assert(kOperands * kTile * sizeof(T) <= kScratchBytes, "rooftile::tile: parts that scratch holds");
  const Rows<kOperands>& rows = operands.rows;
  int crossing = -1;  // the dimension along which an operand's elements lie closer together than in its rows
  std::int64_t closest = 0;
  for (int o = 0; o < kOperands; ++o)
    for (int d = 0; d < rows.rank; ++d) {
      const std::int64_t stride = std::llabs(rows.stride[o][d]);
      if (stride == 0 || stride >= std::llabs(rows.column_stride[o]) || (crossing >= 0 && stride >= closest))
        continue;
      crossing = d;
      closest = stride;
    }
  Rows<kOperands> outer = rows;  // without that dimension
  std::int64_t height = 1, down[kOperands] = {};
  if (crossing >= 0) {
    height = rows.extent[crossing];
    outer.rows /= height;
    --outer.rank;
    for (int o = 0; o < kOperands; ++o) down[o] = rows.stride[o][crossing];
    for (int d = crossing; d < outer.rank; ++d) {
      outer.extent[d] = rows.extent[d + 1];
      for (int o = 0; o < kOperands; ++o) outer.stride[o][d] = rows.stride[o][d + 1];
    }
  }
  const std::int64_t width = crossing >= 0 ? kWide : kTile;
  const std::int64_t tiles_down = (height + kHigh - 1) / kHigh,
                     tiles_across = (rows.columns + width - 1) / width;
  const std::int64_t bytes = rows.rows * rows.columns * std::int64_t(sizeof(T)) * kOperands;
  std::int64_t below = 1;  // rows from one of that dimension's to the next
  for (int d = crossing + 1; crossing >= 0 && d < rows.rank; ++d) below *= rows.extent[d];

  const auto run_tiles = [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
    for (std::int64_t program = begin; program < end; ++program) {
      const std::int64_t first_row = program % tiles_down * kHigh, rest = program / tiles_down;
      const std::int64_t first = rest % tiles_across * width, row = rest / tiles_across;
      const std::int64_t tile_width = std::min(width, rows.columns - first);
      const std::int64_t tile_height = std::min(kHigh, height - first_row);
      T* from[kOperands];
      T* staged[kOperands];
      std::int64_t pitch[kOperands];
      for (int o = 0; o < kOperands; ++o) {
        from[o] = static_cast<T*>(const_cast<void*>(operands.data[o])) + outer.offset(o, row) +
                  first * rows.column_stride[o] + first_row * down[o];
        staged[o] = from[o];
        pitch[o] = down[o];
        if (rows.column_stride[o] == 1) continue;
        staged[o] = reinterpret_cast<T*>(scratch.begin) + o * kTile;
        pitch[o] = tile_width;
        if (o >= operands.outputs)
          move_block<false>(from[o], tile_width, tile_height, rows.column_stride[o], down[o], staged[o]);
      }
      for (std::int64_t r = 0; r < tile_height; ++r) {
        Part<kOperands> part;
        part.size = tile_width;
        part.index = ((row / below * height + first_row + r) * below + row % below) * rows.columns + first;
        for (int o = 0; o < kOperands; ++o)
          part.data[o] = reinterpret_cast<std::byte*>(staged[o] + r * pitch[o]);
        body(part);
      }
      for (int o = 0; o < operands.outputs; ++o)
        if (rows.column_stride[o] != 1)
          move_block<true>(from[o], tile_width, tile_height, rows.column_stride[o], down[o], staged[o]);
    }
  };
  for_programs(launch, outer.rows * tiles_down * tiles_across, bytes, run_tiles);
}

/// with_access for rows that are dense.
template <class F>
void with_dense_access(bool streaming, F&& f) {
  if (streaming) return f.template operator()<Access::streaming>();
  f.template operator()<Access::cached>();
}

/// Runs program.operator()<T>(team, part) over all elements, with the access and dtype (one of Types) of the
/// call. Mark the program ROOFTILE_INLINE.
template <class... Types, int kOperands, class Program>
void for_elements(const CpuLaunch& launch, const Operands<kOperands>& operands, DType dtype,
                  Program program) {
  const Rows<kOperands>& rows = operands.rows;
  const bool streaming = rows.rows * rows.columns * bits(dtype) / 8 * kOperands > launch.streaming_bytes;
  with_type<Types...>(dtype, [&]<class T>() {
    using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
    // Not inlined, so that two launches share one copy of the kernel; flattened, as each task is.
    const auto cached = [&](const Part<kOperands>& part) __attribute__((noinline, flatten)) {
      program.template operator()<T>(CpuTeam<Real, Access::cached>(nullptr), part);
    };
    // Doubles by themselves are lane functions taken for their digits: no copy that stores past the caches.
    constexpr bool kStreams = sizeof...(Types) > 1 || !std::is_same_v<T, double>;
    if (!rows.dense()) {
      for_staged_parts<T>(launch, operands, cached);
    } else if (!kStreams || !streaming) {
      for_dense_parts(launch, operands, int(sizeof(T)), false, cached);
    } else if constexpr (kStreams) {
      for_dense_parts(launch, operands, int(sizeof(T)), true, [&](const Part<kOperands>& part) {
        program.template operator()<T>(CpuTeam<Real, Access::streaming>(nullptr), part);
      });
    }
  });
}

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
