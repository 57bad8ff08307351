#include "rooftile/ops/layer_norm/ladder/ladder.h"
#include "rooftile/ops/layer_norm/layer_norm.problem.h"
#include "rooftile/ops/layer_norm/layer_norm.weights.h"
#include "rooftile/ops/layer_norm/layer_norm_backward.tile.h"
#include "rooftile/tile/cuda/launch.h"

namespace rooftile {
namespace {
using namespace tile;
using namespace layer_norm_weights;

template <class T, class Team, class Problem>
ROOFTILE_TILE Row<const T> input_of(const Problem& p, int operand, const Walk& walk, std::int64_t i,
                                    bool optional = false) {
  bool alone = false;
  for (int o = 0; o < Problem::kOperands; ++o)
    alone = alone || (o != operand && p.data[o] == p.data[operand]);
  return row_of<const T, Team>(p.rows, operand, p.data[operand], walk, i, alone, optional);
}
template <class T, class Team, class Problem>
ROOFTILE_TILE Row<T> output_of(const Problem& p, int operand, const Walk& walk, std::int64_t i,
                               bool optional = true) {
  return row_of<T, Team>(p.rows, operand, p.data[operand], walk, i, false, optional);
}
/// Where the row's value of an operand that has one for each row lies; null: nowhere.
template <class Team, class Problem>
ROOFTILE_TILE float* value_of(const Problem& p, int operand, const Walk& walk, std::int64_t i) {
  if (!p.data[operand]) return nullptr;
  float* first = static_cast<float*>(const_cast<void*>(p.data[operand]));
  const std::int64_t row = walk.row + i * walk.step;
  if constexpr (Team::kStaged) {
    if (row >= p.rows.rows) return nullptr;
    // In two parts, of which all rows of a block have one in common.
    return first + offset_for<Team>(p.rows, operand, walk.row) +
           i * offset_for<Team>(p.rows, operand, walk.step);
  }
  return first + offset_for<Team>(p.rows, operand, row);
}

constexpr int kShortThreads = 256, kShortElements = 32;
/// Elements of a weight that is not given.
constexpr float kAbsentWeight = 1, kAbsentBias = 0;
/// Operands that are staged behind those that have rows.
constexpr int kWeight = LayerNormProblem::kSum + 1, kBias = kWeight + 1;
constexpr int kGradientWeight = LayerNormBackwardProblem::kDx + 1;

/// W: the weights' type. kLong: of rows that more than kShortThreads hold. Their threads have 64 registers,
/// and the weights are in shared memory while rows stream: a multiprocessor has one or two blocks
/// (4096x16384, H200: bf16 73 µs; with one row to a block 86). But see kParts.
///
/// Of short 16-bit rows, warps have 80 registers (65536x1024: 71 µs; with 64 72) and blocks 64 (with 80 f16
/// 8192x4096 takes 39.1 µs and not 39.7, but bf16 8192x8192 74.9 and not 70.4).
template <class T, bool kAdds, class W, bool kLong>
struct Forward {
  static constexpr bool kSame = std::is_same_v<T, W>, kHalf = sizeof(T) == 2;
  static constexpr int kElements = kLong && !kHalf ? 16 : kShortElements;
  static constexpr int kHeldThreads = kLong ? 1024 : kShortThreads;
  static constexpr Clusters kClusters{kHeldThreads, kHeldThreads, 512, kElements / (16 / int(sizeof(T)))};
  /// Rows that begin anywhere, H200: f32 4096x16383 211 µs, so 164, 2048x32767 255 and 217; bf16 120 and 125,
  /// 148 and 135; shorter ones f32 16384x4095 149 and 172.
  static constexpr Streaming kStreaming{kLong ? Span::block : Span::any, 1 + kAdds, 1024,
                                        !kLong  ? Span::any
                                        : kHalf ? Span::cluster
                                                : Span::block};
  /// H200, streaming and so: f32 4096x16384 139.8 µs and 136, 4096x12288 106.4 and 102.8. Of 16 bits the
  /// compiler runs out of registers (bf16 4096x16384 73, 83).
  static constexpr int kParts = kLong && !kAdds && !kHalf ? 4 : 1;
  static constexpr Span kShortest = kLong ? Span::block : Span::warp,
                        kLongest = kLong ? Span::any : Span::block;
  static constexpr bool kRare = !kSame;
  /// bf16 65536x768, H200: with all chunks 69 µs, without empty ones 62; but f32 65536x1000 134 and 137.
  static constexpr bool kStages = !kLong, kSkips = !kLong && kHalf;
  /// 524288x64, H200: with two threads bf16 42 µs and f32 78, with four 48 and 87, with eight 108 and 136.
  static constexpr int least_threads(std::int64_t) { return 2; }
  static constexpr int least_blocks(Span span) {
    if (kLong) return 1;
    if (span == Span::warp) return kHalf ? 6 : 4;
    return kHalf ? 4 : 2;
  }
  static constexpr int kept(Span span) {
    if (!kSame || (kLong && kAdds)) return 0;
    return kLong || (kHalf && span == Span::block) ? 2 : 0;
  }
  /// H200, µs with none late, an eighth in ones, a quarter in twos: bf16 4096x16384 75.4, 73.7, 74.8,
  /// 2048x32768 76.5, 74.8, 75.0. A cluster with one row alone pays for its start: 512x131072 with a quarter
  /// in twos bf16 78.9, f32 146.3, with an eighth 77.1 and 144.4.
  static constexpr Late late(const RowShape& shape) {
    if (shape.cluster > 1) return {12, 2};
    return kHalf ? Late{12, 1} : Late{25, 2};
  }
  LayerNormProblem p;
  float each_one;  // 1 / columns, of the host: before the first load, a division would hold up short rows
  /// A residual or none is a branch where rows lie anyhow, and of 16-bit blocks (H200, with one kernel for
  /// each: f16 32768x1536 65.3 µs, so 61.8, 8192x4000 43.0 and 39.9; but f32 32768x1536 104.8 and 111, of
  /// warps bf16 65536x1000 76.4 and 78.5, staged 524288x100 72.5 and 77.5, strided 16384x4095 92.2 and 93.7).
  /// Where rows are no words, threads have as many 16-bit elements at all lengths.
  template <Access kAccess, Span kSpan>
  auto serving() const {
    constexpr bool kEither = kAccess == Access::any || (kHalf && in_words(kAccess) && kSpan == Span::block);
    constexpr bool kAnyLength = kHalf && !in_words(kAccess) && kSpan != Span::warp;
    return Forward<T, (kAdds || kEither), W, (kLong || kAnyLength)>{p, each_one};
  }
  Places places() const {
    using P = LayerNormProblem;
    Places places = touching_places(
        p.rows,
        {{p.data[P::kX]}, {p.data[P::kResidual]}, {p.data[P::kY], P::kX}, {p.data[P::kSum], P::kResidual}});
    places.add_vector(kWeight);
    places.add_vector(kBias);
    return places;
  }
  template <class Rows, class Vectors>
  ROOFTILE_TILE void each_staged(const Rows& rows, const Vectors& vectors) const {
    using P = LayerNormProblem;
    ROOFTILE_UNROLL for (int o = P::kX; o <= P::kSum; ++o)
        rows(o, static_cast<const T*>(p.data[o]), o == P::kY || o == P::kSum);
    vectors(kWeight, static_cast<const W*>(p.weight.data), kAbsentWeight);
    vectors(kBias, static_cast<const W*>(p.bias.data), kAbsentBias);
  }

  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const Walk& walk) const {
    using P = LayerNormProblem;
    const auto row_at = [&](std::int64_t i) {
      kernels::LayerNormRow<T> r{
          input_of<T, Team>(p, P::kX, walk, i),         {},
          output_of<T, Team>(p, P::kY, walk, i, false), output_of<T, Team>(p, P::kSum, walk, i),
          value_of<Team>(p, P::kMean, walk, i),         value_of<Team>(p, P::kRstd, walk, i)};
      if constexpr (kAdds) r.residual = input_of<T, Team>(p, P::kResidual, walk, i, !Team::kStreams);
      r.residual.slot = 1;
      return r;
    };
    const auto run = [&](const auto& weight, const auto& bias) {
      team.ask(row_at(0).x);
      if constexpr (kAdds) team.ask(row_at(0).residual);
      if constexpr (Team::kStreams && Team::kVectors > 0) {
        weight.ask_once(team);
        bias.ask_once(team);
      }
      kernels::layer_norm<T, kAdds, Team::kHoldsRows>(team, 0, walk.count, row_at, weight, bias, p.eps,
                                                      each_one);
    };
    // One word after the other, a warp's four times as many would wait for each other (f32 4096x16384, H200:
    // 141.7 µs, so 136).
    constexpr bool kAhead = !kLong || sizeof(W) == 2 || Team::kParts > 1;
    const auto weight = weight_of<W, kAhead>(p.weight, walk, kAbsentWeight),
               bias = weight_of<W, kAhead>(p.bias, walk, kAbsentBias);
    if constexpr (Team::kStaged)
      run(StagedWeight(walk.stage, kWeight), StagedWeight(walk.stage, kBias));
    else if constexpr (Team::kVectors > 0)
      run(KeptWeight<W, Team>(weight, 0), KeptWeight<W, Team>(bias, 1));
    else if constexpr (Team::kStreams && Team::kSpan == Span::block && !kAdds && !in_words(Team::kReads))
      run(PackedWeight<W, Team>(team, weight, walk.size), PackedWeight<W, Team>(team, bias, walk.size));
    else
      run(weight, bias);
  }
};

/// Calls f with the weights' type.
template <class T, class F>
Status with_weights(DType weights, F&& f) {
  if constexpr (sizeof(T) != sizeof(float))
    if (weights != DType::f32) return f.template operator()<T>();
  return f.template operator()<float>();
}

Layout layout_of(const LayerNormColumns& c, std::int64_t columns) {
  if (c.data && c.stride != 1 && columns > 1) return Layout::apart;
  return reinterpret_cast<std::uintptr_t>(c.data) % 16 == 0 ? Layout::words : Layout::neighbours;
}

Status launch_forward(const CudaLaunch& launch, const LayerNormProblem& p) {
  using P = LayerNormProblem;
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
    constexpr int kLanes = 16 / int(sizeof(T));
    Layout layout = std::max(layout_of(p.weight, p.rows.columns), layout_of(p.bias, p.rows.columns));
    for (int o : {P::kX, P::kResidual, P::kY, P::kSum})
      if (p.data[o]) layout = std::max(layout, tile::layout_of(p.rows, o, p.data[o], sizeof(T)));
    const auto run = [&]<class Program>(const Program& program) {
      return for_rows<kLanes, Program::kElements / kLanes>(launch, "layer_norm", p.rows.rows, layout,
                                                           program);
    };
    const auto with = [&]<class W, bool kLong>() {
      const float each_one = 1 / static_cast<float>(p.rows.columns);
      return p.data[P::kResidual] ? run(Forward<T, true, W, kLong>{p, each_one})
                                  : run(Forward<T, false, W, kLong>{p, each_one});
    };
    return with_weights<T>(p.weight_dtype, [&]<class W>() {
      return p.rows.columns > kShortThreads * kShortElements ? with.template operator()<W, true>()
                                                             : with.template operator()<W, false>();
    });
  });
}

