#include "rooftile/ops/layer_norm/ladder/ladder.h"
#include "rooftile/ops/layer_norm/layer_norm.problem.h"
#include "rooftile/ops/layer_norm/layer_norm_backward.tile.h"
#include "rooftile/tile/cuda/launch.h"

namespace rooftile {
namespace {
using namespace tile;

/// A weight or a bias; without data, `absent` throughout. kAhead: it may be read before its turn.
template <class W, bool kAhead>
struct Weight {
  Row<const W> row;
  float absent;
  template <class Team>
  ROOFTILE_TILE Pack<W, Team::kLanes> pack(const tile::Chunk& chunk) const {
    if (row.data)
      return load_pack<Team::kReads, Team::kLanes, kAhead>(row, chunk.first, chunk.live, narrow<W>(absent));
    Pack<W, Team::kLanes> pack;
    ROOFTILE_UNROLL for (int i = 0; i < Team::kLanes; ++i) pack.set(i, narrow<W>(absent));
    return pack;
  }
  template <class Team>
  ROOFTILE_TILE typename Team::Tile load(const Team&, const tile::Chunk& chunk) const {
    return widened<float>(pack<Team>(chunk));
  }
  /// All of it in registers.
  template <class Team>
  ROOFTILE_TILE typename Team::template Held<W> hold(const Team& team) const {
    typename Team::template Held<W> held{};
    team.each(row.size, [&](const tile::Chunk& chunk) { held.packs[chunk.index] = pack<Team>(chunk); });
    return held;
  }
};
/// The columns that this block has of it.
template <class W, bool kAhead>
ROOFTILE_TILE Weight<W, kAhead> weight_of(const LayerNormColumns& c, const PartOfRow& part, float absent) {
  const auto* data = static_cast<const W*>(c.data);
  return {{data ? data + part.first * c.stride : nullptr, part.size, c.stride}, absent};
}
template <class T, class Problem>
ROOFTILE_TILE Row<const T> input_of(const Problem& p, int operand, const PartOfRow& part,
                                    const Offsets<Problem::kOperands>& offsets) {
  bool alone = false;
  for (int o = 0; o < Problem::kOperands; ++o)
    alone = alone || (o != operand && p.data[o] == p.data[operand]);
  return part_at<const T>(p.rows, operand, p.data[operand], offsets.at[operand], part, alone);
}
template <class T, class Problem>
ROOFTILE_TILE Row<T> output_of(const Problem& p, int operand, const PartOfRow& part,
                               const Offsets<Problem::kOperands>& offsets) {
  return part_at<T>(p.rows, operand, p.data[operand], offsets.at[operand], part);
}
/// Where the row's value of an operand that has one for each row lies; null: nowhere.
template <class Problem>
ROOFTILE_TILE float* value_of(const Problem& p, int operand, const Offsets<Problem::kOperands>& offsets) {
  if (!p.data[operand]) return nullptr;
  return static_cast<float*>(const_cast<void*>(p.data[operand])) + offsets.at[operand];
}

constexpr int kShortThreads = 256, kElements = 32;

/// W: the weights' type. kLong: of rows that more than kShortThreads hold. Their threads have 64 registers,
/// and no room for weights that come before they are needed. Short ones have 80 where elements have 16 bits
/// (bf16 65536x1024, H200: 77 µs; with 64 88), and else 128 (f32: 136 µs; with 64 183).
template <class T, bool kAdds, class W, bool kLong>
struct Forward {
  static constexpr int kHeldThreads = kLong ? 1024 : kShortThreads;
  static constexpr int kLeastBlocks = kLong ? 1 : sizeof(T) == 2 ? 3 : 2;
  static constexpr bool kRereads = kLong, kRare = !std::is_same_v<T, W>, kAhead = !kLong || sizeof(W) == 2;
  LayerNormProblem p;
  constexpr std::int64_t columns() const { return p.rows.columns; }

  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const PartOfRow& part) const {
    using P = LayerNormProblem;
    const auto at = offsets_of(p.rows, part.row);
    const kernels::LayerNormRow<T> operands{
        input_of<T>(p, P::kX, part, at),  input_of<T>(p, P::kResidual, part, at),
        output_of<T>(p, P::kY, part, at), output_of<T>(p, P::kSum, part, at),
        value_of(p, P::kMean, at),        value_of(p, P::kRstd, at)};
    kernels::layer_norm<T, kAdds, Team::kHoldsRows>(
        team, 0, 1, [&](std::int64_t) { return operands; }, weight_of<W, kAhead>(p.weight, part, 1),
        weight_of<W, kAhead>(p.bias, part, 0), p.eps);
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
    constexpr int kLanes = 16 / int(sizeof(T)), kChunks = kElements / kLanes;
    Layout layout = std::max(layout_of(p.weight, p.rows.columns), layout_of(p.bias, p.rows.columns));
    for (int o : {P::kX, P::kResidual, P::kY, P::kSum})
      if (p.data[o]) layout = std::max(layout, tile::layout_of(p.rows, o, p.data[o], sizeof(T)));
    const auto run = [&](const auto& program) {
      return for_rows<kLanes, kChunks>(launch, "layer_norm", p.rows.rows, layout, program);
    };
    const auto with = [&]<class W, bool kLong>() {
      return p.data[P::kResidual] ? run(Forward<T, true, W, kLong>{p}) : run(Forward<T, false, W, kLong>{p});
    };
    return with_weights<T>(p.weight_dtype, [&]<class W>() {
      return p.rows.columns > kShortThreads * kElements ? with.template operator()<W, true>()
                                                        : with.template operator()<W, false>();
    });
  });
}

