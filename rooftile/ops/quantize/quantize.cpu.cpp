#include <algorithm>
#include <limits>

#include "rooftile/ops/quantize/quantize.tile.h"
#include "rooftile/tile/cpu/launch.h"

namespace rooftile {
namespace {
using namespace tile;
using Place = QuantizeBlocks::Place;

constexpr std::int64_t kWhole = std::numeric_limits<std::int64_t>::max() / 2;  // a CPU holds any length

/// One of a block's operands, empty where it is absent. `ahead`: elements to those that come soon, if its row
/// has so many.
template <class T, class P>
Row<T> block_of(const P& p, int operand, const void* data, const Place& its, std::int64_t ahead = 0) {
  if (!data) return {nullptr, its.size, 0};
  const std::int64_t stride = p.rows.column_stride[operand];
  return {static_cast<T*>(const_cast<void*>(data)) + p.rows.offset(operand, its.row) + its.first * stride,
          its.size, stride, its.first + ahead < p.rows.columns ? ahead * stride : 0};
}
/// Where a block's scale is.
template <class T, class P>
T* scale_of(const P& p, int operand, T* data, const Place& its) {
  return data ? data + p.rows.offset(operand, its.row) + its.block * p.rows.column_stride[operand] : nullptr;
}

/// Runs body.operator()<T>(team, place) for each block. `operands`: the first ones of the rows, which are
/// read and written by vectors.
template <class P, class Body>
void for_blocks(const CpuLaunch& launch, const P& p, int operands, std::int64_t bytes, Body body) {
  bool dense = true;
  for (int o = 0; o < operands; ++o) dense = dense && (p.rows.columns <= 1 || p.rows.column_stride[o] == 1);
  bytes *= p.rows.rows * p.rows.columns;
  with_access(dense, bytes > launch.streaming_bytes, [&]<Access kAccess>() {
    with_row_type<kAccess>(p.dtype, [&]<class T>() {
      for_programs(launch, p.rows.rows * p.blocks.blocks, bytes,
                   [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                     const CpuTeam<float, kAccess> team(scratch, p.dtype);
                     for (std::int64_t program = begin; program < end; ++program)
                       body.template operator()<T>(team, p.blocks.place(program));
                     if (kAccess == Access::streaming) stream_fence();
                   });
    });
  });
}
template <class T>
inline constexpr std::int64_t kAhead = kRowAheadBytes / int(sizeof(T));

/// One kernel for both: beside the words a branch costs nothing.
struct EitherWay {
  bool by_chance;
  kernels::ByChance chance;
  template <Lanes X>
  ROOFTILE_TILE Tile<std::int32_t> operator()(const X& x, std::int64_t index, const CodeFormat& f) const {
    return by_chance ? chance(x, index, f) : kernels::encode(x, f);
  }
};

void launch_quantize(const CpuLaunch& launch, const QuantizeProblem& p) {
  using P = QuantizeProblem;
  const std::int64_t width = bits(p.dtype) / 8;
  const EitherWay rounded{p.random.seed != nullptr, {p.random.stream()}};
  for_blocks(launch, p, 2, width + (p.fake ? width : 1),
             [&]<class T>(const auto& team, const Place& its) ROOFTILE_INLINE {
               kernels::quantize(team, block_of<const T>(p, P::kValues, p.values, its, kAhead<T>),
                                 block_of<std::uint8_t>(p, P::kCodes, p.codes, its),
                                 block_of<T>(p, P::kCodes, p.fake, its), scale_of(p, P::kScale, p.scale, its),
                                 scale_of(p, P::kGiven, p.given, its), kWhole, p.format, rounded,
                                 its.row * p.rows.columns + its.first);
             });
}
void launch_tensor(const CpuLaunch& launch, const QuantizeTensorProblem& p) {
  const std::int64_t bytes = p.x.size() * bits(p.x.dtype) / 8;
  double largest = 0;
  with_dense_access(bytes > launch.streaming_bytes, [&]<Access kAccess>() {
    with_type<float, f16, bf16>(p.x.dtype, [&]<class T>() {
      largest = reduction_of<kernels::LargestMagnitude, T, kAccess>(launch, p.x, bytes);
    });
  });
  *p.scale() = kernels::scale_of(static_cast<float>(largest), p.codes.format);
  launch_quantize(launch, p.codes);
}
void launch_dequantize(const CpuLaunch& launch, const QuantizeProblem& p) {
  using P = QuantizeProblem;
  for_blocks(
      launch, p, 2, 1 + bits(p.dtype) / 8, [&]<class T>(const auto& team, const Place& its) ROOFTILE_INLINE {
        const float* const scale = scale_of(p, P::kScale, p.scale, its);
        kernels::dequantize(team, block_of<const std::uint8_t>(p, P::kCodes, p.codes, its),
                            block_of<T>(p, P::kValues, p.values, its), scale ? *scale : 1, kWhole, p.format);
      });
}
void launch_backward(const CpuLaunch& launch, const FakeQuantizeBackwardProblem& p) {
  using P = FakeQuantizeBackwardProblem;
  for_blocks(launch, p, 3, 3 * bits(p.dtype) / 8,
             [&]<class T>(const auto& team, const Place& its) ROOFTILE_INLINE {
               kernels::fake_quantize_backward(team, block_of<const T>(p, P::kX, p.x, its, kAhead<T>),
                                               block_of<const T>(p, P::kDy, p.dy, its, kAhead<T>),
                                               block_of<T>(p, P::kDx, p.dx, its),
                                               scale_of(p, P::kGiven, p.given, its), kWhole, p.format);
             });
}

}  // namespace

ROOFTILE_CPU_KERNELS(quantize) = {
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
