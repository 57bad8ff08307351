#include "rooftile/ops/layer_norm/ladder/ladder.h"
#include "rooftile/ops/layer_norm/layer_norm.problem.h"
#include "rooftile/ops/layer_norm/layer_norm_backward.tile.h"
#include "rooftile/tile/cuda/launch.h"

namespace rooftile {
namespace {
using namespace tile;

/// A weight or a bias; without data, `absent` throughout.
template <class W>
struct Weight {
  Row<const W> row;
  float absent;
  template <class Team, class C>
  ROOFTILE_TILE typename Team::Tile load(const Team& team, const C& chunk) const {
    return team.load(row, chunk, absent);
  }
};
template <class W>
ROOFTILE_TILE Weight<W> weight_of(const LayerNormColumns& c, std::int64_t columns, float absent) {
  return {{static_cast<const W*>(c.data), columns, c.stride}, absent};
}
/// An absent operand has no row.
template <class T, class Problem>
ROOFTILE_TILE Row<const T> input_or_none(const Problem& p, int operand, std::int64_t row, bool there) {
  if (!p.data[operand]) return {nullptr, p.rows.columns};
  bool alone = false;
  for (int o = 0; o < Problem::kOperands; ++o)
    alone = alone || (o != operand && p.data[o] == p.data[operand]);
  return input_row<T>(p.rows, operand, p.data[operand], row, there, alone);
}
template <class T, class Problem>
ROOFTILE_TILE Row<T> output_or_none(const Problem& p, int operand, std::int64_t row, bool there) {
  return output_row<T>(p.rows, operand, p.data[operand], row, there && p.data[operand]);
}
template <class Problem>
ROOFTILE_TILE float* value_or_none(const Problem& p, int operand, std::int64_t row) {
  if (!p.data[operand]) return nullptr;
  return static_cast<float*>(const_cast<void*>(p.data[operand])) + offset_of(p.rows, operand, row);
}

template <class T, bool kAdds>
struct Forward {
  static constexpr int kLeastBlocks = 2;
  LayerNormProblem p;

  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, std::int64_t row, bool there) const {
    using P = LayerNormProblem;
    const std::int64_t columns = p.rows.columns;
    const kernels::LayerNormRow<T> operands{input_or_none<T>(p, P::kX, row, there),
                                            input_or_none<T>(p, P::kResidual, row, there),
                                            output_or_none<T>(p, P::kY, row, there),
                                            output_or_none<T>(p, P::kSum, row, there),
                                            there ? value_or_none(p, P::kMean, row) : nullptr,
                                            there ? value_or_none(p, P::kRstd, row) : nullptr};
    const auto run = [&](const auto& weight, const auto& bias) {
      kernels::layer_norm<T, kAdds, Team::kHoldsRows>(
          team, row, row + 1, [&](std::int64_t) { return operands; }, weight, bias, p.eps);
    };
    if (sizeof(T) == sizeof(float) || p.weight_dtype == DType::f32)
      run(weight_of<float>(p.weight, columns, 1), weight_of<float>(p.bias, columns, 0));
    else
      run(weight_of<T>(p.weight, columns, 1), weight_of<T>(p.bias, columns, 0));
  }
};

bool aligned_columns(const LayerNormColumns& c, std::int64_t columns) {
  return !c.data || (reinterpret_cast<std::uintptr_t>(c.data) % 16 == 0 && (c.stride == 1 || columns <= 1));
}

Status launch_forward(const CudaLaunch& launch, const LayerNormProblem& p) {
  using P = LayerNormProblem;
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
    constexpr int kLanes = 16 / int(sizeof(T)), kChunks = 32 / kLanes;
    bool aligned = aligned_columns(p.weight, p.rows.columns) && aligned_columns(p.bias, p.rows.columns);
    for (int o : {P::kX, P::kResidual, P::kY, P::kSum})
      aligned = aligned && (!p.data[o] || aligned_rows(p.rows, o, p.data[o], sizeof(T)));
    const auto run = [&](const auto& program) {
      return for_rows<kLanes, kChunks, true>(launch, "layer_norm", p.rows.rows, p.rows.columns, aligned,
                                             program);
    };
    return p.data[P::kResidual] ? run(Forward<T, true>{p}) : run(Forward<T, false>{p});
  });
}

