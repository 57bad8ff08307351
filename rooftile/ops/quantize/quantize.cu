#include <algorithm>

#include "rooftile/core/check.h"
#include "rooftile/ops/quantize/quantize.tile.h"
#include "rooftile/tile/cuda/elements.h"

namespace rooftile {
namespace {
using namespace tile;

/// A thread and chunk has 16 elements, so that its codes are one 16-byte word; it holds two such.
constexpr int kLanes = 16, kChunks = 2;
constexpr int kHeldThreads = 512;

/// One of a block's operands, empty where it is absent. `written`: an input that is the output, too; a thread
/// then reads no byte beside its own elements.
template <class T, class P>
ROOFTILE_TILE Row<T> block_of(const P& p, int operand, const void* data, const QuantizeBlocks::Place& its,
                              bool written = false) {
  if (!data) return {nullptr, its.size, 0};
  const std::int64_t stride = p.rows.column_stride[operand];
  Row<T> r{
      static_cast<T*>(const_cast<void*>(data)) + offset_of(p.rows, operand, its.row) + its.first * stride,
      its.size, stride};
  if (written) r.begin = r.end = r.data;
  return r;
}
/// Where a block's scale is.
template <class T, class P>
ROOFTILE_TILE T* scale_of(const P& p, int operand, T* data, const QuantizeBlocks::Place& its) {
  return data ? data + offset_of(p.rows, operand, its.row) + its.block * p.rows.column_stride[operand]
              : nullptr;
}

/// What the launch asks of a program that has a block for each team.
template <class Problem>
struct Blocks {
  using P = Problem;
  static constexpr int kHeldThreads = rooftile::kHeldThreads;
  static constexpr Clusters kClusters{};
  static constexpr int least_blocks(Scope scope) { return scope == Scope::block ? 2 : 0; }
  P p;
  std::int64_t segment;
};

template <class T>
struct Quantize : Blocks<QuantizeProblem> {
  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const RowRange& range) const {
    run(team, range, kernels::ToNearest{});
  }
  template <class Team, class Rounding>
  ROOFTILE_TILE void run(const Team& team, const RowRange& range, const Rounding& rounded) const {
    const auto its = p.blocks.place(range.row);
    kernels::quantize(team, block_of<const T>(p, P::kValues, p.values, its, p.fake == p.values),
                      block_of<std::uint8_t>(p, P::kCodes, p.codes, its),
                      block_of<T>(p, P::kCodes, p.fake, its), scale_of(p, P::kScale, p.scale, its),
                      scale_of(p, P::kGiven, p.given, its), segment, p.format, rounded,
                      its.row * p.rows.columns + its.first);
  }
};
/// Apart, since ten rounds for four elements need registers that the other one has better use for.
template <class T>
struct QuantizeByChance : Quantize<T> {
  static constexpr int least_blocks(Scope) { return 0; }
  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const RowRange& range) const {
    this->run(team, range, kernels::ByChance{this->p.random.stream()});
  }
};
template <class T>
struct Dequantize : Blocks<QuantizeProblem> {
  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const RowRange& range) const {
    const auto its = p.blocks.place(range.row);
    const float* const scale = scale_of(p, P::kScale, p.scale, its);
    kernels::dequantize(team, block_of<const std::uint8_t>(p, P::kCodes, p.codes, its),
                        block_of<T>(p, P::kValues, p.values, its), scale ? *scale : 1, segment, p.format);
  }
};
template <class T>
struct Backward : Blocks<FakeQuantizeBackwardProblem> {
  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const RowRange& range) const {
    const auto its = p.blocks.place(range.row);
    kernels::fake_quantize_backward(team, block_of<const T>(p, P::kX, p.x, its, p.x == p.dx),
                                    block_of<const T>(p, P::kDy, p.dy, its, p.dy == p.dx),
                                    block_of<T>(p, P::kDx, p.dx, its), scale_of(p, P::kGiven, p.given, its),
                                    segment, p.format);
  }
};

