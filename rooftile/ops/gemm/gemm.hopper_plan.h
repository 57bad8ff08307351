#pragma once
// Which kernel and tile a product takes on Hopper. They change no bit, only the time. No CUDA: `rooftile why`
// prints it.
#include <algorithm>
#include <cstdint>
#include <initializer_list>

namespace rooftile::gemm_gpu {

/// gemm.hopper.h: tiles of 128 × width, `cluster` of them one above the other. gemm.hopper_skinny.h: of
/// `height` rows × width. `waves`: tiles of the busiest multiprocessor.
struct HopperPlan {
  bool skinny;
  int height, width, cluster, depth, stages;
  std::int64_t tiles, waves;
};

inline constexpr int kHopperHeight = 128, kMaxSkinny = 64;
inline constexpr int kHopperRow = 128;  // bytes of K in a slice
/// Slices of A and B that fit beside 32 KiB for y.
constexpr int hopper_stages(int width) { return width > 128 ? 4 : 6; }
/// Bytes of K in a slice, and slices that fit beside y.
constexpr int skinny_row(int rows) { return rows <= 16 ? 512 : 256; }
constexpr int skinny_stages(int rows) { return 222 * 1024 / ((64 + rows) * skinny_row(rows)); }

/// The least work on the busiest multiprocessor, in columns. Measured on an H200: a tile costs as 16 columns
/// more, one of 64 as 104, since half of what wgmma then reads from shared memory is A; two blocks that share
/// B gain 5% over several waves (8192³: 1429 → 1362 µs), and cost 2% in one (2048³).
inline HopperPlan wide_plan(std::int64_t m, std::int64_t n, std::int64_t matrices, int multiprocessors,
                            int size) {
  HopperPlan best{};
  std::int64_t least = INT64_MAX;
  for (const int width : {256, 192, 128, 64})
    for (const int cluster : {1, 2}) {
      if (size != 2 && width != 256 && width != 64) continue;  // of the others two kernels
      const std::int64_t height = std::int64_t{kHopperHeight} * cluster, places = multiprocessors / cluster;
      if (places == 0) continue;
      // [cost]
      const std::int64_t tiles = matrices * ((m + height - 1) / height) * ((n + width - 1) / width);
      const std::int64_t waves = (tiles + places - 1) / places;
      const int percent = cluster == 1 ? (waves > 1 ? 105 : 100) : (waves > 1 ? 100 : 102);
      const std::int64_t cost = waves * (std::max(width, 104) + 16) * percent;
      // [/cost]
      if (cost >= least) continue;
      least = cost;
      best = {false,           kHopperHeight, width, cluster, kHopperRow / size, hopper_stages(width),
              tiles * cluster, waves};
    }
  return best;
}
/// Rows of A that its kernel has. 16-bit elements have a kernel for each, the others one.
constexpr int skinny_height(std::int64_t m, int size) {
  return size != 2 ? kMaxSkinny : m <= 8 ? 8 : m <= 16 ? 16 : m <= 32 ? 32 : kMaxSkinny;
}
/// Columns of y in a tile, such that the busiest multiprocessor reads the fewest, where a tile and its rows
/// of A cost as some columns more; of equals, the most. Where neighbours in B are along N, a box has 64 of
/// them.
inline HopperPlan skinny_plan(std::int64_t m, std::int64_t n, std::int64_t matrices, bool b_k_first,
                              int multiprocessors, int size) {
  const int height = skinny_height(m, size);
  const std::int64_t tiles_of_column = matrices * ((m + height - 1) / height);
  HopperPlan best{};
  std::int64_t least = INT64_MAX;
  for (int width = 64; width >= (b_k_first ? 8 : 64); width -= 8) {
    const std::int64_t tiles = tiles_of_column * ((n + width - 1) / width);
    const std::int64_t waves = (tiles + multiprocessors - 1) / multiprocessors;
    const std::int64_t cost = waves * (width + 8 + height / 8);
    if (cost >= least) continue;
    least = cost;
    best = {true, height, width, 1, skinny_row(height) / size, skinny_stages(height), tiles, waves};
  }
  return best;
}
/// Up to 64 rows of A; up to 128 as two tiles, where all tiles run at once. Of wide tiles with 64 columns
/// there would be half as many, and each would load 192 rows of both operands in place of 128.
constexpr bool is_skinny(std::int64_t m, std::int64_t n, std::int64_t matrices, bool a_k_first,
                         int multiprocessors) {
  return a_k_first && (m <= kMaxSkinny || (m <= 2 * kMaxSkinny &&
                                           2 * matrices * ((n + 63) / 64) <= std::int64_t{multiprocessors}));
}
/// `size`: bytes of an element.
inline HopperPlan hopper_plan(std::int64_t m, std::int64_t n, std::int64_t matrices, bool a_k_first,
                              bool b_k_first, int multiprocessors, int size = 2) {
  return is_skinny(m, n, matrices, a_k_first, multiprocessors)
             ? skinny_plan(m, n, matrices, b_k_first, multiprocessors, size)
             : wide_plan(m, n, matrices, multiprocessors, size);
}

}  // namespace rooftile::gemm_gpu
