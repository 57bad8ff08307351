#include <algorithm>

#include "rooftile/ops/cross_entropy/cross_entropy.tile.h"
#include "rooftile/tile/cuda/elements.h"

namespace rooftile {
namespace {
using namespace tile;

// ---- sums over rows: the reduced loss, the mean's divisor, the weights' sum

/// Two sums of one pass, in f64.
struct SumPair {
  double first, second;
};
constexpr int kSumThreads = 256;
/// Indices of a block at least. More blocks than kSumBlocks would overrun the queue's scratch.
constexpr std::int64_t kSumChunk = 4096, kSumBlocks = 2048;
/// In the scratch, after the partial sums: what all rows of a backward share.
constexpr std::size_t kSharedAt = kSumBlocks * sizeof(SumPair);
static_assert(kSharedAt + sizeof(CrossEntropyShared) <= kCudaScratchBytes);

/// Block b adds up program(i) for the indices of chunk b; then, or as the only block, one finishes. Which
/// thread adds what follows from the count alone.
template <class Program>
__global__ void __launch_bounds__(kSumThreads)
    add_up(const __grid_constant__ Program program, std::int64_t count, std::int64_t chunk,
           SumPair* partials) {
  ROOFTILE_SHARED(sums, SumPair[kSumThreads]);
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t first = blockIdx.x * chunk, end = count - first < chunk ? count : first + chunk;
  SumPair mine{0, 0};
  for (std::int64_t i = first + thread; i < end; i += kSumThreads) {
    const SumPair its = program(i);
    mine.first += its.first;
    mine.second += its.second;
  }
  sums[thread] = mine;
  for (int far = kSumThreads / 2; far > 0; far /= 2) {
    __syncthreads();
    if (thread < far) {
      sums[thread].first += sums[thread + far].first;
      sums[thread].second += sums[thread + far].second;
    }
  }
  if (thread != 0) return;
  if (partials)
    partials[blockIdx.x] = sums[0];
  else
    program.finish(sums[0]);
}
template <class Program>
struct PartialSums {
  const SumPair* partials;
  Program program;
  ROOFTILE_TILE SumPair operator()(std::int64_t i) const { return partials[i]; }
  ROOFTILE_TILE void finish(const SumPair& all) const { program.finish(all); }
};
template <class Program>
Status for_sums(const CudaLaunch& launch, const char* name, std::int64_t count, const Program& program) {
  std::int64_t chunk = kSumChunk;
  while ((count + chunk - 1) / chunk > kSumBlocks) chunk *= 2;
  const auto blocks = static_cast<unsigned>(std::max<std::int64_t>(1, (count + chunk - 1) / chunk));
  auto* partials = blocks > 1 ? static_cast<SumPair*>(launch.scratch) : nullptr;
  const Status status = rooftile::cuda::launch(launch, name, {blocks, kSumThreads}, add_up<Program>, program,
                                               count, chunk, partials);
  if (!status || !partials) return status;
  return rooftile::cuda::launch(launch, name, {1, kSumThreads}, add_up<PartialSums<Program>>,
                                PartialSums<Program>{partials, program}, std::int64_t{blocks},
                                std::int64_t{blocks}, static_cast<SumPair*>(nullptr));
}

/// Σ losses, and what they are divided by.
struct ReducedLoss {
  CrossEntropyProblem p;
  ROOFTILE_TILE SumPair operator()(std::int64_t row) const {
    const double loss = p.losses[offset_of(p.rows, CrossEntropyProblem::kLosses, row)];
    if (!p.terms.mean) return {loss, 0};
    return {loss, p.terms.share_of(p.terms.target_at(offset_of(p.rows, CrossEntropyProblem::kTarget, row)))};
  }
  ROOFTILE_TILE void finish(const SumPair& all) const {
    *p.loss = static_cast<float>(p.terms.mean ? all.first / all.second : all.first);
  }
};
/// The mean's divisor and Σ w, and of these what a backward's rows share.
struct SharedOfRows {
  CrossEntropyBackwardProblem p;
  CrossEntropyShared* shared;
  bool divides, weighs;
  ROOFTILE_TILE SumPair operator()(std::int64_t i) const {
    SumPair r{0, 0};
    if (divides && i < p.rows.rows)
      r.first =
          p.terms.share_of(p.terms.target_at(offset_of(p.rows, CrossEntropyBackwardProblem::kTarget, i)));
    if (weighs && i < p.terms.classes) r.second = p.terms.weight_of(i);
    return r;
  }
  ROOFTILE_TILE void finish(const SumPair& all) const {
    const double gradient = p.reduces() ? p.dloss_or_one() : 0;
    *shared = {divides ? gradient / all.first : gradient, weighs ? all.second : double(p.terms.classes)};
  }
};

// ---- forward

/// A thread holds 64 bytes of 16-bit elements, 128 of f32, at a time. Longer rows go on, segment by segment.
/// Blocks of 512 threads take 1.2 times as long (H200, bf16 8192x32000), blocks of 128 as long; asking for
/// the next segment while one is added up gains nothing beyond that.
constexpr int kItems = 32;
constexpr int kHeldThreads = 256;

/// kMaySmooth: what smoothing adds up takes registers. One kernel for all calls spilled some of them, and
/// took 1.8 times as long (H200, bf16 8192x128256), with smoothing 1.5 times.
template <class T, bool kMaySmooth>
struct Forward {
  static constexpr int kHeldThreads = rooftile::kHeldThreads;
  static constexpr Clusters kClusters{};
  /// 80 registers a thread, 64 or 48: f32 with 48 takes 1.1 times as long.
  static constexpr int least_blocks(Scope scope) {
    return scope != Scope::block ? 0 : kMaySmooth ? 3 : sizeof(T) == 4 ? 4 : 5;
  }
  CrossEntropyProblem p;
  std::int64_t segment;
  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const RowRange& range) const {
    using P = CrossEntropyProblem;
    kernels::cross_entropy(team, row_of<const T, Team>(p.rows, P::kLogits, p.logits, range, 0), segment,
                           kMaySmooth && p.terms.smooths(), p,
                           {offset_of(p.rows, P::kTarget, range.row),
                            offset_of(p.rows, P::kLosses, range.row), offset_of(p.rows, P::kLse, range.row)});
  }
};

template <class T, bool kMaySmooth>
Status launch_rows_of(const CudaLaunch& launch, const CrossEntropyProblem& p) {
  constexpr int kLanes = 16 / int(sizeof(T)), kChunks = kItems / kLanes;
  constexpr std::int64_t kLongest = std::int64_t{kHeldThreads} * kItems;
  if (p.rows.rows == 0) return {};
  const RowShape shape =
      row_shape(std::min(p.rows.columns, kLongest), kLanes, kChunks, kHeldThreads, 1, false, nullptr);
  RowAlignment alignment = alignment_of(p.rows, CrossEntropyProblem::kLogits, p.logits, sizeof(T));
  if (p.terms.smooths() && p.terms.weight.data)
    alignment = std::max(alignment, vector_alignment(p.terms.weight, p.rows.columns));
  const auto run = [&]<Access kAccess, Scope kScope>() {
    return launch_direct<CudaTeam<float, kLanes, kChunks, kAccess, kScope>>(
        launch, "cross_entropy", Forward<T, kMaySmooth>{p, std::int64_t{shape.threads} * kItems}, shape,
        p.rows.rows);
  };
  if (shape.threads <= kWarp)
    return alignment == RowAlignment::vectorized ? run.template operator()<Access::aligned, Scope::warp>()
                                                 : run.template operator()<Access::any, Scope::warp>();
  switch (alignment) {
    case RowAlignment::vectorized:
      return run.template operator()<Access::aligned, Scope::block>();
    case RowAlignment::contiguous:
      return run.template operator()<Access::interleaved, Scope::block>();
    default:
      break;
  }
  if constexpr (kMaySmooth)
    return run.template operator()<Access::strided, Scope::block>();
  else  // rare: one kernel for both
    return launch_rows_of<T, true>(launch, p);
}

Status launch_forward(const CudaLaunch& launch, const CrossEntropyProblem& p) {
  if (p.parts != CrossEntropyParts::shared) {
    const Status status = with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
      return p.terms.smooths() ? launch_rows_of<T, true>(launch, p) : launch_rows_of<T, false>(launch, p);
    });
    if (!status || p.parts == CrossEntropyParts::rows) return status;
  }
  return for_sums(launch, "cross_entropy", p.rows.rows, ReducedLoss{p});
}

