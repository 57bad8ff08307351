#include "rooftile/ops/layer_norm/ladder/ladder.h"
#include "rooftile/ops/layer_norm/layer_norm.problem.h"
#include "rooftile/ops/layer_norm/layer_norm.tile.h"
#include "rooftile/ops/layer_norm/layer_norm_backward.tile.h"
#include "rooftile/tile/rows.h"

namespace rooftile {
namespace {
using namespace tile;

constexpr int kShortThreads = 256, kShortElements = 32;
/// Elements of a weight that is not given.
constexpr float kAbsentWeight = 1, kAbsentBias = 0;
/// Operands that are staged behind those that have rows.
constexpr int kWeight = LayerNormProblem::kSum + 1, kBias = kWeight + 1;

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
  static constexpr Streaming kStreaming{kLong ? Scope::block : Scope::any, 1 + kAdds, 1024,
                                        !kLong  ? Scope::any
                                        : kHalf ? Scope::cluster
                                                : Scope::block};
  /// H200, streaming and so: f32 4096x16384 139.8 µs and 136, 4096x12288 106.4 and 102.8. Of 16 bits the
  /// compiler runs out of registers (bf16 4096x16384 73, 83).
  static constexpr int kParts = kLong && !kAdds && !kHalf ? 4 : 1;
  static constexpr Scope kShortest = kLong ? Scope::block : Scope::warp,
                         kLongest = kLong ? Scope::any : Scope::block;
  static constexpr bool kFull = kSame, kStrided = kSame;
  /// bf16 65536x768, H200: with all chunks 69 µs, without empty ones 62; but f32 65536x1000 134 and 137.
  static constexpr bool kMayStage = !kLong, kSkips = !kLong && kHalf;
  /// 524288x64, H200: with two threads bf16 42 µs and f32 78, with four 48 and 87, with eight 108 and 136.
  static constexpr int least_threads(std::int64_t) { return 2; }
  static constexpr int least_blocks(Scope scope) {
    if (kLong) return 1;
    if (scope == Scope::warp) return kHalf ? 6 : 4;
    return kHalf ? 4 : 2;
  }
  static constexpr int kept(Scope scope) {
    if (!kSame || (kLong && kAdds)) return 0;
    return kLong || (kHalf && scope == Scope::block) ? 2 : 0;
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
  template <Access kAccess, Scope kScope>
  auto serving() const {
    constexpr bool kEither = kAccess == Access::any || (kHalf && in_words(kAccess) && kScope == Scope::block);
    constexpr bool kAnyLength = kHalf && !in_words(kAccess) && kScope != Scope::warp;
    return Forward<T, (kAdds || kEither), W, (kLong || kAnyLength)>{p, each_one};
  }
  SharedLayout shared_layout() const {
    using P = LayerNormProblem;
    SharedLayout shared_layout = touching_layout(
        p.rows,
        {{p.data[P::kX]}, {p.data[P::kResidual]}, {p.data[P::kY], P::kX}, {p.data[P::kSum], P::kResidual}});
    shared_layout.add_vector(kWeight);
    shared_layout.add_vector(kBias);
    return shared_layout;
  }
  template <class Rows, class Vectors>
  ROOFTILE_TILE void each_staged(const Rows& rows, const Vectors& vectors) const {
    using P = LayerNormProblem;
    ROOFTILE_UNROLL for (int o = P::kX; o <= P::kSum; ++o)
        rows(o, static_cast<const T*>(p.data[o]), o == P::kY || o == P::kSum);
    vectors(kWeight, static_cast<const W*>(p.vectors[P::kWeight].data), kAbsentWeight);
    vectors(kBias, static_cast<const W*>(p.vectors[P::kBias].data), kAbsentBias);
  }

  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const RowRange& range) const {
    using P = LayerNormProblem;
    const auto row_at = [&](std::int64_t i) {
      kernels::LayerNormRow<T> r{
          input_of<T, Team>(p, P::kX, range, i),         {},
          output_of<T, Team>(p, P::kY, range, i, false), output_of<T, Team>(p, P::kSum, range, i),
          value_of<Team>(p, P::kMean, range, i),         value_of<Team>(p, P::kRstd, range, i)};
      if constexpr (kAdds) r.residual = input_of<T, Team>(p, P::kResidual, range, i, !Team::kStreams);
      r.residual.stage = 1;
      return r;
    };
    // One word after the other, a warp's four times as many would wait for each other (f32 4096x16384, H200:
    // 141.7 µs, so 136).
    constexpr bool kAhead = !kLong || sizeof(W) == 2 || Team::kParts > 1;
    const auto weight_in_memory = vector_of<W, kAhead>(p.vectors[P::kWeight], range, kAbsentWeight),
               bias_in_memory = vector_of<W, kAhead>(p.vectors[P::kBias], range, kAbsentBias);
    const auto run = [&](const auto& weight, const auto& bias) {
      team.ask(row_at(0).x);
      if constexpr (kAdds) team.ask(row_at(0).residual);
      if constexpr (Team::kStreams && Team::kVectors > 0) {
        weight.ask_once(team);
        bias.ask_once(team);
      }
      kernels::layer_norm<T, kAdds, Team::kHoldsRows>(team, 0, range.count, row_at, weight, bias, p.eps(),
                                                      each_one, weight_in_memory, bias_in_memory);
    };
    if constexpr (Team::kStaged)
      run(StagedVector(range.staging, kWeight), StagedVector(range.staging, kBias));
    else if constexpr (Team::kVectors > 0)
      run(RingVector<W, Team>(weight_in_memory, 0), RingVector<W, Team>(bias_in_memory, 1));
    else if constexpr (Team::kStreams && Team::kScope == Scope::block && !kAdds && !in_words(Team::kReads))
      run(PackedVector<W, Team>(team, weight_in_memory, range.size),
          PackedVector<W, Team>(team, bias_in_memory, range.size));
    else
      run(weight_in_memory, bias_in_memory);
  }
};

Status launch_forward(const CudaLaunch& launch, const LayerNormProblem& p) {
  using P = LayerNormProblem;
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
    constexpr int kLanes = 16 / int(sizeof(T));
    RowAlignment alignment = std::max(vector_alignment(p.vectors[P::kWeight], p.rows.columns),
                                      vector_alignment(p.vectors[P::kBias], p.rows.columns));
    for (int o : {P::kX, P::kResidual, P::kY, P::kSum})
      if (p.data[o]) alignment = std::max(alignment, tile::alignment_of(p.rows, o, p.data[o], sizeof(T)));
    const auto run = [&]<class Program>(const Program& program) {
      return for_rows<kLanes, Program::kElements / kLanes>(launch, "layer_norm", p.rows.rows, alignment,
                                                           program);
    };
    const auto with = [&]<class W, bool kLong>() {
      const float each_one = 1 / static_cast<float>(p.rows.columns);
      return p.data[P::kResidual] ? run(Forward<T, true, W, kLong>{p, each_one})
                                  : run(Forward<T, false, W, kLong>{p, each_one});
    };
    return with_vector_type<T>(p.vector_dtype, [&]<class W>() {
      return p.rows.columns > kShortThreads * kShortElements ? with.template operator()<W, true>()
                                                             : with.template operator()<W, false>();
    });
  });
}

Status launch_backward(const CudaLaunch& launch, const LayerNormBackwardProblem& p) {
  return for_row_program(launch, "layer_norm_backward", p, kernels::LayerNormBackward<float>{});
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
