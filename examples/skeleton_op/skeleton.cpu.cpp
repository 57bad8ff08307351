#include "rooftile/core/op.h"
#include "rooftile/ops/skeleton/skeleton.problem.h"
#include "rooftile/ops/skeleton/skeleton.tile.h"
#include "rooftile/tile/cpu/launch.h"

namespace rooftile {
namespace ladder {
void launch_skeleton_scalar(const CpuLaunch& launch, const SkeletonProblem& problem);  // ladder/01_scalar.cpp
}

namespace {
using namespace tile;

void launch_tile(const CpuLaunch& launch, const SkeletonProblem& p) {
  for_each_row(launch, p.rows, p.dtype,
               [&]<class T>(auto team, std::int64_t row, std::int64_t end) ROOFTILE_INLINE {
                 const auto x = row_of<const T>(p.rows, 0, p.x, row, end);
                 kernels::skeleton(team, x, row_of<T>(p.rows, 1, p.y, row, end));
               });
}

}  // namespace

ROOFTILE_CPU_KERNELS(skeleton) = {
    entry<launch_tile>("skeleton", "tile"),
    entry<ladder::launch_skeleton_scalar>("skeleton", "01_scalar"),
    {},
};

}  // namespace rooftile
