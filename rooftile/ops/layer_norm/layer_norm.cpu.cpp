#include "rooftile/core/op.h"
#include "rooftile/ops/layer_norm/ladder/ladder.h"
#include "rooftile/ops/layer_norm/layer_norm.problem.h"
#include "rooftile/ops/layer_norm/layer_norm_backward.tile.h"
#include "rooftile/tile/cpu/launch.h"

namespace rooftile {
namespace {
using namespace tile;

/// Rows up to here fit scratch three times as floats (rounded up to whole tiles of at most 64).
constexpr std::int64_t kLongestHeldRow = std::int64_t(kScratchBytes) / 4 / 3 / 64 * 64;

/// From here on a row, the one before and the weights push each other out of the first cache.
constexpr std::int64_t kLongRowBytes = 8 * 1024;

bool plain_floats(const LayerNormColumns& c, DType dtype, std::int64_t columns) {
  return c.data && dtype == DType::f32 && (columns <= 1 || c.stride == 1);
}
template <class T>
Row<T> columns_of(const LayerNormColumns& c, std::int64_t columns) {
  return {static_cast<T*>(const_cast<void*>(c.data)), columns, c.stride};
}

/// A weight as its kernel wants it: floats side by side, put into scratch where they are not. A call, as it
/// happens but once for a thread's rows.
__attribute__((noinline)) kernels::LayerNormFloats floats_of(ThreadScratch& scratch,
                                                             const LayerNormColumns& c, DType dtype,
                                                             std::int64_t columns, float absent) {
  if (plain_floats(c, dtype, columns)) return {columns_of<const float>(c, columns)};
  CpuTeam<float, Access::strided> team(scratch, dtype);
  const auto floats =
      dtype == DType::f32
          ? kernels::layer_norm_floats(team, team, columns_of<const float>(c, columns), absent)
          : kernels::layer_norm_floats(team, team, columns_of<const AnyHalf>(c, columns), absent);
  scratch = team.rest();
  return floats;
}
/// The same for rows that no scratch holds, or whose elements lie apart: as it is.
template <class T>
kernels::LayerNormAny<T> as_it_is(const LayerNormColumns& c, DType dtype, std::int64_t columns,
                                  float absent) {
  const bool is_float = dtype == DType::f32;
  const LayerNormColumns none{nullptr, 1};
  return {columns_of<const float>(is_float ? c : none, columns),
          columns_of<const T>(is_float ? none : c, columns), absent};
}

/// An absent operand has no row.
template <class T, class Problem>
Row<T> row_or_none(const Problem& p, int operand, std::int64_t row, std::int64_t end) {
  if (!p.data[operand]) return {nullptr, p.rows.columns};
  return row_of<T>(p.rows, operand, p.data[operand], row, end);
}
/// A row's one value of a statistic.
template <class Problem>
float* value_or_none(const Problem& p, int operand, std::int64_t row) {
  if (!p.data[operand]) return nullptr;
  return static_cast<float*>(const_cast<void*>(p.data[operand])) + p.rows.offset(operand, row);
}

template <class T, bool kAdds, bool kHeld, Access kAccess>
void run_forward(const CpuLaunch& launch, const LayerNormProblem& p, std::int64_t bytes) {
  using P = LayerNormProblem;
  for_programs(launch, p.rows.rows, bytes, [&](ThreadScratch scratch, std::int64_t begin, std::int64_t end) {
    const auto row_at = [&](std::int64_t row) ROOFTILE_INLINE {
      return kernels::LayerNormRow<T>{
          row_or_none<const T>(p, P::kX, row, end), row_or_none<const T>(p, P::kResidual, row, end),
          row_or_none<T>(p, P::kY, row, end),       row_or_none<T>(p, P::kSum, row, end),
          value_or_none(p, P::kMean, row),          value_or_none(p, P::kRstd, row)};
    };
    const std::int64_t columns = p.rows.columns;
    const float each_one = 1 / static_cast<float>(columns);
    if constexpr (kAccess == Access::strided) {
      const CpuTeam<float, kAccess> team(scratch, p.dtype);
      kernels::layer_norm<T, kAdds, kHeld>(team, begin, end, row_at,
                                           as_it_is<T>(p.weight, p.weight_dtype, columns, 1),
                                           as_it_is<T>(p.bias, p.weight_dtype, columns, 0), p.eps, each_one);
    } else {
      const auto weight = floats_of(scratch, p.weight, p.weight_dtype, columns, 1);
      const auto bias = floats_of(scratch, p.bias, p.weight_dtype, columns, 0);
      const CpuTeam<float, kAccess> team(scratch);
      constexpr bool kBlocks = kAccess == Access::streaming && !kHeld;
      if (kBlocks && columns * std::int64_t(sizeof(T)) > kLongRowBytes) {
        if constexpr (kBlocks)
          kernels::layer_norm_by_blocks<T, kAdds>(team, begin, end, row_at, weight, bias, p.eps, each_one);
      } else {
        kernels::layer_norm<T, kAdds, kHeld>(team, begin, end, row_at, weight, bias, p.eps, each_one);
      }
    }
    if (kAccess == Access::streaming) stream_fence();
  });
}

void launch_tile(const CpuLaunch& launch, const LayerNormProblem& p) {
  using P = LayerNormProblem;
  const std::int64_t columns = p.rows.columns;
  const int tensors = 2 + (p.data[P::kResidual] ? 1 : 0) + (p.data[P::kSum] ? 1 : 0);
  const std::int64_t bytes = p.rows.rows * columns * bits(p.dtype) / 8 * tensors;
  const bool plain =
      plain_floats(p.weight, p.weight_dtype, columns) && plain_floats(p.bias, p.weight_dtype, columns);
  const bool holds = p.dtype != DType::f32 || p.data[P::kResidual];
  const bool fits = columns <= kLongestHeldRow || (plain && !holds);
  with_access(p.rows.dense() && fits, bytes > launch.streaming_bytes, [&]<Access kAccess>() {
    with_row_type<kAccess>(p.dtype, [&]<class T>() {
      constexpr bool kFloat = std::is_same_v<T, float>;
      if constexpr (kAccess == Access::strided) {
        run_forward<T, true, false, kAccess>(launch, p, bytes);
      } else if (kFloat && !p.data[P::kResidual]) {
        run_forward<float, false, false, kAccess>(launch, p, bytes);
      } else {
        run_forward<T, true, !(kFloat && kAccess == Access::streaming), kAccess>(launch, p, bytes);
      }
    });
  });
}

void add_blocks(const CpuLaunch& launch, const LayerNormBackwardProblem& p, const LayerNormColumns& to,
                bool bias) {
  constexpr std::int64_t kPart = 512;  // columns of one program
  const std::int64_t columns = p.rows.columns, blocks = p.blocks;
  const std::int64_t stride = p.block_sums(1, bias) - p.block_sums(0, bias);
  with_access(columns <= 1 || to.stride == 1, false, [&]<Access kAccess>() {
    with_row_type<kAccess>(p.gradient_dtype, [&]<class G>() {
      const auto program = [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
        for (std::int64_t part = begin; part < end; ++part)
          kernels::layer_norm_add_blocks(
              CpuTeam<float, kAccess>(scratch, p.gradient_dtype),
              Row<const float>{p.block_sums(0, bias), columns}.part(part * kPart, kPart), blocks, stride,
              columns_of<G>(to, columns).part(part * kPart, kPart));
      };
      for_programs(launch, (columns + kPart - 1) / kPart, columns * blocks * 4, program);
    });
  });
}

template <class T, Access kAccess>
void run_backward(const CpuLaunch& launch, const LayerNormBackwardProblem& p, std::int64_t bytes) {
  using P = LayerNormBackwardProblem;
  constexpr bool kHeld = kAccess != Access::strided && !std::is_same_v<T, float>;
  const std::int64_t rows = p.rows.rows, columns = p.rows.columns;
  // Without sums to keep apart, a thread's share of the rows is one block.
  const bool sums = p.dweight.data || p.dbias.data;
  const auto first_of = [&](std::int64_t program) {
    return sums ? layer_norm_block_begin(rows, p.blocks, program) : program;
  };
  for_programs(launch, sums ? p.blocks : rows, bytes,
               [&](ThreadScratch scratch, std::int64_t begin, std::int64_t end) {
                 const std::int64_t last = first_of(end);
                 const auto row_at = [&](std::int64_t row) ROOFTILE_INLINE {
                   return kernels::LayerNormBackwardRow<T>{
                       row_or_none<const T>(p, P::kX, row, last), row_or_none<const T>(p, P::kDy, row, last),
                       row_or_none<T>(p, P::kDx, row, last), *value_or_none(p, P::kMean, row),
                       *value_or_none(p, P::kRstd, row)};
                 };
                 const auto weight = [&] {
                   if constexpr (kAccess == Access::strided) {
                     return as_it_is<T>(p.weight, p.weight_dtype, columns, 1);
                   } else {
                     return floats_of(scratch, p.weight, p.weight_dtype, columns, 1);
                   }
                 }();
                 const CpuTeam<float, kAccess> team(scratch, p.dtype);
                 for (std::int64_t block = begin; block < end; block = sums ? block + 1 : end) {
                   const std::int64_t from = first_of(block), to = first_of(sums ? block + 1 : end);
                   const Row<float> dweight{p.block_sums(block, false), columns},
                       dbias{p.block_sums(block, true), columns};
                   kernels::layer_norm_backward<T, kHeld>(team, from, to, row_at, weight, dweight, dbias);
                 }
                 if (kAccess == Access::streaming) stream_fence();
               });
}

void launch_backward(const CpuLaunch& launch, const LayerNormBackwardProblem& p) {
  const std::int64_t columns = p.rows.columns;
  const std::int64_t bytes = p.rows.rows * columns * bits(p.dtype) / 8 * 3;
  const bool fits = columns <= kLongestHeldRow ||
                    (p.dtype == DType::f32 && plain_floats(p.weight, p.weight_dtype, columns));
  with_access(p.rows.dense() && fits, bytes > launch.streaming_bytes, [&]<Access kAccess>() {
    with_row_type<kAccess>(p.dtype, [&]<class T>() { run_backward<T, kAccess>(launch, p, bytes); });
  });
  if (p.dweight.data) add_blocks(launch, p, p.dweight, false);
  if (p.dbias.data) add_blocks(launch, p, p.dbias, true);
}

}  // namespace

ROOFTILE_CPU_KERNELS(layer_norm) = {
    entry<launch_tile>("layer_norm", "tile"),
    entry<ladder::launch_overlap>("layer_norm", "05_overlap"),
    entry<ladder::launch_one_reading>("layer_norm", "04_one_reading"),
    entry<ladder::launch_accumulators>("layer_norm", "03_accumulators"),
    entry<ladder::launch_vectors>("layer_norm", "02_vectors"),
    entry<ladder::launch_scalar>("layer_norm", "01_scalar"),
    entry<launch_backward>("layer_norm_backward", "tile"),
    {},
};

}  // namespace rooftile
