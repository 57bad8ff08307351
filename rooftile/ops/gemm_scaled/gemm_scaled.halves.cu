// f8 by Hopper's tensor cores for halves, which hold each code exactly: both operands' codes become halves in
// the workspace, once, with their neighbours along K; then they are multiplied as gemm's are.
#include "rooftile/ops/gemm_scaled/gemm_scaled.hopper_launch.h"

namespace rooftile::scaled_gpu {
namespace {
constexpr int kThreads = 256, kEach = 8;  ///< halves of a thread: 16 bytes

struct CodesToHalves {
  const std::uint8_t* from;
  std::int64_t row_stride, k_stride, rows, k, pitch;
  std::byte* to;
  bool large, words;  ///< codes are f8e5m2; eight neighbours along K are one aligned word
};

/// A thread's eight are neighbours along K; threads' are neighbours in memory, where any are.
__global__ void __launch_bounds__(kThreads) codes_to_halves(const __grid_constant__ CodesToHalves p) {
  const std::int64_t vectors = p.pitch / kEach, step = std::int64_t{gridDim.x} * kThreads;
  ROOFTILE_UNROLL_BY(1)
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + static_cast<int>(threadIdx.x);
       i < p.rows * vectors; i += step) {
    const bool along_k = p.k_stride == 1;
    const std::int64_t far = gemm_gpu::quotient(i, along_k ? vectors : p.rows),
                       near = i - far * (along_k ? vectors : p.rows);
    const std::int64_t row = along_k ? far : near, first = (along_k ? near : far) * kEach, rest = p.k - first;
    const std::uint8_t* const from = p.from + row * p.row_stride + first * p.k_stride;
    unsigned codes[2] = {0, 0};
    if (p.words && rest >= kEach) {
      const uint2 word = *reinterpret_cast<const uint2*>(from);
      codes[0] = word.x, codes[1] = word.y;
    } else {
      ROOFTILE_UNROLL for (int e = 0; e < kEach; ++e) {
        if (e < rest) codes[e / 4] |= static_cast<unsigned>(from[e * p.k_stride]) << e % 4 * 8;
      }
    }
    const uint4 halves{halves_of(codes[0] & 0xFFFF, p.large), halves_of(codes[0] >> 16, p.large),
                       halves_of(codes[1] & 0xFFFF, p.large), halves_of(codes[1] >> 16, p.large)};
    *reinterpret_cast<uint4*>(p.to + (row * p.pitch + first) * 2) = halves;
  }
}

/// One operand's; it has one matrix. It becomes that of the halves.
Status convert(const CudaLaunch& launch, GpuOperand& o, std::int64_t rows, std::int64_t k, bool large,
               std::byte* to) {
  const std::int64_t pitch = GemmScaledProblem::halves_pitch(k);
  const bool words = o.k_stride == 1 && o.piece >= kEach;
  const CodesToHalves p{reinterpret_cast<const std::uint8_t*>(o.data),
                        o.mn_stride,
                        o.k_stride,
                        rows,
                        k,
                        pitch,
                        to,
                        large,
                        words};
  const std::int64_t blocks = (rows * (pitch / kEach) + kThreads - 1) / kThreads,
                     most = std::int64_t{launch.multiprocessors} * 32;
  o = {to, pitch, 1, true, 16};
  return rooftile::cuda::launch(launch, "gemm_scaled",
                                {static_cast<unsigned>(blocks < most ? blocks : most), kThreads},
                                codes_to_halves, p);
}
}  // namespace

Status launch_hopper_halves(const CudaLaunch& launch, const GemmScaledProblem& problem) {
  if (problem.product.empty()) return {};
  GpuProduct p = product_of(problem);
  const GpuScales scales = scales_of(problem);
  auto* const a = static_cast<std::byte*>(problem.halves);
  std::byte* const b = a + p.m * GemmScaledProblem::halves_pitch(p.k) * 2;
  if (Status s = convert(launch, p.a, p.m, p.k, scales.a_large, a); !s) return s;
  if (Status s = convert(launch, p.b, p.n, p.k, scales.b_large, b); !s) return s;
  return launch_blocks<f16>(launch, p, scales, problem.blocks());
}
}  // namespace rooftile::scaled_gpu