/// A block of rows is a team's: its weight gradients stay in registers all the while.
template <class T, class W>
struct Backward {
  static constexpr int kHeldThreads = sizeof(T) == 4 ? 256 : 512;  // f32 needs 200 registers
  static constexpr int kLeastBlocks = 1;
  static constexpr bool kRereads = true, kRare = !std::is_same_v<T, W>;
  LayerNormBackwardProblem p;
  std::int64_t programs;  // blocks with sums of their own, or rows
  constexpr std::int64_t columns() const { return p.rows.columns; }

  /// `part`: of the block of rows with its number.
  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const PartOfRow& part) const {
    using P = LayerNormBackwardProblem;
    const std::int64_t begin = layer_norm_block_begin(p.rows.rows, programs, part.row);
    const std::int64_t end = layer_norm_block_begin(p.rows.rows, programs, part.row + 1);
    const auto row_at = [&](std::int64_t row) {
      const PartOfRow here{row, part.first, part.size};
      const auto at = offsets_of(p.rows, row);
      return kernels::LayerNormBackwardRow<T>{
          input_of<T>(p, P::kX, here, at), input_of<T>(p, P::kDy, here, at),
          output_of<T>(p, P::kDx, here, at), *value_of(p, P::kMean, at), *value_of(p, P::kRstd, at)};
    };
    const auto sums = [&](bool bias) {
      float* all = p.block_sums(part.row, bias);
      return Row<float>{all ? all + part.first : nullptr, part.size};
    };
    const auto weight = weight_of<W, true>(p.weight, part, 1);
    if constexpr (Team::kHoldsRows)
      kernels::layer_norm_backward_held<T>(team, begin, end, row_at, weight, sums(false), sums(true));
    else
      kernels::layer_norm_backward<T, false>(team, begin, end, row_at, weight, sums(false), sums(true));
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
    Layout layout = layout_of(p.weight, columns);
    for (int o : {P::kX, P::kDy, P::kDx})
      if (p.data[o]) layout = std::max(layout, tile::layout_of(p.rows, o, p.data[o], sizeof(T)));
    return with_weights<T>(p.weight_dtype, [&]<class W>() {
      return for_rows<kLanes, kChunks, Backward<T, W>, 32>(launch, "layer_norm_backward", programs, layout,
                                                           Backward<T, W>{p, programs});
    });
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
