#include <algorithm>

#include "rooftile/ops/sampling/sampling.problem.h"
#include "rooftile/ops/sampling/sampling.tile.h"
#include "rooftile/tile/cuda/elements.h"

namespace rooftile {
namespace {
using namespace tile;
using Word = unsigned long long;  // what atomicAdd takes

/// Threads of a block, one row's: of rows of up to kShort columns a warp, since more would have no element.
constexpr int kWarpThreads = kWarp, kListThreads = 256, kSearchThreads = 512;
constexpr std::int64_t kShort = 1024;

template <class T>
constexpr int kLanesOf = 16 / int(sizeof(T));
template <class T, Access kAccess, int kThreads>
using TeamOf = CudaTeam<float, kLanesOf<T>, 0, kAccess, kThreads == kWarp ? Scope::warp : Scope::block>;

template <class Team, class T, int kOperands>
ROOFTILE_TILE Row<const T> row_at(const Rows<kOperands>& rows, const void* data, std::int64_t row) {
  return row_of<const T, Team>(rows, 0, data, RowRange{row, 0, 1, 0, rows.columns}, 0);
}

// ---- a list of the largest

/// What waits to be ranked, in any order, and the largest of what was.
template <int kThreads, int kStep>
struct ListMemory {
  static constexpr int kSoon = 256, kCapacity = kMaxListed + kSoon + kStep;
  std::uint64_t pool[kCapacity], best[kMaxListed], maxima[kThreads], bound;
  int count;
};

/// Ranks the pool: each one's rank is how many are larger. No order of threads shows, as no two are equal.
template <int kThreads, int kStep>
ROOFTILE_TILE void rank(ListMemory<kThreads, kStep>& m, int count, int k) {
  const int thread = static_cast<int>(threadIdx.x), kept = count < k ? count : k;
  for (int i = thread; i < count; i += kThreads) {
    const std::uint64_t key = m.pool[i];
    int larger = 0;
    for (int j = 0; j < count; ++j) larger += m.pool[j] > key;
    if (larger < k) m.best[larger] = key;
  }
  __syncthreads();
  for (int i = thread; i < kept; i += kThreads) m.pool[i] = m.best[i];
  if (thread == 0) {
    m.count = kept;
    if (count >= k && m.best[k - 1] > m.bound) m.bound = m.best[k - 1];
  }
  __syncthreads();
}

// [listed]
/// The k largest in one pass: kTimes loads of each thread are in flight, and a step in which nothing is above
/// the bound ends at its one barrier. Where k threads and more have something, the k-th of these threads'
/// largest is a bound, too: of a row in ascending order it keeps nearly all out of the pool.
template <int kThreads, class Team, class T, class Memory>
ROOFTILE_TILE void list_row(const Team& team, const Row<const T>& x, int k, Memory& m) {
  constexpr int N = Team::kLanes, kTimes = 16 / N, kStep = kThreads * N;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) m.count = 0, m.bound = 0;
  __syncthreads();
  for (std::int64_t first = 0; first < x.size; first += kTimes * kStep) {
    typename Team::Tile tiles[kTimes];
    const std::int64_t mine = first + thread * N;
    ROOFTILE_UNROLL for (int u = 0; u < kTimes; ++u) {
      const std::int64_t at = mine + u * kStep;
      tiles[u] = team.load(x, Chunk{0, at, x.size - at}, -kInfinity);
    }
    std::uint64_t bound = m.bound, most = 0;
    const auto key = [&](int u, int i) -> std::uint64_t {
      const std::int64_t at = mine + u * kStep + i;
      return at < x.size ? placed_key(tiles[u].v[i], at) : 0;
    };
    ROOFTILE_UNROLL for (int u = 0; u < kTimes; ++u) ROOFTILE_EACH_LANE(N) most = larger(most, key(u, i));
    const int threads = __syncthreads_count(most > bound);
    if (threads == 0) continue;
    if (threads >= k) {
      m.maxima[thread] = most;
      __syncthreads();
      int larger = 0;
      for (int j = 0; j < kThreads; ++j) larger += m.maxima[j] > most;
      if (larger == k - 1 && most > bound) m.bound = most - 1;
      __syncthreads();
      bound = m.bound;
    }
    ROOFTILE_UNROLL for (int u = 0; u < kTimes; ++u) {
      ROOFTILE_EACH_LANE(N) {
        if (const std::uint64_t its = key(u, i); its > bound) m.pool[atomicAdd(&m.count, 1)] = its;
      }
      __syncthreads();
      const int count = m.count;
      __syncthreads();
      if (count + kStep > Memory::kCapacity || (u == kTimes - 1 && count > Memory::kSoon)) rank(m, count, k);
    }
  }
  const int count = m.count;
  __syncthreads();
  rank(m, count, k);
}
// [/listed]

template <class T, Access kAccess, int kThreads>
__global__ void __launch_bounds__(kThreads) top_k_rows(const __grid_constant__ TopKProblem p) {
  using P = TopKProblem;
  using Team = TeamOf<T, kAccess, kThreads>;
  using Memory = ListMemory<kThreads, kThreads * Team::kLanes>;
  ROOFTILE_SHARED(memory, Memory);
  Rounds rounds;
  const Team team(kThreads, rounds);
  for (std::int64_t row = blockIdx.x; row < p.rows.rows; row += gridDim.x) {
    const auto x = row_at<Team, T>(p.rows, p.x, row);
    list_row<kThreads>(team, x, p.k, memory);
    T* values = static_cast<T*>(p.values) + offset_of(p.rows, P::kValues, row);
    std::int64_t* indices = p.indices + offset_of(p.rows, P::kIndices, row);
    for (int i = static_cast<int>(threadIdx.x); i < p.k; i += kThreads) {
      const std::int64_t place = place_of(memory.best[i]);
      indices[i * p.index_stride] = place;
      values[i * p.value_stride] = x.data[place * x.stride];
    }
  }
}

template <class T, Access kAccess, int kThreads>
__global__ void __launch_bounds__(kThreads)
    sample_lists(const __grid_constant__ SampleProblem p, int listed) {
  using Team = TeamOf<T, kAccess, kThreads>;
  using Memory = ListMemory<kThreads, kThreads * Team::kLanes>;
  ROOFTILE_SHARED(memory, Memory);
  Rounds rounds;
  const Team team(kThreads, rounds);
  for (std::int64_t row = blockIdx.x; row < p.rows.rows; row += gridDim.x) {
    if (listed > 0) list_row<kThreads>(team, row_at<Team, T>(p.rows, p.logits, row), listed, memory);
    if (threadIdx.x == 0)
      p.token[offset_of(p.rows, SampleProblem::kToken, row)] =
          kernels::token_of_list([&](int i) { return memory.best[i]; }, listed, p.rule, p.random(row));
  }
}

// ---- a row's token by its digits

struct SearchMemory {
  Word first[kernels::kDigits], bins[kernels::kDigits], totals[kSearchThreads / kWarp], above;
  std::uint32_t keys[kSearchThreads / kWarp];
  std::int64_t place;
  int digit;
};

/// The Row of sampling.tile.h. All threads of the block make each call, and get the same result.
template <class Team, class T>
class BlockRow {
 public:
  ROOFTILE_TILE BlockRow(const Team& team, const Row<const T>& x, SearchMemory& memory)
      : team_(team), x_(x), m_(memory), thread_(static_cast<int>(threadIdx.x)) {}

