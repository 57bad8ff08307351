#pragma once
// A ring of stages in dynamic shared memory, where a team's next rows arrive while it works on one.
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/tile/cuda/memory.h"

namespace rooftile::tile {
inline namespace cuda {

/// kCount stages of kChunks chunks. Of whole words each thread copies its own, which no other thread reads:
/// no barrier is needed. Strided rows begin anywhere: a warp copies the words that hold its elements, one
/// more than they would fill, for which it synchronises, and finds them as far behind a boundary of 16 bytes
/// as they are in memory.
template <Access kAccess, int kChunks, int kCount>
struct Ring {
  static constexpr bool kShares = kAccess == Access::interleaved;
  /// Words of a warp's stage.
  static constexpr int kWords = kChunks * kWarp + kShares;
  static constexpr int kWarpBytes = kCount * kWords * 16;
  uint4* first = nullptr;  // this thread's, or this warp's

  ROOFTILE_TILE void open() {
    ROOFTILE_DYNAMIC_SHARED(all);
    const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    first = reinterpret_cast<uint4*>(all) + warp * (kWarpBytes / 16) + (kShares ? 0 : lane);
  }
  ROOFTILE_TILE uint4* place(int stage, int chunk) const { return first + stage * kWords + chunk * kWarp; }
  /// Between what one thread of a warp does to a stage, and another.
  ROOFTILE_TILE static void sync() {
    if constexpr (kShares) __syncwarp();
  }

  /// Lets `row.size` elements from `data` on come to the row's stage; `thread`: of its team, whose chunks
  /// have this thread's words, `mine` and those `step` elements further on. Of a strided row zeros arrive
  /// behind its end. `follows`: what lies in front of it, up to a boundary of 16 bytes, may be read.
  template <class T>
  ROOFTILE_TILE void fetch(const Row<const T>& row, const T* data, bool follows, int thread, int mine,
                           int step) const {
    constexpr int kLanes = 16 / int(sizeof(T));  // a chunk is one word of a thread
    const int size = static_cast<int>(row.size);
    if constexpr (!kShares) {
      ROOFTILE_UNROLL for (int c = 0; c < kChunks; ++c) {
        if (lane_lives<kAccess>(0, size - (c * step + mine)))
          rooftile::cuda::cp_async_16(place(row.stage, c), data + mine + c * step);
      }
    } else {
      // Places in bytes from the boundary before the row.
      const int lane = thread % kWarp, begin = (thread / kWarp * kChunks * kWarp + lane) * 16;
      const auto address = reinterpret_cast<std::uintptr_t>(data);
      const int shift = static_cast<int>(address % 16), end = size * int(sizeof(T)) + shift;
      const auto* words = reinterpret_cast<const std::byte*>(address - shift);
      const auto copy = [&](uint4* to, int at) {
        const int rest = end - at, bytes = rest < 16 ? rest : 16;
        rooftile::cuda::cp_async_16(to, words + at, bytes > 0 ? bytes : 0);
      };
      uint4* const to = place(row.stage, 0);
      // The first word may begin before what may be read: its elements one by one, by a thread each.
      const bool partial = shift != 0 && !follows;
      if (partial && thread < kLanes) {
        const int element = thread - shift / int(sizeof(T));
        if (element >= 0 && element < size) reinterpret_cast<T*>(to)[thread] = data[element];
      }
      if (thread != 0 || !partial) copy(to + lane, begin);
      ROOFTILE_UNROLL for (int c = 1; c < kChunks; ++c) copy(to + c * kWarp + lane, begin + c * kWarp * 16);
      if (lane == 0) copy(to + kChunks * kWarp, begin + kChunks * kWarp * 16);
    }
  }
  /// This thread's elements of a chunk, which are there.
  template <int N, class T>
  ROOFTILE_TILE Pack<T, N> arrived(const Row<const T>& row, const Chunk& chunk, T other) const {
    static_assert(N * sizeof(T) == 16, "rooftile::tile::hold: a chunk is one word of a thread");
    Pack<T, N> pack;
    const uint4* const from = place(row.stage, chunk.index);
    if constexpr (kShares) {
      const auto shift = reinterpret_cast<std::uintptr_t>(row.data) % 16;
      const auto* elements =
          reinterpret_cast<const BitsOf<T>*>(reinterpret_cast<const std::byte*>(from) + shift) +
          threadIdx.x % kWarp;
      ROOFTILE_UNROLL for (int i = 0; i < N; ++i) {
        const BitsOf<T> bits = elements[i * kWarp];
        T t;
        memcpy(&t, &bits, sizeof t);
        pack.set(i, t);
      }
    } else if (lane_lives<kAccess>(0, chunk.live)) {
      pack.set_word(0, *from);
    } else {
      ROOFTILE_UNROLL for (int i = 0; i < N; ++i) pack.set(i, other);
    }
    return pack;
  }
};

}  // namespace cuda
}  // namespace rooftile::tile