/// A block of rows is a team's, or that of a block's teams: its weight gradients stay in registers all the
/// while. It follows from the shape alone which rows these are.
template <class T, class W>
struct Backward {
  static constexpr bool kSame = std::is_same_v<T, W>;
  static constexpr int kHeldThreads = 512;
  /// A block waits for its neighbours, and is not there before all of them are: bf16 4096x16384, H200, two
  /// blocks 129 µs, four 185.
  static constexpr Clusters kClusters{512, 512, 512, int(sizeof(T))};
  /// Rows that begin anywhere, H200: bf16 16384x4095 214 µs, so 141; f32 224 and 228.
  static constexpr Streaming kStreaming{Span::warp, 2, 512,
                                        sizeof(T) == sizeof(float) ? Span::cluster : Span::block};
  static constexpr Span kShortest = Span::warp, kLongest = Span::any;
  static constexpr bool kRare = !kSame;
  static constexpr int least_blocks(Span span) { return span == Span::warp ? 4 : 1; }
  static constexpr int kept(Span) { return kSame ? 1 : 0; }
  static constexpr Late late(const RowShape&) { return {100, 1}; }  // blocks of rows
  static constexpr bool kStages = true, kSkips = false;
  /// f32 2097152x32, H200: 271 µs with four, 318 with two; bf16 220 and 229.
  static constexpr int least_threads(std::int64_t) { return 4; }
  LayerNormBackwardProblem p;
  std::int64_t programs;  // teams that have rows
  int teams;              // of them in a block, which have their sums together

