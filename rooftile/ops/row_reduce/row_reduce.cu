#include <algorithm>

#include "rooftile/ops/row_reduce/row_reduce.tile.h"
#include "rooftile/tile/cuda/elements.h"

namespace rooftile {
namespace {
using namespace tile;

/// A thread holds 64 bytes of 16-bit elements, 128 of f32, at a time. Longer rows go on, segment by segment.
constexpr int kItems = 32;
constexpr int kHeldThreads = 512;

struct OfRows {
  static constexpr int kHeldThreads = rooftile::kHeldThreads;
  static constexpr Clusters kClusters{};
  static constexpr int least_blocks(Scope scope) { return scope == Scope::block ? 2 : 0; }
};

template <class T, bool kArg>
struct Reduce : OfRows {
  RowReduceProblem p;
  std::int64_t segment;
  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const RowRange& range) const {
    const auto x = row_of<const T, Team>(p.rows, RowReduceProblem::kX, p.x, range, 0);
    const std::int64_t at = offset_of(p.rows, RowReduceProblem::kY, range.row);
    if constexpr (kArg) {  // an i64 by its words of 16 bits
      const auto place = kernels::row_arg(team, x, segment, p.kind ? -1.0f : 1.0f);
      auto* words = reinterpret_cast<std::uint16_t*>(static_cast<std::int64_t*>(p.y) + at);
      team.store_scalars(words, place.lower, words + 1, place.upper);
      team.store_scalars(words + 2, 0.0f, words + 3, 0.0f);
    } else {
      team.store_scalars(static_cast<T*>(p.y) + at, kernels::row_reduce(team, x, segment, p.kind),
                         static_cast<T*>(nullptr), 0.0f);
    }
  }
};

/// The team of a row, which takes it by segments.
template <class T>
RowShape shape_of(std::int64_t columns) {
  constexpr int kLanes = 16 / int(sizeof(T));
  constexpr std::int64_t kLongest = std::int64_t{kHeldThreads} * kItems;
  return row_shape(std::clamp<std::int64_t>(columns, 1, kLongest), kLanes, kItems / kLanes, kHeldThreads, 1,
                   false, nullptr);
}

template <bool kArg>
Status launch_rows(const CudaLaunch& launch, const char* name, const RowReduceProblem& p) {
  if (p.rows.rows == 0) return {};
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() -> Status {
    constexpr int kLanes = 16 / int(sizeof(T)), kChunks = kItems / kLanes;
    const RowShape shape = shape_of<T>(p.rows.columns);
    const Reduce<T, kArg> program{{}, p, std::int64_t{shape.threads} * kItems};
    const bool aligned = aligned_rows(p.rows, RowReduceProblem::kX, p.x, sizeof(T));
    const auto run = [&]<Access kAccess, Scope kScope>() {
      return launch_direct<CudaTeam<float, kLanes, kChunks, kAccess, kScope>>(launch, name, program, shape,
                                                                              p.rows.rows);
    };
    if (shape.threads <= kWarp)
      return aligned ? run.template operator()<Access::aligned, Scope::warp>()
                     : run.template operator()<Access::any, Scope::warp>();
    return aligned ? run.template operator()<Access::aligned, Scope::block>()
                   : run.template operator()<Access::any, Scope::block>();
  });
}
Status launch_reduce(const CudaLaunch& launch, const RowReduceProblem& p) {
  return launch_rows<false>(launch, "row_reduce", p);
}
Status launch_arg(const CudaLaunch& launch, const RowReduceProblem& p) {
  return launch_rows<true>(launch, "row_arg", p);
}

template <class T>
struct Backward {
  RowReduceBackwardProblem p;
  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const auto& part) const {
    using P = RowReduceBackwardProblem;
    const auto number = [&](const void* data, int operand) {
      return widen<float>(static_cast<const T*>(data)[offset_of(p.rows, operand, part.row)]);
    };
    kernels::row_reduce_backward(team, part_of<const T>(p.rows, P::kX, p.x, part, p.x == p.dx),
                                 part_of<T>(p.rows, P::kDx, p.dx, part), number(p.y, P::kY),
                                 number(p.dy, P::kDy), p.rows.columns, p.kind);
  }
};

/// Of a product: a team has a row, since all of it counts for each element.
template <class T>
struct ProductBackward : OfRows {
  RowReduceBackwardProblem p;
  std::int64_t segment;
  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const RowRange& range) const {
    using P = RowReduceBackwardProblem;
    const auto x = row_of<const T, Team>(p.rows, P::kX, p.x, range, 0, p.x == p.dx);
    const auto dx = row_of<T, Team>(p.rows, P::kDx, p.dx, range, 0);
    const float dy = widen<float>(static_cast<const T*>(p.dy)[offset_of(p.rows, P::kDy, range.row)]);
    kernels::row_product_backward(team, x, dx, segment, dy);
  }
};
Status launch_product_backward(const CudaLaunch& launch, const RowReduceBackwardProblem& p) {
  if (p.rows.rows == 0 || p.rows.columns == 0) return {};
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() -> Status {
    constexpr int kLanes = 16 / int(sizeof(T)), kChunks = kItems / kLanes;
    const RowShape shape = shape_of<T>(p.rows.columns);
    const ProductBackward<T> program{{}, p, std::int64_t{shape.threads} * kItems};
    const auto run = [&]<Scope kScope>() {
      return launch_direct<CudaTeam<float, kLanes, kChunks, Access::any, kScope>>(
          launch, "row_reduce_backward", program, shape, p.rows.rows);
    };
    return shape.threads <= kWarp ? run.template operator()<Scope::warp>()
                                  : run.template operator()<Scope::block>();
  });
}

Status launch_backward(const CudaLaunch& launch, const RowReduceBackwardProblem& p) {
  using P = RowReduceBackwardProblem;
  if (p.kind == static_cast<int>(RowReduction::product)) return launch_product_backward(launch, p);
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
    const bool aligned =
        aligned_rows(p.rows, P::kX, p.x, sizeof(T)) && aligned_rows(p.rows, P::kDx, p.dx, sizeof(T));
    return for_parts<16 / int(sizeof(T)), 4, float>(launch, "row_reduce_backward", p.rows.rows,
                                                    p.rows.columns, aligned, Backward<T>{p});
  });
}

}  // namespace

ROOFTILE_CUDA_KERNELS(row_reduce) = {
    entry<launch_reduce>("row_reduce", "tile"),
    entry<launch_backward>("row_reduce_backward", "tile"),
    entry<launch_arg>("row_arg", "tile"),
    {},
};

}  // namespace rooftile
