#pragma once
// Kernels that treat each element by itself, on a GPU: parts of rows on teams. No result depends on how a
// tensor is cut here.
#include "rooftile/tile/cuda/launch.h"

namespace rooftile::tile {
inline namespace cuda {

/// Where a program's part of a row lies.
struct PartOfRow {
  std::int64_t row, first, size;
  bool there;  // else nothing is to be read or written
};

/// A program of for_parts as one of for_rows.
template <class Program>
struct PartProgram {
  static constexpr int kLeastBlocks = 0;
  Program program;
  std::int64_t columns, length, parts;  // of a row

  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, std::int64_t index, bool there) const {
    // Of 32 bits where that is enough: a fifth of the other division's instructions.
    const std::int64_t row = parts == 1 ? index
                             : index >> 32 != 0
                                 ? index / parts
                                 : static_cast<std::uint32_t>(index) / static_cast<std::uint32_t>(parts);
    const std::int64_t first = (index - row * parts) * length;
    const std::int64_t rest = columns - first;
    program(team, PartOfRow{row, first, rest < length ? rest : length, there});
  }
};

/// Runs program(team, part) over `rows` rows of `columns` elements, `kLanes` to a thread and chunk. A part is
/// what kFewThreads threads hold.
template <int kLanes, int kChunks, class Real, class Program>
Status for_parts(const CudaLaunch& launch, const char* name, std::int64_t rows, std::int64_t columns,
                 bool aligned, const Program& program) {
  constexpr std::int64_t kLength = std::int64_t{kFewThreads} * kLanes * kChunks;
  const std::int64_t length = columns < kLength ? columns : kLength;
  if (rows <= 0 || columns <= 0) return {};
  const std::int64_t parts = (columns + length - 1) / length;
  return for_rows<kLanes, kChunks, false, Real>(launch, name, rows * parts, length, aligned,
                                                PartProgram<Program>{program, columns, length, parts});
}

/// Part of an operand; without data where this team has none. `written`: an input that is the
/// output, too; a thread then reads no byte beside its own elements, since others write theirs meanwhile.
template <class T, int kOperands>
ROOFTILE_TILE Row<T> part_of(const Rows<kOperands>& rows, int operand, const void* data,
                             const PartOfRow& part, bool written = false) {
  if (!part.there) return {nullptr, part.size};
  const std::int64_t stride = rows.column_stride[operand];
  Row<T> r{
      static_cast<T*>(const_cast<void*>(data)) + offset_of(rows, operand, part.row) + part.first * stride,
      part.size, stride};
  if (written) r.begin = r.end = r.data;
  return r;
}

}  // namespace cuda
}  // namespace rooftile::tile
