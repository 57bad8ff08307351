#pragma once
// How the warps of a block, or the blocks of a cluster, come to one result: each leaves what it has in shared
// memory of all the team's blocks, where every thread reads all of it.
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/tile/cuda/memory.h"

namespace rooftile::tile {
inline namespace cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;

/// Two sums that were taken together.
template <class Real>
struct Sums {
  Real first, second;
};

/// Which of its cluster's blocks this one is.
ROOFTILE_TILE
int rank_in_cluster() {
#if defined(ROOFTILE_HAS_SM90)
  return static_cast<int>(rooftile::cuda::cluster_rank());
#else
  return 0;
#endif
}

/// How many reductions a team's threads did: those of a block, and those of a cluster's blocks.
struct Rounds {
  unsigned block = 0, cluster = 0;
};

/// Each thread's numbers with those of the one whose number differs in one bit, so that all have the same
/// bits; `lanes`: of the warp, which come to it together;
template <class Real, int K, class Operation>
ROOFTILE_TILE void step(Tile<Real, K>& r, int far, Operation operation, unsigned lanes = kAllLanes) {
  ROOFTILE_UNROLL for (int k = 0; k < K; ++k) r.v[k] = operation(r.v[k], __shfl_xor_sync(lanes, r.v[k], far));
}
/// and so on across so many neighbours of a warp;
template <class Real, int K, class Operation>
ROOFTILE_TILE void across(Tile<Real, K>& r, int threads, Operation operation, unsigned lanes = kAllLanes) {
  ROOFTILE_UNROLL for (int far = kWarp / 2; far > 0; far /= 2) if (threads > far)
      step(r, far, operation, lanes);
}
/// or across a team of less than a warp, wherever the warp's other lanes are.
template <class Real, class Operation>
ROOFTILE_TILE Real across_team(Real mine, int threads, Operation operation) {
  const unsigned first = threadIdx.x % kWarp & ~static_cast<unsigned>(threads - 1);
  Tile<Real, 1> r{{mine}};
  across(r, threads, operation, ((1u << threads) - 1) << first);
  return r.v[0];
}

/// The upper `half` of a tile's lanes onto the lower, then the next. Recursive: a loop over halves of 16
/// lanes is not unrolled, and the tile then lies in memory.
template <int half, Access kAccess, class Real, int N, class Operation>
ROOFTILE_TILE void fold(Tile<Real, N>& t, Operation operation) {
  if constexpr (kAccess == Access::interleaved) {
    const bool upper = threadIdx.x & static_cast<unsigned>(half);
    ROOFTILE_EACH_LANE(half) {
      const Real keep = upper ? t.v[i + half] : t.v[i], send = upper ? t.v[i] : t.v[i + half];
      t.v[i] = operation(keep, __shfl_xor_sync(0xffffffffu, send, half));
    }
  } else {
    ROOFTILE_EACH_LANE(half) t.v[i] = operation(t.v[i], t.v[i + half]);
  }
  if constexpr (half > 1) fold<half / 2, kAccess>(t, operation);
}
/// A tile's lanes made one: the upper half folded onto the lower, and so on. Strided, the warp's next lower
/// bits of the element's number are in the lanes of the warp, and each step sends away the half of the tile
/// that the thread does not go on with.
template <Access kAccess, class Real, int N, class Operation>
ROOFTILE_TILE Real folded(const Tile<Real, N>& tile, Operation operation) {
  Tile<Real, N> t = tile;
  if constexpr (N > 1) fold<N / 2, kAccess>(t, operation);
  return t.v[0];
}
struct AddUp {
  template <class Real>
  ROOFTILE_TILE Real operator()(Real a, Real b) const {
    return a + b;
  }
};
struct Multiply {
  template <class Real>
  ROOFTILE_TILE Real operator()(Real a, Real b) const {
    return a * b;
  }
};
struct Larger {
  template <class Real>
  ROOFTILE_TILE Real operator()(Real a, Real b) const {
    return larger(a, b);
  }
};
struct Smaller {
  template <class Real>
  ROOFTILE_TILE Real operator()(Real a, Real b) const {
    return smaller(a, b);
  }
};

/// What a pass over a row adds up, or makes one otherwise.
template <class Tile>
struct Accumulator {
  Tile tile;
  Accumulator() = default;
  ROOFTILE_TILE Accumulator(const Tile& of) : tile(of) {}
  ROOFTILE_TILE Tile& operator[](const Chunk&) { return tile; }
};

/// Barriers at which other blocks' numbers arrive. Two in turn, as with scratch.
class Arrivals {
 public:
  /// Of a cluster, before anything else: its blocks must all be there before one writes to another's shared
  /// memory. They wait for that when they reduce, so that what a row needs is on its way meanwhile.
  ROOFTILE_TILE
  static void open([[maybe_unused]] int thread) {
#if defined(ROOFTILE_HAS_SM90)
    Both& arrivals = both();  // of all threads: what other blocks reach lies at one place in each
    if (thread == 0) {
      rooftile::cuda::mbarrier_init(&arrivals[0], 1);
      rooftile::cuda::mbarrier_init(&arrivals[1], 1);
      rooftile::cuda::fence_mbarrier_init();
    }
    rooftile::cuda::cluster_arrive_relaxed();
#endif
  }
  using Both = std::uint64_t[2];
  ROOFTILE_TILE
  static Both& both() {
    ROOFTILE_SHARED(arrivals, Both);
    return arrivals;
  }
};

/// Where up to kNumbers from each of kMax warps or blocks come together. Two in turn: who writes one
/// for the next reduction but one has passed the next one's barrier, or has all their results, and so
/// comes after all read it.
template <class Real, int kNumbers, int kMax>
class BlockReduction {
 public:
  /// What `count` of them left, from `first` on.
  struct Partials {
    Real (&all)[kNumbers][kMax];
    int first, count;

