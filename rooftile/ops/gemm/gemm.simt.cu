// Registers and fused multiply-adds.
#include "rooftile/ops/gemm/gemm.simt.h"

namespace rooftile::gemm_gpu {
namespace {
template <class T, class Shape>
Status launch_shape(const CudaLaunch& launch, const GpuProduct& p) {
  return launch_tiles(launch, p, Shape::kSide, Shape::kSide, Shape::kThreads, Shape::kShared,
                      gemm_simt<T, Shape>);
}
}  // namespace

Status launch_simt(const CudaLaunch& launch, const GemmProblem& problem) {
  if (problem.empty()) return {};
  const GpuProduct p = product_of(problem, bits(problem.type) / 8);
  if (problem.type == DType::f64) return launch_shape<double, SimtShape<double, 64, 2>>(launch, p);
  if (problem.type == DType::i8) return launch_shape<std::int8_t, SimtShape<std::int8_t, 64, 2>>(launch, p);
  // Large tiles where they fill the multiprocessors, and are filled. Which one it is changes no bit.
  return p.m > 64 && p.n > 64 && GpuTiles(p, 128, 128).count >= launch.multiprocessors
             ? launch_shape<float, SimtShape<float, 128, 2>>(launch, p)
             : launch_shape<float, SimtShape<float, 64, 3>>(launch, p);
}
}  // namespace rooftile::gemm_gpu