  template <class Team>
  using Gradients = kernels::LayerNormGradients<Team>;
  /// Where the sums of a block of rows go, of the columns that this block of threads has.
  ROOFTILE_TILE Row<float> sums_of(std::int64_t block, bool bias, const Walk& walk) const {
    float* all = p.block_sums(block, bias);
    return {all ? all + walk.first : nullptr, walk.size};
  }
  template <class Team>
  ROOFTILE_TILE kernels::LayerNormBackwardRow<T> row_of(const Walk& walk, std::int64_t i, const float* mean,
                                                        const float* rstd) const {
    using P = LayerNormBackwardProblem;
    kernels::LayerNormBackwardRow<T> r{input_of<T, Team>(p, P::kX, walk, i),
                                       input_of<T, Team>(p, P::kDy, walk, i),
                                       output_of<T, Team>(p, P::kDx, walk, i), *mean, *rstd};
    r.dy.slot = 1;
    return r;
  }

  /// `walk`: one block of rows.
  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const Walk& walk) const {
#if defined(ROOFTILE_HAS_SM90)
    // The sums of shorter rows are not ready that much sooner (f32 524288x100: 190 µs, with this 193).
    if (p.rows.columns > kWarpColumns && (p.dweight.data || p.dbias.data)) rooftile::cuda::let_next_start();
#endif
    const auto weight = weight_of<W, true>(p.weight, walk, kAbsentWeight);
    // There is one. But without the loop other teams' kernels take longer (f32 8192x4096, H200: 109 µs, 112).
    const auto all = [&](const auto& kept) {
      if constexpr (Team::kSharesBlock)
        block(team, walk, walk.row, kept);
      else
        for (std::int64_t i = 0; i < walk.count; ++i) block(team, walk, walk.row + i * walk.step, kept);
    };
    if constexpr (Team::kVectors > 0) {
      const KeptWeight<W, Team> kept(weight, 0);
      kept.ask_once(team);
      all(kept);
    } else if constexpr (Team::kHoldsNext) {
      all(HeldWeight<Team>(team, weight, walk.size));
    } else if constexpr (Team::kStreams && !in_words(Team::kReads)) {
      all(PackedWeight<W, Team>(team, weight, walk.size));
    } else {
      all(weight);
    }
  }
  template <class Team, class Weight>
  ROOFTILE_TILE void block(const Team& team, const Walk& walk, std::int64_t number,
                           const Weight& weight) const {
    using P = LayerNormBackwardProblem;
    constexpr bool kTogether =
        Team::kHoldsRows && Team::kSpan != Span::block && Team::kSpan != Span::cluster && !Team::kStreams;
    const bool shared = kTogether && teams > 1;
    const std::int64_t together =
        shared || Team::kSharesBlock ? programs : layer_norm_gpu_turns(programs, p.rows.columns, p.dtype);
    const std::int64_t turn = number % together, own = number - turn;
    const std::int64_t begin = layer_norm_block_begin(p.rows.rows, programs, own);
    const std::int64_t end = layer_norm_block_begin(p.rows.rows, programs, own + together);
    // All teams of a warp take as many rows as the first of them.
    const std::int64_t first = shared ? turn / teams * teams : turn;
    const Walk rows{begin + turn, together, (end - begin - first + together - 1) / together, walk.first,
                    walk.size};
    const float *mean = nullptr, *rstd = nullptr;
    const auto row_at = [&](std::int64_t i) {
      const bool there = !shared || rows.row + i * rows.step < end;
      Walk at = rows;
      if (!there) at.row = at.step = 0;  // any row that there is
      mean = value_of<Team>(p, P::kMean, at, i);
      rstd = value_of<Team>(p, P::kRstd, at, i);
      if constexpr (Team::kStreams && Team::kSpan != Span::warp)
        mean = per_thread(mean), rstd = per_thread(rstd);  // H200: bf16 2048x32768 138 µs, so 135
      auto r = row_of<Team>(at, i, mean, rstd);
      if (!there) r.mean = r.rstd = 0;
      r.there = there;
      return r;
    };
    // Of rows that one stride walks: five products fewer for each.
    const auto step = [&](int operand) { return offset_for<Team>(p.rows, operand, together); };
    const auto after = [&](kernels::LayerNormBackwardRow<T> r, auto i) {
      if constexpr (!Team::kStreams) return row_at(i);
      r.x.data += step(P::kX);
      r.dy.data += step(P::kDy);
      r.dx.data += step(P::kDx);
      r.mean = *(mean += step(P::kMean));
      r.rstd = *(rstd += step(P::kRstd));
      if (i + 1 == static_cast<decltype(i)>(rows.count)) r.x.ahead = r.dy.ahead = 0;
      return r;
    };
    if constexpr (!Team::kHoldsRows) {
      kernels::layer_norm_backward<T, false>(team, 0, rows.count, row_at, weight,
                                             sums_of(number, false, walk), sums_of(number, true, walk));
    } else {
      // Of rows that stream there are fewer than 2^31.
      using Count = std::conditional_t<Team::kStreams, int, std::int64_t>;
      const auto to = [&](bool bias) {
        return sums_of(Team::kSharesBlock ? blockIdx.x : shared ? number / teams : number, bias, walk);
      };
      constexpr bool kLater = Team::kSharesBlock;  // where registers are scarce
      Gradients<Team> gradients{team.columns(kLater ? Row<float>{} : to(false)),
                                team.columns(kLater ? Row<float>{} : to(true))};
      kernels::layer_norm_backward_held<T>(team, static_cast<Count>(rows.count), row_at(0), after, weight,
                                           gradients);
      if constexpr (kTogether)
        if (shared) return gradients.write_together(teams);
      if constexpr (kLater) {
        gradients.weights.sums = to(false);
        gradients.biases.sums = to(true);
        gradients.write_of_warps(teams);
      } else {
        gradients.write();
      }
    }
  }

  /// The same of rows that are staged, of which a block's teams have one each at a time.
  template <class Team>
  struct Staged {
    const Backward& program;
    const Team& team;
    HeldWeight<Team> weight;
    Gradients<Team> gradients;
    float each_one, mean, rstd;  // of the row that comes next

    ROOFTILE_TILE Staged(const Backward& backward, const Team& its, const Walk& walk, const Stage& vectors,
                         std::int64_t block)
        : program(backward),
          team(its),
          weight(its, StagedWeight(vectors, kGradientWeight), walk.size),
          gradients{team.columns(backward.sums_of(block, false, walk)),
                    team.columns(backward.sums_of(block, true, walk))},
          each_one(1 / static_cast<float>(walk.size)) {
      ask(walk);
    }
    /// For the row's mean and rstd; 0 past the last one, whose elements are so, too.
    ROOFTILE_TILE void ask(const Walk& walk) {
      using P = LayerNormBackwardProblem;
      const float* from = value_of<Team>(program.p, P::kMean, walk, 0);
      mean = from ? *from : 0;
      from = value_of<Team>(program.p, P::kRstd, walk, 0);
      rstd = from ? *from : 0;
    }
    /// `next`: what this team has of the group behind this one.
    ROOFTILE_TILE void operator()(const Walk& walk, const Walk& next) {
      const auto row = program.row_of<Team>(walk, 0, &mean, &rstd);
      ask(next);
      gradients.add(team, row, team.hold(row.x, 0), team.hold(row.dy, 0), weight, each_one, false);
    }
    ROOFTILE_TILE void finish() const { gradients.write_together(program.teams); }
  };
  Places places() const {
    using P = LayerNormBackwardProblem;
    if (teams == 1) return {};
    Places places = touching_places(p.rows, {{p.data[P::kX]}, {p.data[P::kDy]}, {p.data[P::kDx], P::kX}});
    places.add_vector(kGradientWeight);
    return places;
  }
  template <class Rows, class Vectors>
  ROOFTILE_TILE void each_staged(const Rows& rows, const Vectors& vectors) const {
    using P = LayerNormBackwardProblem;
    ROOFTILE_UNROLL for (int o = P::kX; o <= P::kDx; ++o)
        rows(o, static_cast<const T*>(p.data[o]), o == P::kDx);
    vectors(kGradientWeight, static_cast<const W*>(p.weight.data), kAbsentWeight);
  }
};

