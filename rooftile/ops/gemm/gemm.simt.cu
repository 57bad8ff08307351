// Registers and fused multiply-adds.
#include "rooftile/ops/gemm/gemm.simt.h"
#include "rooftile/ops/gemm/gemm.simt_wide.h"

namespace rooftile::gemm_gpu {
namespace {
template <class T, int kBlocks>
Status launch_square(const CudaLaunch& launch, const GpuProduct& p) {
  using Shape = SimtShape<T, kBlocks>;
  return launch_tiles(launch, "gemm", p, Shape::kSide, Shape::kSide, Shape::kThreads, Shape::kShared,
                      gemm_simt<T, Shape>);
}
}  // namespace

Status launch_simt(const CudaLaunch& launch, const GemmProblem& problem) {
  if (problem.empty()) return {};
  const GpuProduct p = product_of(problem, bits(problem.type) / 8);
  if (problem.type == DType::f64) return launch_square<double, 2>(launch, p);
  if (problem.type == DType::i8) return launch_square<std::int8_t, 2>(launch, p);
  // Which one it is changes no bit.
  return suits_wide(p, launch.multiprocessors) ? launch_wide(launch, p) : launch_square<float, 3>(launch, p);
}
}  // namespace rooftile::gemm_gpu
