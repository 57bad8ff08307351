#include <algorithm>
#include <limits>

#include "rooftile/ops/sampling/sampling.problem.h"
#include "rooftile/ops/sampling/sampling.tile.h"
#include "rooftile/tile/cpu/launch.h"

namespace rooftile {
namespace {
using namespace tile;
using namespace kernels;

constexpr int kLanesOf = tile::kLanes<float>;

/// Whether any lane is larger than 0.
template <class Team, class M>
ROOFTILE_TILE bool any(const Team& team, const M& mask) {
  return team.max(select(mask, team.fill(1), team.fill(0))) > 0;
}

// ---- a list of the largest

/// Placed keys, the largest first.
struct Listed {
  int k, count = 0;
  float bound = -kInfinity;  ///< of a full list, the last one's value; NaN: nothing takes its place
  std::uint64_t keys[kMaxListed] = {};

  bool full() const { return count == k; }
  __attribute__((noinline)) void add(const float* values, int live, std::int64_t first) {
    for (int i = 0; i < live; ++i) {
      const std::uint64_t key = placed_key(values[i], first + i);
      if (full() && key < keys[k - 1]) continue;
      int at = full() ? k - 1 : count++;
      for (; at > 0 && keys[at - 1] < key; --at) keys[at] = keys[at - 1];
      keys[at] = key;
    }
    if (!full()) return;
    const auto last = static_cast<std::uint32_t>(keys[k - 1] >> 32);
    bound = last == kNanKey ? std::numeric_limits<float>::quiet_NaN() : value_of(last);
  }
};

// [listed]
/// The k largest in one pass: a chunk with nothing above the k-th so far costs a comparison.
template <class Team, class T>
ROOFTILE_TILE void list_row(Team team, const Row<const T>& x, Listed& list) {
  const auto held = team.hold(x, -kInfinity);
  team.each(x.size, [&](auto chunk) ROOFTILE_INLINE {
    const typename Team::Tile its = held[chunk];
    if (list.full() && (list.bound != list.bound || !any(team, (its > list.bound) | (its != its)))) return;
    alignas(64) float values[kLanesOf];
    store_whole(values, its);
    list.add(values, chunk.live, chunk.first);
  });
}
// [/listed]

/// Calls body(team, row, its index) for each row.
template <int kOperands, class Body>
void for_each(const CpuLaunch& launch, const Rows<kOperands>& rows, const void* data, DType dtype,
              Body body) {
  const std::int64_t bytes = rows.rows * rows.columns * bits(dtype) / 8;
  const bool dense = rows.columns <= 1 || rows.column_stride[0] == 1;
  with_access(dense, bytes > launch.streaming_bytes, [&]<Access kAccess>() {
    with_row_type<kAccess>(dtype, [&]<class T>() {
      for_programs(launch, rows.rows, bytes,
                   [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                     for (std::int64_t row = begin; row < end; ++row)
                       body(CpuTeam<float, kAccess>(scratch, dtype), row_of<const T>(rows, 0, data, row, end),
                            row, scratch);
                   });
    });
  });
}

void launch_top_k(const CpuLaunch& launch, const TopKProblem& p) {
  using P = TopKProblem;
  for_each(launch, p.rows, p.x, p.dtype,
           [&](const auto& team, const auto& x, std::int64_t row, const ThreadScratch&) ROOFTILE_INLINE {
             Listed list{p.k};
             list_row(team, x, list);
             std::int64_t* indices = p.indices + p.rows.offset(P::kIndices, row);
             auto* values = static_cast<std::byte*>(p.values);
             const std::int64_t width = bits(p.dtype) / 8, first = p.rows.offset(P::kValues, row);
             for (int i = 0; i < p.k; ++i) {
               const std::int64_t place = place_of(list.keys[i]);
               indices[i * p.index_stride] = place;
               std::copy_n(reinterpret_cast<const std::byte*>(x.data + place * x.stride), width,
                           values + (first + i * p.value_stride) * width);
             }
           });
}

// ---- a row's token by its digits

/// What a pass needs of a row whose type only it knows.
struct Pass {
  float least, most;  ///< the range of logits whose chunks are looked at
  float row_max, scale;
  void* context;
  /// Of a chunk: its logits and weights.
  void (*chunk)(void* context, const float* values, const std::int32_t* weights, std::int64_t first,
                int live);
};

template <class Team, class T>
ROOFTILE_TILE void pass_over(Team team, const Row<const T>& x, const Pass& pass) {
  const auto held = team.hold(x, -kInfinity);
  team.each(x.size, [&](auto chunk) ROOFTILE_INLINE {
    const typename Team::Tile its = held[chunk];
    if (!any(team, (its >= pass.least) & (its <= pass.most))) return;
    // weight_of(), lane by lane.
    const auto share = select(its == pass.row_max, team.fill(0), (its - pass.row_max) * pass.scale);
    const auto t = max(share, -31.0f);
    const auto n = convert<std::int32_t>(t);
    const auto power = bit_cast<float>((n + std::int32_t{157}) << 23);
    alignas(64) float values[kLanesOf];
    alignas(64) std::int32_t weights[kLanesOf];
    store_whole(values, its);
    store_whole(weights, convert<std::int32_t>(exp2_below(t - convert<float>(n)) * power));
    pass.chunk(pass.context, values, weights, chunk.first, chunk.live);
  });
}
template <class Team, class T>
ROOFTILE_TILE std::uint32_t largest_key(Team team, const Row<const T>& x) {
  auto most = team.fill(-kInfinity), nans = team.fill(0);
  const auto held = team.hold(x, -kInfinity);
  team.each(x.size, [&](auto chunk) ROOFTILE_INLINE {
    const typename Team::Tile its = held[chunk];
    nans = select(its != its, team.fill(1), nans);
    most = max(its, most);
  });
  return team.max(nans) > 0 ? kNanKey : key_of(team.max(most));
}

/// The Row of sampling.tile.h.
class SampledRow {
 public:
  SampledRow(const void* row, void (*pass)(const void*, const Pass&), std::uint32_t largest,
             std::uint64_t* histograms)
      : row_(row), pass_(pass), largest_(largest), first_(histograms), bins_(histograms + kDigits) {}