  ROOFTILE_TILE void scaled_by(float row_max, float scale) { row_max_ = row_max, scale_ = scale; }

  ROOFTILE_TILE std::uint32_t largest() {
    std::uint32_t most = 0;
    each([&](float value, std::int64_t) { most = larger(most, key_of(value)); });
    for (int far = kWarp / 2; far > 0; far /= 2) most = larger(most, __shfl_xor_sync(kAllLanes, most, far));
    if (thread_ % kWarp == 0) m_.keys[thread_ / kWarp] = most;
    __syncthreads();
    for (const std::uint32_t key : m_.keys) most = larger(most, key);
    __syncthreads();
    return most;
  }

  ROOFTILE_TILE int find(int level, std::uint32_t prefix, bool weighs, std::uint64_t target,
                         std::uint64_t& above) {
    Word* bins = level == 0 && weighs ? m_.first : m_.bins;
    if (bins != m_.first || !has_first_) {
      has_first_ = has_first_ || bins == m_.first;
      for (int d = thread_; d < kernels::kDigits; d += kSearchThreads) bins[d] = 0;
      __syncthreads();
      each([&](float value, std::int64_t) {
        const std::uint32_t key = key_of(value);
        if (!kernels::has_prefix(key, prefix, level)) return;
        const Word count = weighs ? weight(value) : 1;
        if (count != 0) atomicAdd(bins + kernels::digit_of(key, level), count);
      });
      __syncthreads();
    }
    // A thread has neighbouring digits, the first thread the largest ones.
    constexpr int kEach = kernels::kDigits / kSearchThreads;
    const int from = kernels::kDigits - 1 - thread_ * kEach;
    Word mine = 0;
    ROOFTILE_UNROLL for (int i = 0; i < kEach; ++i) mine += bins[from - i];
    Word before = above + scan(mine).before;
    if (before <= target && target < before + mine) {
      int digit = from;
      for (; before + bins[digit] <= target; --digit) before += bins[digit];
      m_.digit = digit;
      m_.above = before;
    }
    __syncthreads();
    above = m_.above;
    const int digit = m_.digit;
    __syncthreads();
    return digit;
  }
  ROOFTILE_TILE std::uint64_t weights_from(std::uint32_t key) {
    Word sum = 0;
    each([&](float value, std::int64_t) { sum += key_of(value) >= key ? weight(value) : 0; });
    return scan(sum).all;
  }
  ROOFTILE_TILE std::uint64_t weights_of(float share) {
    Word sum = 0;
    each([&](float value, std::int64_t) {
      const float t = log2_share(value, row_max_, scale_);
      sum += t >= share ? weight_of(t) : 0;
    });
    return scan(sum).all;
  }
  ROOFTILE_TILE std::int64_t nth(std::uint32_t key, std::uint64_t n) {
    const std::int64_t step = std::int64_t{kSearchThreads} * Team::kLanes;
    Word seen = 0;
    for (std::int64_t first = 0; first < x_.size && seen <= n; first += step) {
      const std::int64_t mine = first + thread_ * Team::kLanes;
      const auto values = team_.load(x_, Chunk{0, mine, x_.size - mine}, -kInfinity);
      Word count = 0;
      ROOFTILE_EACH_LANE(Team::kLanes) count += mine + i < x_.size && key_of(values.v[i]) == key;
      if (!__syncthreads_or(count != 0)) continue;
      const Scanned scanned = scan(count);
      Word before = seen + scanned.before;
      ROOFTILE_EACH_LANE(Team::kLanes) {
        if (mine + i < x_.size && key_of(values.v[i]) == key && before++ == n) m_.place = mine + i;
      }
      seen += scanned.all;
    }
    __syncthreads();
    return m_.place;
  }

