#pragma once
// Which tile the Hopper kernel takes. It changes no bit, only the time. No CUDA: `rooftile why` prints it.
#include <cstdint>

namespace rooftile::gemm_gpu {

/// Tiles of 128 × width, `cluster` of them one above the other; `waves`: how many of them the busiest
/// multiprocessor computes.
struct HopperPlan {
  int width, cluster, stages;
  std::int64_t tiles, waves;
};

inline constexpr int kHopperHeight = 128, kHopperDepth = 64;
inline constexpr int kHopperWidths[] = {256, 192, 128, 64};
/// Slices of A and B that fit beside 32 KiB for y.
constexpr int hopper_stages(int width) { return width > 128 ? 4 : 6; }

/// The least work on the busiest multiprocessor, in columns. Measured on an H200: a narrow tile costs as 16
/// columns more; two blocks that share B gain 5% over several waves (8192³: 1429 → 1362 µs), and cost 2% in
/// one (2048³).
inline HopperPlan hopper_plan(std::int64_t m, std::int64_t n, std::int64_t matrices, int multiprocessors) {
  HopperPlan best{};
  std::int64_t least = INT64_MAX;
  for (const int width : kHopperWidths)
    for (const int cluster : {1, 2}) {
      const std::int64_t height = std::int64_t{kHopperHeight} * cluster, places = multiprocessors / cluster;
      if (places == 0) continue;
      const std::int64_t tiles = matrices * ((m + height - 1) / height) * ((n + width - 1) / width);
      const std::int64_t waves = (tiles + places - 1) / places;
      const int percent = cluster == 1 ? (waves > 1 ? 105 : 100) : (waves > 1 ? 100 : 102);
      const std::int64_t cost = waves * (width + 16) * percent;
      if (cost < least) {
        least = cost;
        best = {width, cluster, hopper_stages(width), tiles * cluster, waves};
      }
    }
  return best;
}

}  // namespace rooftile::gemm_gpu