  std::uint32_t largest() const { return largest_; }
  void scaled_by(float row_max, float scale) { row_max_ = row_max, scale_ = scale; }

  int find(int level, std::uint32_t prefix, bool weighs, std::uint64_t target, std::uint64_t& above) {
    // The first digits' weights are the same for each search.
    std::uint64_t* bins = level == 0 && weighs ? first_ : bins_;
    if (bins != first_ || !has_first_) {
      std::fill_n(bins, kDigits, 0);
      each_key(prefix, level == 0 ? ~0u : prefix | ((1u << digit_shift(level - 1)) - 1),
               [=](std::uint32_t key, std::uint32_t weight, std::int64_t) {
                 bins[digit_of(key, level)] += weighs ? weight : 1;
               });
      has_first_ = has_first_ || bins == first_;
    }
    int digit = kDigits - 1;
    for (; digit > 0 && above + bins[digit] <= target; --digit) above += bins[digit];
    return digit;
  }
  std::uint64_t weights_from(std::uint32_t key) {
    std::uint64_t sum = 0;
    each_key(key, ~0u, [&](std::uint32_t, std::uint32_t weight, std::int64_t) { sum += weight; });
    return sum;
  }
  std::uint64_t weights_of(float share) {
    std::uint64_t sum = 0;
    each_key(0, ~0u, [&](std::uint32_t key, std::uint32_t weight, std::int64_t) {
      if (log2_share(value_of(key), row_max_, scale_) >= share) sum += weight;
    });
    return sum;
  }
  std::int64_t nth(std::uint32_t key, std::uint64_t n) {
    std::int64_t place = -1;
    each_key(key, key, [&](std::uint32_t, std::uint32_t, std::int64_t at) {
      if (n-- == 0) place = at;
    });
    return place;
  }

 private:
  /// Calls body(key, weight, place) for keys from `least` to `most`, in the row's order.
  template <class Body>
  void each_key(std::uint32_t least, std::uint32_t most, Body body) {
    struct Context {
      std::uint32_t least, most;
      Body& body;
    } context{std::max(least, kLeastKey), std::min(most, kMostKey), body};
    pass_(row_,
          {value_of(context.least), value_of(context.most), row_max_, scale_, &context,
           [](void* its, const float* values, const std::int32_t* weights, std::int64_t first, int live) {
             Context& c = *static_cast<Context*>(its);
             for (int i = 0; i < live; ++i)
               if (const std::uint32_t key = key_of(values[i]); key >= c.least && key <= c.most)
                 c.body(key, static_cast<std::uint32_t>(weights[i]), first + i);
           }});
  }

  const void* row_;
  void (*pass_)(const void*, const Pass&);
  std::uint32_t largest_;
  std::uint64_t *first_, *bins_;
  float row_max_ = 0, scale_ = 0;
  bool has_first_ = false;
};

template <class Team, class T>
struct TeamRow {
  Team team;
  Row<const T> x;
  __attribute__((noinline)) static void pass(const void* its, const Pass& pass) {
    const auto& row = *static_cast<const TeamRow*>(its);
    pass_over(row.team, row.x, pass);
  }
};

void launch_sample(const CpuLaunch& launch, const SampleProblem& given) {
  const SampleProblem p = given.ruled();
  static_assert(2 * kDigits * sizeof(std::uint64_t) <= kScratchBytes);
  const int listed = p.listed();
  for_each(launch, p.rows, p.logits, p.dtype,
           [&]<class Team, class T>(const Team& team, const Row<const T>& x, std::int64_t row,
                                    const ThreadScratch& scratch) ROOFTILE_INLINE {
             std::int64_t& token = p.token[p.rows.offset(SampleProblem::kToken, row)];
             const std::uint64_t random = p.random(row);
             if (listed > 0 || x.size == 0) {
               Listed list{listed};
               if (listed > 0) list_row(team, x, list);
               token = token_of_list([&](int i) { return list.keys[i]; }, list.count, p.rule, random);
               return;
             }
             const TeamRow<Team, T> its{team, x};
             SampledRow sampled(&its, its.pass, largest_key(team, x),
                                reinterpret_cast<std::uint64_t*>(scratch.begin));
             token = token_of_row(sampled, x.size, p.rule, random);
           });
}

}  // namespace

ROOFTILE_CPU_KERNELS(sampling) = {
    entry<launch_top_k>("top_k", "tile"),
    entry<launch_sample>("sample", "tile"),
    {},
};

}  // namespace rooftile