    /// Number k of the i-th.
    ROOFTILE_TILE Real at(int k, int i) const { return all[k][first + i]; }

    /// The first K of them.
    template <int K>
    ROOFTILE_TILE auto numbers() const {
      return [this](int i) {
        Tile<Real, K> r;
        ROOFTILE_UNROLL for (int k = 0; k < K; ++k) r.v[k] = at(k, i);
        return r;
      };
    }
    /// All value(i) made one. Lanes that have none hold what changes nothing: steps for as many as there are
    /// would each need a branch.
    template <class Value, class Operation>
    ROOFTILE_TILE auto over(Real neutral, Value value, Operation operation) const {
      const int lane = static_cast<int>(threadIdx.x) % kWarp;
      auto r = operand<decltype(value(0))>(neutral);
      if (lane < count) r = value(lane);
      if (kMax > kWarp && count > kWarp) {
        ROOFTILE_UNROLL_BY(1)
        for (int i = lane + kWarp; i < count; i += kWarp) {
          const auto next = value(i);
          ROOFTILE_UNROLL for (int k = 0; k < r.kLanes; ++k) r.v[k] = operation(r.v[k], next.v[k]);
        }
      }
      across(r, kWarp, operation);
      return r;
    }
    /// Σ of their first numbers, and what it was rounded by. From the first one on: sums of elements that are
    /// alike differ by little.
    ROOFTILE_TILE Sums<Real> sum_in_two() const {
      const Real one = at(0, 0), from = one - one == 0 ? one : 0;  // inf - inf would be no sum
      const Real each = static_cast<Real>(count), whole = from * each;
      const auto off = [&](int i) { return Tile<Real, 1>{{at(0, i) - from}}; };
      const Real others = over(Real(0), off, AddUp{}).v[0], sum = whole + others;
      return {sum, fused(from, each, -whole) + (whole - sum + others)};
    }
  };