/// A team for each block: neighbours of a warp, or a thread block. `bytes`: of an element of each operand
/// that vectors read or write.
template <template <class> class Program, bool kAligned = true, class P, int n>
Status launch_blocks(const CudaLaunch& launch, const char* name, const P& p, const void* const (&data)[n],
                     const int (&bytes)[n]) {
  const QuantizeBlocks& b = p.blocks;
  const std::int64_t programs = p.rows.rows * b.blocks;
  if (programs == 0) return {};
  bool aligned = b.blocks == 1 || b.block % kLanes == 0;
  for (int o = 0; o < n; ++o) aligned = aligned && aligned_rows(p.rows, o, data[o], bytes[o]);
  aligned = aligned && p.rows.columns % kLanes == 0;
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() -> Status {
    constexpr std::int64_t kLongest = std::int64_t{kHeldThreads} * kLanes * kChunks;
    const RowShape shape =
        row_shape(std::min(b.block, kLongest), kLanes, kChunks, kHeldThreads, 1, false, nullptr);
    const Program<T> program{{p, std::int64_t{shape.threads} * kLanes * kChunks}};
    const auto run = [&]<Access kAccess, Scope kScope>() {
      return launch_direct<CudaTeam<float, kLanes, kChunks, kAccess, kScope>>(launch, name, program, shape,
                                                                              programs);
    };
    if constexpr (kAligned)
      if (aligned)
        return shape.threads <= kWarp ? run.template operator()<Access::aligned, Scope::warp>()
                                      : run.template operator()<Access::aligned, Scope::block>();
    return shape.threads <= kWarp ? run.template operator()<Access::any, Scope::warp>()
                                  : run.template operator()<Access::any, Scope::block>();
  });
}
Status launch_quantize(const CudaLaunch& launch, const QuantizeProblem& p) {
  const int width = bits(p.dtype) / 8;
  if (p.random.seed)  // words cost more than unaligned loads: one kernel for both
    return launch_blocks<QuantizeByChance, false>(launch, "quantize", p, {p.values, p.codes}, {width, 1});
  return launch_blocks<Quantize>(launch, "quantize", p, {p.values, p.fake ? p.fake : p.codes},
                                 {width, p.fake ? width : 1});
}

using Largest = kernels::LargestMagnitude;
__global__ void __launch_bounds__(kReductionThreads)
    join_largest(const Largest::Partial* partials, int count, const __grid_constant__ CodeFormat format,
                 float* scale) {
  const Largest::Partial all = joined_chunks<Largest>(partials, count);
  if (threadIdx.x == 0) *scale = kernels::scale_of(static_cast<float>(Largest::finish(all)), format);
}
Status launch_tensor(const CudaLaunch& launch, const QuantizeTensorProblem& p) {
  const Chunked<Largest> chunks(launch, p.x);
  ROOFTILE_TRY((with_type<float, f16, bf16>(
      p.x.dtype, [&]<class T>() { return chunks.template reduce<T>(launch, "quantize", p.x); })));
  ROOFTILE_TRY(rooftile::cuda::launch(launch, "quantize", {1, kReductionThreads}, join_largest,
                                      chunks.partials, chunks.count, p.codes.format, p.scale()));
  return launch_quantize(launch, p.codes);
}
Status launch_dequantize(const CudaLaunch& launch, const QuantizeProblem& p) {
  return launch_blocks<Dequantize>(launch, "dequantize", p, {p.values, p.codes}, {bits(p.dtype) / 8, 1});
}
Status launch_backward(const CudaLaunch& launch, const FakeQuantizeBackwardProblem& p) {
  const int width = bits(p.dtype) / 8;
  return launch_blocks<Backward>(launch, "fake_quantize_backward", p, {p.dx, p.x, p.dy},
                                 {width, width, width});
}

}  // namespace

ROOFTILE_CUDA_KERNELS(quantize) = {
    entry<launch_quantize>("quantize_f8e4m3", "tile"),
    entry<launch_quantize>("quantize_f8e5m2", "tile"),
    entry<launch_quantize>("quantize_i8", "tile"),
    entry<launch_dequantize>("dequantize", "tile"),
    entry<launch_tensor>("quantize_tensor_f8e4m3", "tile"),
    entry<launch_tensor>("quantize_tensor_f8e5m2", "tile"),
    entry<launch_tensor>("quantize_tensor_i8", "tile"),
    entry<launch_quantize>("fake_quantize", "tile"),
    entry<launch_backward>("fake_quantize_backward", "tile"),
    {},
};

}  // namespace rooftile
