#include <algorithm>

#include "rooftile/ops/row_reduce/row_reduce.tile.h"
#include "rooftile/tile/cpu/launch.h"

namespace rooftile {
namespace {
using namespace tile;

constexpr std::int64_t kSegment = 4096;  // 16 KiB of f32: the log-sum-exp reads it twice

template <class Body>
void for_results(const CpuLaunch& launch, const RowReduceProblem& p, Body body) {
  const std::int64_t bytes = p.rows.rows * p.rows.columns * bits(p.dtype) / 8;
  const bool dense = p.rows.columns <= 1 || p.rows.column_stride[RowReduceProblem::kX] == 1;
  with_access(dense, bytes > launch.streaming_bytes, [&]<Access kAccess>() {
    with_row_type<kAccess>(p.dtype, [&]<class T>() {
      for_programs(launch, p.rows.rows, bytes,
                   [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                     for (std::int64_t row = begin; row < end; ++row)
                       body(CpuTeam<float, kAccess>(scratch, p.dtype),
                            row_of<const T>(p.rows, RowReduceProblem::kX, p.x, row, end),
                            p.rows.offset(RowReduceProblem::kY, row));
                   });
    });
  });
}

void launch_reduce(const CpuLaunch& launch, const RowReduceProblem& p) {
  for_results(launch, p, [&](const auto& team, const auto& x, std::int64_t at) ROOFTILE_INLINE {
    store_scalar(static_cast<std::byte*>(p.y) + at * bits(p.dtype) / 8, p.dtype,
                 double(kernels::row_reduce(team, x, kSegment, p.kind)));
  });
}
void launch_arg(const CpuLaunch& launch, const RowReduceProblem& p) {
  for_results(launch, p, [&](const auto& team, const auto& x, std::int64_t at) ROOFTILE_INLINE {
    const auto place = kernels::row_arg(team, x, kSegment, p.kind ? -1 : 1);
    static_cast<std::int64_t*>(p.y)[at] =
        static_cast<std::int64_t>(place.upper) * 65536 + static_cast<std::int64_t>(place.lower);
  });
}

void launch_backward(const CpuLaunch& launch, const RowReduceBackwardProblem& p) {
  using P = RowReduceBackwardProblem;
  const int width = bits(p.dtype) / 8;
  for_each_row(launch, p.rows, p.dtype,
               [&]<class T>(auto team, std::int64_t row, std::int64_t end) ROOFTILE_INLINE {
                 const auto number = [&](const void* data, int operand) {
                   return static_cast<float>(load_scalar(
                       static_cast<const std::byte*>(data) + p.rows.offset(operand, row) * width, p.dtype));
                 };
                 const auto x = row_of<const T>(p.rows, P::kX, p.x, row, end);
                 const auto dx = row_of<T>(p.rows, P::kDx, p.dx, row, end);
                 const float dy = number(p.dy, P::kDy);
                 if (p.kind == static_cast<int>(RowReduction::product))
                   return kernels::row_product_backward(team, x, dx, kSegment, dy);
                 kernels::row_reduce_backward(team, x, dx, number(p.y, P::kY), dy, p.rows.columns, p.kind);
               });
}

}  // namespace

ROOFTILE_CPU_KERNELS(row_reduce) = {
    entry<launch_reduce>("row_reduce", "tile"),
    entry<launch_backward>("row_reduce_backward", "tile"),
    entry<launch_arg>("row_arg", "tile"),
    {},
};

}  // namespace rooftile