  /// Leaves each warp's numbers, and waits for those of all `warps` of the team, by `wait`; `first`: of them
  /// in the block.
  template <int K, class Wait>
  ROOFTILE_TILE static Partials of_warps(const Tile<Real, K>& mine, int thread, int first, int warps,
                                         unsigned round, Wait wait) {
    static_assert(K <= kNumbers);
    auto& scratch = scratch_memory()[round & 1];
    if (thread % kWarp == 0) {
      ROOFTILE_UNROLL for (int i = 0; i < K; ++i) scratch[i][first + thread / kWarp] = mine.v[i];
    }
    wait();
    return {scratch, first, warps};
  }

#if defined(ROOFTILE_HAS_SM90)
  /// The same across a cluster, of whose blocks the first `warps` warps have something to leave.
  ///
  /// No barrier of the cluster: it would wait for all that is on its way to and from memory (softmax, f32
  /// 4096x16384, H200: a block 136 µs, two 146, four 161). A block waits for the bytes instead.
  template <int K>
  ROOFTILE_TILE static Partials of_cluster(const Tile<Real, K>& mine, int thread, int warps, int cluster,
                                           int rank, unsigned round) {
    static_assert(K <= kNumbers && sizeof(Real) == 4);
    auto& scratch = scratch_memory()[round & 1];
    if (round == 0) rooftile::cuda::cluster_wait();
    const int lane = thread % kWarp, warp = thread / kWarp, count = warps * cluster;
    std::uint64_t* arrived = &Arrivals::both()[round & 1];
    if (thread == 0) rooftile::cuda::mbarrier_arrive_expect_tx(arrived, static_cast<unsigned>(count * K) * 4);
    if (warp < warps && lane < cluster) {
      ROOFTILE_UNROLL for (int k = 0; k < K; ++k) rooftile::cuda::store_async_at(
          &scratch[k][rank * warps + warp], mine.v[k], arrived, static_cast<unsigned>(lane));
    }
    rooftile::cuda::mbarrier_wait(arrived, round >> 1 & 1);
    return {scratch, 0, count};
  }
#endif

  using Scratch = Real[2][kNumbers][kMax];
  ROOFTILE_TILE
  static Scratch& scratch_memory() {
    ROOFTILE_SHARED(all, Scratch);
    return all;
  }
};

/// sum / count as a division rounds it, but for the last bit; `each_one`: 1 / count.
template <class Real>
ROOFTILE_TILE Real quotient(Real sum, Real count, Real each_one) {
  const Real q = sum * each_one, better = fused(fused(-q, count, sum), each_one, q);
  return better == better ? better : q;  // infinite
}
/// Of elements, their mean, shift + rest, and Σ(element - mean)².
template <class Real>
struct Moments {
  Real shift, rest, squares;
};
/// Of a row, of its parts', of which `partials` hold the moments and the number of elements (Chan, Golub and
/// LeVeque, "Algorithms for Computing the Sample Variance", 1983). `each_one`: 1 / the row's elements. All is
/// taken from the first part's mean, so that equal parts give what they are.
template <class Partials, class Real>
ROOFTILE_TILE Moments<Real> of_parts(const Partials& partials, Real each_one) {
  using One = Tile<Real, 1>;
  const Real begin = partials.at(0, 0), from = begin - begin == 0 ? begin : 0;  // inf - inf would be no mean
  const auto off = [&](int i) { return partials.at(0, i) - from + partials.at(1, i); };
  const auto weighed = [&](int i) { return One{{off(i) * partials.at(3, i)}}; };
  const Real rest = partials.over(Real(0), weighed, AddUp{}).v[0] * each_one, shift = from + rest;
  const auto squares = [&](int i) {
    const Real d = off(i) - rest;
    return One{{partials.at(2, i) + d * d * partials.at(3, i)}};
  };
  return {shift, shift - shift == 0 ? from - shift + rest : 0, partials.over(Real(0), squares, AddUp{}).v[0]};
}

/// The largest element of a held row, or of this warp's part of it: no barrier is needed. Σ of exponentials
/// from there are brought together at the row's end.
template <class Team, class T>
ROOFTILE_TILE float part_max(const Team& team, const Row<const T>&, const auto& held, std::int64_t size) {
  if constexpr (sizeof(T) == 2) {
    PairMaxima<T, Team::kLanes> maxima;
    team.each(size, [&](const Chunk& chunk) {
      maxima.template add<Team::kReads>(held.packs[chunk.index], chunk.live);
    });
    return team.part_max(widened<float>(maxima.either(false)));
  } else {
    constexpr float kLowest = -__builtin_huge_valf();
    auto most = team.fill(kLowest);
    team.each(size, [&](const Chunk& chunk) { most = max(most, team.only(chunk, held[chunk], kLowest)); });
    return team.part_max(most);
  }
}
/// One element, by its index in the row, for all threads.
template <class Team, class T>
ROOFTILE_TILE typename Team::Real element(const Team&, const Row<const T>& x, std::int64_t index) {
  return widen<typename Team::Real>(x.data[index * x.stride]);
}

}  // namespace cuda
}  // namespace rooftile::tile