/// Threads of a block that adds sums. Its columns are neighbours: a line of memory, or of few columns a
/// sector, so that more blocks come to work (bf16 2097152x30, H200: add_blocks alone 32 µs with 32 columns).
constexpr int kAddThreads = 1024, kManyColumns = 2048;

/// A gradient: its blocks' sums, and where it goes.
template <class G>
struct Gradient {
  const float* sums;
  G* to;
  std::int64_t stride;
};
/// The sums of all blocks: groups of neighbours in the blocks' order, then groups in pairs. `teams`: rows of
/// a block, which are added first.
template <class G>
__global__ void __launch_bounds__(kAddThreads)
    add_blocks(Gradient<G> first, Gradient<G> second, std::int64_t blocks, int teams, std::int64_t stride,
               std::int64_t columns) {
  ROOFTILE_SHARED(parts, float[kAddThreads]);
#if defined(ROOFTILE_HAS_SM90)
  rooftile::cuda::wait_for_previous();
#endif
  const Gradient<G> gradient = blockIdx.y == 0 ? first : second;
  const int width = static_cast<int>(blockDim.x), groups = static_cast<int>(blockDim.y);
  const int group = static_cast<int>(threadIdx.y), mine = group * width + static_cast<int>(threadIdx.x);
  const std::int64_t column = std::int64_t{blockIdx.x} * width + threadIdx.x;
  const std::int64_t begin = layer_norm_block_begin(blocks, groups, group);
  const std::int64_t end = layer_norm_block_begin(blocks, groups, group + 1);
  float sum = 0;
  if (column < columns && teams == 1) {
    ROOFTILE_UNROLL_BY(8)
    for (std::int64_t b = begin; b < end; ++b) sum += gradient.sums[b * stride + column];
  } else if (column < columns) {
    for (std::int64_t b = begin; b < end; ++b) {
      const float* const team = gradient.sums + b * teams * stride + column;
      float block = *team;
      for (int t = 1; t < teams; ++t) block += team[t * stride];
      sum += block;
    }
  }
  parts[mine] = sum;
  for (int half = groups / 2; half > 0; half /= 2) {
    __syncthreads();
    if (group < half) parts[mine] = sum += parts[mine + half * width];
  }
  if (group == 0 && column < columns) gradient.to[column * gradient.stride] = narrow<G>(sum);
}