 private:
  struct Scanned {
    Word before, all;
  };
  /// What the threads before this one have, and all.
  ROOFTILE_TILE Scanned scan(Word mine) {
    Word sum = mine;
    for (int far = 1; far < kWarp; far *= 2) {
      const Word others = __shfl_up_sync(kAllLanes, sum, static_cast<unsigned>(far));
      if (thread_ % kWarp >= far) sum += others;
    }
    if (thread_ % kWarp == kWarp - 1) m_.totals[thread_ / kWarp] = sum;
    __syncthreads();
    Word before = 0, all = 0;
    for (int w = 0; w < kSearchThreads / kWarp; ++w) {
      if (w == thread_ / kWarp) before = all;
      all += m_.totals[w];
    }
    __syncthreads();
    return {before + sum - mine, all};
  }
  ROOFTILE_TILE std::uint32_t weight(float value) const {
    return weight_of(log2_share(value, row_max_, scale_));
  }
  template <class Body>
  ROOFTILE_TILE void each(Body&& body) const {
    team_.each(x_.size, [&](const Chunk& chunk) {
      const auto values = team_.load(x_, chunk, -kInfinity);
      ROOFTILE_EACH_LANE(Team::kLanes) {
        if (i < chunk.live) body(values.v[i], chunk.first + i);
      }
    });
  }

