#pragma once
// What a convolution on Hopper consists of: a block's tile, the picture, and how a tile is stored.
#include "rooftile/backend/cuda/hopper.h"
#include "rooftile/ops/conv2d/conv2d.vectors.h"

namespace rooftile::conv_gpu {
using rooftile::cuda::TensorMap;

/// A block's tile, and what it keeps in shared memory. Of a product's rows and columns one are windows, one
/// filters. Rows that are windows: 128 of them, 64 for each consumer, and consumers share all slices. Turned:
/// 64 filters are the rows, and consumers have tiles in turn, so that one stores while the other multiplies.
/// Fewer slices than would fit: what is left of an SM's 256 KiB is L1, where the next tap finds most of its
/// pixels.
template <class T_, bool kTurned_, int kN_, int kStages_>
struct HopperTile {
  using T = T_;
  static constexpr bool kTurned = kTurned_;
  static constexpr int kN = kN_, kK = 64, kStages = kStages_;
  static constexpr int kWindows = kTurned ? kN : 128, kFilters = kTurned ? 64 : kN;
  static constexpr int kConsumers = 2, kThreads = 128 * (1 + kConsumers);
  static constexpr int kStaging = 16 * 64 * 4;  // bytes of a warp: 16 rows of 64 sums
  static constexpr unsigned kFilterBytes = kFilters * kK * sizeof(T);

  struct alignas(1024) Shared {
    T windows[kStages][kWindows * kK];
    T filters[kStages][kFilters * kK];
    std::byte y[kConsumers * 4][kStaging];
    std::uint64_t full[kStages], empty[kStages], turn[kConsumers];  // mbarriers
  };
};

/// How a tile's sums are stored.
enum class HopperStore {
  engine,   ///< by the copy engine: windows of 16-byte vectors, no activation
  filters,  ///< four filters at a time, which are a word where p.fours
  windows   ///< four windows at a time, which are a word
};

struct HopperRun {
  int tiles, across, slices;  ///< across: tiles of a row of them
  HopperStore store;
  bool early;   ///< the picture is still being packed
  bool cached;  ///< pixels come by way of L1
};

#if defined(ROOFTILE_HAS_HOPPER)
namespace hopper {
using namespace rooftile::cuda;
using rooftile::cuda::Ring;  // not the one of tile/cuda
}  // namespace hopper
#endif

}  // namespace rooftile::conv_gpu
