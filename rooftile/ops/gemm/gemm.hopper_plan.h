#pragma once
// Which kernel and tile a product takes on Hopper. They change no bit, only the time. No CUDA: `rooftile why`
// prints it.
#include <cstdint>
#include <initializer_list>

namespace rooftile::gemm_gpu {

/// gemm.hopper.h: tiles of 128 × width, `cluster` of them one above the other. gemm.hopper_skinny.h: of
/// `height` rows, all that there are, × width. `waves`: tiles of the busiest multiprocessor.
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

/// The least work on the busiest multiprocessor, in columns. Measured on an H200: a narrow tile costs as 16
/// columns more; two blocks that share B gain 5% over several waves (8192³: 1429 → 1362 µs), and cost 2% in
/// one (2048³).
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
      const std::int64_t cost = waves * (width + 16) * percent;
      // [/cost]
      if (cost >= least) continue;
      least = cost;
      best = {false,           kHopperHeight, width, cluster, kHopperRow / size, hopper_stages(width),
              tiles * cluster, waves};
    }
  return best;
}
/// Columns of y in a tile, such that the busiest multiprocessor reads the fewest; of equals, the most. Where
/// neighbours in B are along N, a box has 64 of them.
inline HopperPlan skinny_plan(std::int64_t m, std::int64_t n, std::int64_t matrices, bool b_k_first,
                              int multiprocessors, int size) {
  // 16-bit elements have a kernel for each, the others one.
  const int height = size != 2 ? kMaxSkinny : m <= 8 ? 8 : m <= 16 ? 16 : m <= 32 ? 32 : kMaxSkinny;
  HopperPlan best{};
  std::int64_t least = INT64_MAX;
  for (int width = 64; width >= (b_k_first ? 8 : 64); width -= 8) {
    const std::int64_t tiles = matrices * ((n + width - 1) / width);
    const std::int64_t waves = (tiles + multiprocessors - 1) / multiprocessors;
    if (waves * width >= least) continue;
    least = waves * width;
    best = {true, height, width, 1, skinny_row(height) / size, skinny_stages(height), tiles, waves};
  }
  return best;
}
/// `size`: bytes of an element.
inline HopperPlan hopper_plan(std::int64_t m, std::int64_t n, std::int64_t matrices, bool a_k_first,
                              bool b_k_first, int multiprocessors, int size = 2) {
  return m <= kMaxSkinny && a_k_first ? skinny_plan(m, n, matrices, b_k_first, multiprocessors, size)
                                      : wide_plan(m, n, matrices, multiprocessors, size);
}

}  // namespace rooftile::gemm_gpu