/// Both gradients in one launch, or the one that is asked for. Each of `blocks` blocks has `teams` rows of
/// sums.
Status launch_add_blocks(const CudaLaunch& launch, const LayerNormBackwardProblem& p, std::int64_t blocks,
                         int teams) {
  const int width = p.rows.columns < kManyColumns ? 8 : 32;
  // Eight sums to a thread at least, all on their way at once.
  const auto groups = static_cast<unsigned>(std::bit_floor(
      static_cast<std::uint64_t>(std::clamp<std::int64_t>(blocks / 8, 1, kAddThreads / width))));
  return with_type<float, f16, bf16>(p.gradient_dtype, [&]<class G>() {
    const auto parts = static_cast<unsigned>((p.rows.columns + width - 1) / width);
    const auto gradient = [&](bool bias) {
      const LayerNormColumns& to = bias ? p.dbias : p.dweight;
      return Gradient<G>{p.block_sums(0, bias), static_cast<G*>(const_cast<void*>(to.data)), to.stride};
    };
    const bool only_bias = !p.dweight.data, both = p.dweight.data && p.dbias.data;
    return rooftile::cuda::launch(
        launch, "layer_norm_backward",
        {.blocks = {parts, both ? 2u : 1u},
         .threads = {static_cast<unsigned>(width), groups},
         .early = has_clusters(launch) && p.rows.columns > kWarpColumns && blocks > 0},
        add_blocks<G>, gradient(only_bias), gradient(true), blocks, teams,
        p.block_sums(1, only_bias) - p.block_sums(0, only_bias), p.rows.columns);
  });
}