/// A block of rows is a team's: its weight gradients stay in registers all the while.
template <class T>
struct Backward {
  static constexpr int kLeastBlocks = 1;
  LayerNormBackwardProblem p;
  std::int64_t programs;  // blocks with sums of their own, or rows

  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, std::int64_t program, bool there) const {
    using P = LayerNormBackwardProblem;
    if (!there) return;  // a whole warp's or a whole block's
    const std::int64_t columns = p.rows.columns, rows = p.rows.rows;
    const std::int64_t begin = layer_norm_block_begin(rows, programs, program);
    const std::int64_t end = layer_norm_block_begin(rows, programs, program + 1);
    const auto row_at = [&](std::int64_t row) {
      return kernels::LayerNormBackwardRow<T>{
          input_or_none<T>(p, P::kX, row, true), input_or_none<T>(p, P::kDy, row, true),
          output_or_none<T>(p, P::kDx, row, true), *value_or_none(p, P::kMean, row),
          *value_or_none(p, P::kRstd, row)};
    };
    const auto run = [&](const auto& weight) {
      kernels::layer_norm_backward<T, Team::kHoldsRows>(team, begin, end, row_at, weight,
                                                        Row<float>{p.block_sums(program, false), columns},
                                                        Row<float>{p.block_sums(program, true), columns});
    };
    if (sizeof(T) == sizeof(float) || p.weight_dtype == DType::f32)
      run(weight_of<float>(p.weight, columns, 1));
    else
      run(weight_of<T>(p.weight, columns, 1));
  }
};

constexpr int kAddColumns = 32, kMostGroups = 32;

/// The sums of all blocks, added in the blocks' order: in groups of neighbours, and these in turn.
template <class G>
__global__ void __launch_bounds__(kAddColumns* kMostGroups)
    add_blocks(const float* sums, std::int64_t blocks, std::int64_t stride, std::int64_t columns, G* to,
               std::int64_t to_stride) {
  ROOFTILE_SHARED(parts, float[kMostGroups][kAddColumns]);
  const int groups = static_cast<int>(blockDim.y), group = static_cast<int>(threadIdx.y);
  const std::int64_t column = std::int64_t{blockIdx.x} * kAddColumns + threadIdx.x;
  const std::int64_t begin = layer_norm_block_begin(blocks, groups, group);
  const std::int64_t end = layer_norm_block_begin(blocks, groups, group + 1);
  float sum = 0;
  if (column < columns) {
    ROOFTILE_UNROLL_BY(8) for (std::int64_t b = begin; b < end; ++b) sum += sums[b * stride + column];
  }
  parts[group][threadIdx.x] = sum;
  __syncthreads();
  if (group != 0 || column >= columns) return;
  for (int g = 1; g < groups; ++g) sum += parts[g][threadIdx.x];
  to[column * to_stride] = narrow<G>(sum);
}

Status launch_add_blocks(const CudaLaunch& launch, const LayerNormBackwardProblem& p,
                         const LayerNormColumns& to, bool bias) {
  // Eight sums to a thread at least, all on their way at once.
  const auto groups = static_cast<unsigned>(
      std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(p.blocks / 8, 1, kMostGroups))));
  return with_type<float, f16, bf16>(p.gradient_dtype, [&]<class G>() {
    const auto blocks = static_cast<unsigned>((p.rows.columns + kAddColumns - 1) / kAddColumns);
    return rooftile::cuda::launch(launch, "layer_norm_backward", {blocks, {kAddColumns, groups}},
                                  add_blocks<G>, p.block_sums(0, bias), p.blocks,
                                  p.block_sums(1, bias) - p.block_sums(0, bias), p.rows.columns,
                                  static_cast<G*>(const_cast<void*>(to.data)), to.stride);
  });
}

Status launch_backward(const CudaLaunch& launch, const LayerNormBackwardProblem& p) {
  using P = LayerNormBackwardProblem;
  const bool with_sums = p.dweight.data || p.dbias.data;
  const std::int64_t columns = p.rows.columns;
  const std::int64_t programs = with_sums ? p.blocks : layer_norm_gpu_blocks(p.rows.rows, columns);
  if (columns == 0) return {};
  const Status status = with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
    constexpr int kLanes = 16 / int(sizeof(T)), kChunks = 16 / kLanes;
    bool aligned = aligned_columns(p.weight, columns);
    for (int o : {P::kX, P::kDy, P::kDx}) aligned = aligned && aligned_rows(p.rows, o, p.data[o], sizeof(T));
    return for_rows<kLanes, kChunks, true, float, 32>(launch, "layer_norm_backward", programs, columns,
                                                      aligned, Backward<T>{p, programs});
  });
  if (!status) return status;
  if (p.dweight.data) {
    if (Status s = launch_add_blocks(launch, p, p.dweight, false); !s) return s;
  }
  return p.dbias.data ? launch_add_blocks(launch, p, p.dbias, true) : Status{};
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
