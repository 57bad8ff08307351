#pragma once
// How the warps of a team come to one result: each leaves what it has in shared memory of all the team's
// blocks, where every thread reads all of it.
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/tile/cuda/memory.h"

namespace rooftile::tile {
inline namespace cuda {

/// Warps of the longest team, each with a partial result in every block's shared memory.
inline constexpr int kMostPartials = 256;

/// Each thread's numbers with those of the one whose number differs in one bit, so that all have the same
/// bits;
template <class Real, int K, class Operation>
ROOFTILE_TILE void step(Tile<Real, K>& r, int far, Operation operation) {
  ROOFTILE_UNROLL for (int k = 0; k < K; ++k) r.v[k] =
      operation(r.v[k], __shfl_xor_sync(0xffffffffu, r.v[k], far));
}
/// and so on across so many neighbours of a warp.
template <class Real, int K, class Operation>
ROOFTILE_TILE void across(Tile<Real, K>& r, int threads, Operation operation) {
  ROOFTILE_UNROLL for (int far = kWarp / 2; far > 0; far /= 2) if (threads > far) step(r, far, operation);
}

/// Of numbers of one type, up to two from each warp at once.
template <class Real>
class Meeting {
 public:
  /// What `count` warps left: at[k][i] is warp i's number k.
  struct Room {
    Real (&at)[2][kMostPartials];
    int count;
  };

  /// Of a cluster, before anything else: its blocks must all be there before one writes to another's shared
  /// memory. They wait for that when they meet, so that what a row needs is on its way meanwhile.
  ROOFTILE_TILE
  static void open([[maybe_unused]] int thread) {
#if defined(ROOFTILE_HAS_SM90)
    rooms();
    if (thread == 0) {
      rooftile::cuda::mbarrier_init(&arrivals()[0], 1);
      rooftile::cuda::mbarrier_init(&arrivals()[1], 1);
      rooftile::cuda::fence_mbarrier_init();
    }
    rooftile::cuda::cluster_arrive_relaxed();
#endif
  }

  /// Leaves a warp's numbers and waits for all others'. `threads`: of a block; `turn`: how many times they
  /// met before. Two rooms in turn: who writes one for the next but one meeting has met everyone at the next
  /// one's barrier, or has all their results, and so comes after all read it.
  template <int K>
  ROOFTILE_TILE static Room meet(const Tile<Real, K>& mine, int thread, int threads,
                                 [[maybe_unused]] int cluster, [[maybe_unused]] int rank, unsigned turn) {
    static_assert(K <= 2);
    auto& room = rooms()[turn & 1];
    const int lane = thread % kWarp, warps = threads / kWarp, warp = thread / kWarp;
#if defined(ROOFTILE_HAS_SM90)
    // No barrier of the cluster: it would wait for all that is on its way to and from memory (softmax, f32
    // 4096x16384, H200: a block 136 µs, two 146, four 161). A block waits for the bytes instead.
    if constexpr (sizeof(Real) == 4)
      if (cluster > 1) {
        if (turn == 0) rooftile::cuda::cluster_wait();
        const int count = warps * cluster;
        std::uint64_t* arrived = &arrivals()[turn & 1];
        if (thread == 0)
          rooftile::cuda::mbarrier_arrive_expect_tx(arrived, static_cast<unsigned>(count * K) * 4);
        if (lane < cluster) {
          ROOFTILE_UNROLL for (int k = 0; k < K; ++k) rooftile::cuda::store_async_at(
              &room[k][rank * warps + warp], mine.v[k], arrived, static_cast<unsigned>(lane));
        }
        rooftile::cuda::mbarrier_wait(arrived, turn >> 1 & 1);
        return {room, count};
      }
#endif
    if (lane == 0) {
      ROOFTILE_UNROLL for (int k = 0; k < K; ++k) room[k][warp] = mine.v[k];
    }
    __syncthreads();
    return {room, warps};
  }

 private:
  using Rooms = Real[2][2][kMostPartials];
  ROOFTILE_TILE
  static Rooms& rooms() {
    ROOFTILE_SHARED(all, Rooms);
    return all;
  }
  /// Barriers at which other blocks' numbers arrive.
  using Arrivals = std::uint64_t[2];
  ROOFTILE_TILE
  static Arrivals& arrivals() {
    ROOFTILE_SHARED(both, Arrivals);
    return both;
  }
};

}  // namespace cuda
}  // namespace rooftile::tile