Status launch_backward(const CudaLaunch& launch, const LayerNormBackwardProblem& p) {
  using P = LayerNormBackwardProblem;
  const bool with_sums = p.dweight.data || p.dbias.data;
  const std::int64_t columns = p.rows.columns;
  const int teams = layer_norm_gpu_teams(p.rows.rows, columns, p.dtype);
  const std::int64_t sums =
      with_sums ? p.blocks : layer_norm_gpu_blocks(p.rows.rows, columns, p.dtype, launch.architecture);
  const bool in_warps = columns <= kWarpColumns;
  const std::int64_t programs = in_warps ? sums * teams : sums;
  if (columns == 0) return {};
  bool together = in_warps;
  const Status status = with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
    constexpr int kLanes = 16 / int(sizeof(T)), kChunks = 16 / kLanes;
    Layout layout = layout_of(p.weight, columns);
    for (int o : {P::kX, P::kDy, P::kDx})
      if (p.data[o]) layout = std::max(layout, tile::layout_of(p.rows, o, p.data[o], sizeof(T)));
    // Teams of several warps then stream, whatever the architecture.
    using Team = CudaTeam<float, kLanes, kChunks, Access::aligned, Span::warps, 2, 1>;
    static_assert(all_shared_bytes<Team>({kLanes * 64, 1, 1, 0}) <= shared_limits(86).block);
    together = together || (layout == Layout::words && one_stride(p.rows));
    return with_weights<T>(p.weight_dtype, [&]<class W>() {
      return for_rows<kLanes, kChunks>(launch, "layer_norm_backward", programs, layout,
                                       Backward<T, W>{p, programs, together ? teams : 1});
    });
  });
  if (!status || !with_sums) return status;
  return launch_add_blocks(launch, p, programs / teams, together ? 1 : teams);
}

}  // namespace

ROOFTILE_CUDA_KERNELS(layer_norm) = {
    entry<launch_forward>("layer_norm", "tile"),
    entry<ladder::launch_layer_norm_teams>("layer_norm", "06_teams"),
    entry<ladder::launch_layer_norm_words>("layer_norm", "05_words"),
    entry<ladder::launch_layer_norm_registers>("layer_norm", "04_registers"),
    entry<ladder::launch_layer_norm_shuffles>("layer_norm", "03_shuffles"),
    entry<ladder::launch_layer_norm_block>("layer_norm", "02_block"),
    entry<ladder::launch_layer_norm_naive>("layer_norm", "01_naive"),
    entry<launch_backward>("layer_norm_backward", "tile"),
    {},
};

}  // namespace rooftile