// ---- backward

template <class T>
struct Backward {
  static constexpr int kLeastBlocks = 4;  // without: 1.12 times as long (H200, bf16 8192x128256)
  CrossEntropyBackwardProblem p;
  const CrossEntropyShared* shared;  ///< null: the reduced loss has no gradient, and Σ w = classes
  bool weighs;
  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const auto& part) const {
    using P = CrossEntropyBackwardProblem;
    const auto factors = kernels::cross_entropy_factors(
        p, shared ? *shared : CrossEntropyShared{0, double(p.terms.classes)},
        offset_of(p.rows, P::kTarget, part.row), offset_of(p.rows, P::kLse, part.row),
        offset_of(p.rows, P::kDlosses, part.row));
    Row<const float> weight{nullptr, part.size};
    if (weighs)
      weight = {static_cast<const float*>(p.terms.weight.data) + part.first * p.terms.weight.stride,
                part.size, p.terms.weight.stride};
    kernels::cross_entropy_backward(
        team, part_of<const T>(p.rows, P::kLogits, p.logits, part, p.logits == p.dlogits),
        part_of<T>(p.rows, P::kDlogits, p.dlogits, part), weight, part.first, factors);
  }
};

Status launch_backward(const CudaLaunch& launch, const CrossEntropyBackwardProblem& p) {
  const bool weighs = p.weighs();
  CrossEntropyShared* shared = p.shared;
  if (p.parts != CrossEntropyParts::rows && (p.reduces() || weighs || shared)) {
    if (!shared)
      shared = reinterpret_cast<CrossEntropyShared*>(static_cast<std::byte*>(launch.scratch) + kSharedAt);
    const bool divides = p.reduces() && p.terms.mean;
    const std::int64_t count = std::max(divides ? p.rows.rows : 0, weighs ? p.terms.classes : 0);
    const Status status =
        for_sums(launch, "cross_entropy_backward", count, SharedOfRows{p, shared, divides, weighs});
    if (!status || p.parts == CrossEntropyParts::shared) return status;
  }
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
    const bool aligned = aligned_rows(p.rows, CrossEntropyBackwardProblem::kLogits, p.logits, sizeof(T)) &&
                         aligned_rows(p.rows, CrossEntropyBackwardProblem::kDlogits, p.dlogits, sizeof(T)) &&
                         (!weighs || (p.terms.weight.stride == 1 &&
                                      reinterpret_cast<std::uintptr_t>(p.terms.weight.data) % 16 == 0));
    return for_parts<16 / int(sizeof(T)), 4, float>(launch, "cross_entropy_backward", p.rows.rows,
                                                    p.rows.columns, aligned, Backward<T>{p, shared, weighs});
  });
}

}  // namespace

ROOFTILE_CUDA_KERNELS(cross_entropy) = {
    entry<launch_forward>("cross_entropy", "tile"),
    entry<launch_backward>("cross_entropy_backward", "tile"),
    {},
};

}  // namespace rooftile
