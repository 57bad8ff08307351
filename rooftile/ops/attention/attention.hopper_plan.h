#pragma once
// Which tiles the forward takes on Hopper: they change the time alone. No CUDA.
#include "rooftile/ops/attention/attention.problem.h"

namespace rooftile::attention_gpu {

/// kSize: channels that there is room for; kConsumers: warpgroups of 64 queries each.
template <int kSize_, int kConsumers_>
struct HopperShape {
  static constexpr int kSize = kSize_, kConsumers = kConsumers_;
  static constexpr int kPart = kMmaKeys<kSize>, kKeys = 2 * kPart;          ///< of one softmax; of a tile
  static constexpr int kTiles = static_cast<int>(kAttentionChunk) / kKeys;  ///< of a chunk
  static constexpr int kQueries = 64 * kConsumers, kThreads = 128 * (1 + kConsumers);
  static constexpr int kStages = 2;  ///< tiles of keys, and of values, on chip
  /// Buffers of a warp for 16 rows by 64 channels of y: what fits beside.
  static constexpr int kBuffers = kSize == 64 ? 1 : 2;
  /// Whether sums of the chunks before lie in shared memory, where y passes through at last; else, where
  /// these do not fit, in local memory.
  static constexpr bool kKeepsSums = kSize <= 128;
  // Registers of a thread: 65536 for all, 8 at a time.
  static constexpr int kFewRegisters = kConsumers == 2 ? 24 : 32,
                       kManyRegisters = kConsumers == 2 ? 240 : 160;
};

/// Heads of q whose blocks run side by side, so that their keys and values stay in L2: 12 MiB of them; 48
/// where a mask makes tiles of unequal length, the longest of which should come first (24 cost 2 to 6%).
inline std::int64_t hopper_heads_together(const AttentionProblem& p) {
  const std::int64_t budget = (p.left < 0 && p.right < 0 ? std::int64_t{12} : 48) << 20;
  const std::int64_t bytes = p.t * (p.d + p.e) * 2, heads = bytes == 0 ? p.g : budget / bytes;
  const std::int64_t all = p.b * p.h, some = (heads > 1 ? heads : 1) * p.group();
  return some < all ? some : all;
}

}  // namespace rooftile::attention_gpu