  const Team& team_;
  const Row<const T>& x_;
  SearchMemory& m_;
  int thread_;
  float row_max_ = 0, scale_ = 0;
  bool has_first_ = false;
};

template <class T, Access kAccess>
__global__ void __launch_bounds__(kSearchThreads) sample_rows(const __grid_constant__ SampleProblem p) {
  using Team = TeamOf<T, kAccess, kSearchThreads>;
  ROOFTILE_SHARED(memory, SearchMemory);
  Rounds rounds;
  const Team team(kSearchThreads, rounds);
  for (std::int64_t row = blockIdx.x; row < p.rows.rows; row += gridDim.x) {
    const auto x = row_at<Team, T>(p.rows, p.logits, row);
    BlockRow<Team, T> its(team, x, memory);
    const std::int64_t token = kernels::token_of_row(its, x.size, p.rule, p.random(row));
    if (threadIdx.x == 0) p.token[offset_of(p.rows, SampleProblem::kToken, row)] = token;
    __syncthreads();
  }
}

// ---- launches: a block for each row

template <class Problem, class... A>
Status launch_rows(const CudaLaunch& launch, const char* name, const Problem& p, int threads,
                   void (*kernel)(Problem, A...), const A&... more) {
  const std::int64_t blocks = std::min(p.rows.rows, kMaxBlocks);
  return rooftile::cuda::launch(launch, name, {static_cast<unsigned>(blocks), static_cast<unsigned>(threads)},
                                kernel, p, more...);
}

Status launch_top_k(const CudaLaunch& launch, const TopKProblem& p) {
  if (p.rows.rows == 0) return {};
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
    const auto run = [&]<int kThreads>() {
      return launch_rows(launch, "top_k", p, kThreads,
                         aligned_rows(p.rows, 0, p.x, sizeof(T)) ? top_k_rows<T, Access::aligned, kThreads>
                                                                 : top_k_rows<T, Access::any, kThreads>);
    };
    return p.rows.columns <= kShort ? run.template operator()<kWarpThreads>()
                                    : run.template operator()<kListThreads>();
  });
}

Status launch_sample(const CudaLaunch& launch, const SampleProblem& given) {
  if (given.rows.rows == 0) return {};
  const SampleProblem p = given.ruled();
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
    const bool aligned = aligned_rows(p.rows, 0, p.logits, sizeof(T));
    const int listed = p.listed();
    if (listed == 0 && p.rows.columns > 0)
      return launch_rows(launch, "sample", p, kSearchThreads,
                         aligned ? sample_rows<T, Access::aligned> : sample_rows<T, Access::any>);
    const auto run = [&]<int kThreads>() {
      return launch_rows(
          launch, "sample", p, kThreads,
          aligned ? sample_lists<T, Access::aligned, kThreads> : sample_lists<T, Access::any, kThreads>,
          listed);
    };
    return p.rows.columns <= kShort ? run.template operator()<kWarpThreads>()
                                    : run.template operator()<kListThreads>();
  });
}

}  // namespace

ROOFTILE_CUDA_KERNELS(sampling) = {
    entry<launch_top_k>("top_k", "tile"),
    entry<launch_sample>("sample", "tile"),
    {},
};

}  // namespace rooftile
