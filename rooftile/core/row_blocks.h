#pragma once
// Which rows make a block whose column sums (a weight's gradient) are added up together. Bits depend on it,
// so it follows from rows, columns, dtype and, on a GPU, the architecture alone; never from threads or
// multiprocessors.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "rooftile/core/dtype.h"

namespace rooftile {

/// Blocks of rows, each of which has its own column sums, and teams that work through them, each of which has
/// its own sum for a scalar's gradient.
struct RowBlocks {
  std::int64_t blocks = 0, teams = 0;
};

/// Elements from one row of sums to the next: whole cache lines.
constexpr std::int64_t column_sums_stride(std::int64_t columns) { return (columns + 15) / 16 * 16; }
/// Blocks of rows that add up their weight gradients apart. A power of two, so that 2, 4, 8 … threads get
/// equal shares; at most 64; and at least 16 rows each, so that writing and reading a block's sums moves less
/// than a tenth of what its rows do (f32: 4 rows' worth in 48).
constexpr std::int64_t cpu_row_blocks(std::int64_t rows) {
  constexpr std::int64_t kMinRows = 16, kMax = 64;
  if (rows < 2 * kMinRows) return rows > 0 ? 1 : 0;
  return std::min<std::int64_t>(
      kMax, static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(rows / kMinRows))));
}
/// Columns of the longest rows that a GPU's warp works on, and of those of a block.
inline constexpr std::int64_t kWarpColumns = 512, kBlockColumns = 8192;
/// Whether a GPU's row may lie in whole 16-byte words, wherever it begins.
constexpr bool whole_vectors(std::int64_t columns, DType dtype) {
  return columns % (dtype == DType::f32 ? 4 : 8) == 0;
}
/// Teams of a GPU's block whose weight gradients are added up first, 16 columns to a thread: in blocks of 128
/// threads those of short rows that are no whole words, and come to shared memory; in blocks that have 48 KiB
/// on their way those of several warps, if rows are whole words (H200, with sums of its own for each, and so:
/// bf16 65536x1024 118 µs and 110, 16384x2048 70 and 62, 8192x4096 66 and 62; f32 65536x1024 213 and 206).
/// Where such rows lie otherwise, teams have blocks of their own, and add_blocks adds in the same order.
constexpr int gpu_row_block_teams(std::int64_t rows, std::int64_t columns, DType dtype) {
  const bool words = whole_vectors(columns, dtype);
  if (columns > kWarpColumns) {
    const std::int64_t threads = (columns + 511) / 512 * 32, all = dtype == DType::f32 ? 256 : 512;
    const std::int64_t most = words ? std::max<std::int64_t>(all / threads, 1) : 1;
    // So many blocks are left: with fewer, multiprocessors would be idle (bf16 1024x1024: 25 µs, 17).
    const std::int64_t teams = std::min(65536 / threads, rows / 16) / 128;
    return static_cast<int>(
        std::bit_floor(static_cast<std::uint64_t>(std::clamp<std::int64_t>(teams, 1, most))));
  }
  if (columns > 256 || words) return 1;
  int threads = 1;
  while (threads * 16 < columns) threads *= 2;
  return 128 / threads;
}
/// The same on a GPU, where a block is what one team works through: as many as keep 65536 threads busy at 16
/// elements a thread (131072 where a team is at most a warp; up to 256 columns teams of 8 or more threads
/// with 8 elements each, of which some have fewer by now), and at least 16 rows each. Or, of short rows that
/// are no whole words, it is what teams have together: at least 8 rows for each of them. Clusters of four or
/// more blocks, each of which has 8192 columns, where the architecture has them: as many as fit 112
/// multiprocessors. An H200 has 132, but runs no more than 30 clusters of four such blocks at once, 15 of
/// eight, 7 of sixteen, and fewer where other multiprocessors are defective (bf16 2048x32768: 32 clusters
/// take 224 µs, 28 134). It follows from the length, the dtype and the architecture alone, too.
constexpr std::int64_t gpu_row_blocks(std::int64_t rows, std::int64_t columns, DType dtype,
                                      int architecture) {
  constexpr std::int64_t kElements = 16, kMinRows = 16, kMaxOfTeams = 2048;
  constexpr std::int64_t kMaxCluster = 16, kMultiprocessors = 112;
  if (rows < 2 * kMinRows) return rows > 0 ? 1 : 0;
  const auto floor = [](std::int64_t n) {
    return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n)));
  };
  const int teams = gpu_row_block_teams(rows, columns, dtype);
  if (columns <= kWarpColumns && teams > 1)
    return floor(std::clamp<std::int64_t>(rows / (8 * teams), 1, kMaxOfTeams));
  if (architecture == 90 && columns > 2 * kBlockColumns && columns <= kMaxCluster * kBlockColumns) {
    std::int64_t cluster = 4;
    while (cluster * kBlockColumns < columns) cluster *= 2;
    return std::min(kMultiprocessors / cluster, rows / kMinRows);
  }
  const std::int64_t team = columns <= 256
                                ? std::max<std::int64_t>((columns / 8 + 7) / 8 * 8, 8)
                                : std::min<std::int64_t>((columns / kElements + 31) / 32 * 32, 2048);
  const std::int64_t threads = columns <= kWarpColumns ? 131072 : 65536;
  return floor(std::min(threads / team, rows / kMinRows));
}
/// Teams that work through so many blocks: one for each, or of short rows those that have a block together.
constexpr std::int64_t gpu_row_teams(std::int64_t blocks, std::int64_t rows, std::int64_t columns,
                                     DType dtype) {
  return columns <= kWarpColumns ? blocks * gpu_row_block_teams(rows, columns, dtype) : blocks;
}
/// How many neighbouring blocks take turns in their rows on a GPU, so that they read and write neighbours at
/// any time, instead of each having rows that follow one upon the other. H200, all blocks in turn, and none:
/// f32 8192x4096 112 µs and 116, 4096x16384 206 and 213, bf16 262144x256 111 and 117, where teams share a
/// block 8192x4096 62 and 65; but where they do not 16384x4096 off by one element 163 and 138, and bf16
/// 4096x16384 159 and 124.
constexpr std::int64_t gpu_row_turns(std::int64_t blocks, std::int64_t columns, DType dtype) {
  const bool words = columns <= kBlockColumns && whole_vectors(columns, dtype);
  return dtype == DType::f32 || columns <= kWarpColumns || words ? blocks : 1;
}
/// The first row of a block; that of the one past the last is `rows`. Sizes differ by one at most.
constexpr std::int64_t row_block_begin(std::int64_t rows, std::int64_t blocks, std::int64_t block) {
  return rows / blocks * block + std::min(block, rows % blocks);
}

}  // namespace rooftile
