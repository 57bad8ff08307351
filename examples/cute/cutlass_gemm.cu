// y = A·Bᵀ by CUTLASS's collectives for Hopper (sm_90a), in bf16: what a tile, a cluster and a schedule
// describe, the builder turns into a kernel. Checked, and timed at 4096³ beside cuBLAS. Lesson 45.
//   nvcc -std=c++17 -O3 -DNDEBUG -arch=sm_90a --expt-relaxed-constexpr -isystem build/cute/include
//     -o build/cute/cutlass_gemm examples/cute/cutlass_gemm.cu -lcublas -lcuda && build/cute/cutlass_gemm
#include <cublas_v2.h>

#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

#include "gemm_try.h"

using namespace cute;
namespace gemm = cutlass::gemm;
namespace epilogue = cutlass::epilogue;

// [build]
template <class Tile, class Cluster, class Schedule, class EpilogueSchedule>
struct Built {
  using RowMajor = cutlass::layout::RowMajor;
  using ColumnMajor = cutlass::layout::ColumnMajor;
  static constexpr int kAligned = 8;  // elements: 16 bytes, so that TMA can copy

  using Epilogue = typename epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      epilogue::collective::EpilogueTileAuto, float, float,  // sums, and what they are scaled in
      void, RowMajor, kAligned, bf16, RowMajor, kAligned,    // no C; y
      EpilogueSchedule>::CollectiveOp;
  using Mainloop = typename gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, bf16, RowMajor, kAligned, bf16, ColumnMajor,
      kAligned, float, Tile, Cluster,
      gemm::collective::StageCountAutoCarveout<int(sizeof(typename Epilogue::SharedStorage))>,
      Schedule>::CollectiveOp;
  using Kernel = gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Mainloop, Epilogue>;
  using Device = gemm::device::GemmUniversalAdapter<Kernel>;
  static constexpr int kStages = Mainloop::DispatchPolicy::Stages;
};
// [/build]

void check(cutlass::Status status) {
  if (status == cutlass::Status::kSuccess) return;
  std::fprintf(stderr, "cutlass_gemm: %s\n", cutlassGetStatusString(status));
  std::exit(1);
}

// [launch]
template <class P>
bool try_built(const char* name) {
  typename P::Device product;
  std::printf("%d stages  ", P::kStages);
  return try_gemm(name, [&](const bf16* a, const bf16* b, bf16* y, int m, int n, int k) {
    const std::int64_t matrices = 0;  // one matrix: no stride to the next
    const auto rows = [&](int length) { return make_stride(std::int64_t{length}, _1{}, matrices); };
    const typename P::Kernel::Arguments arguments{gemm::GemmUniversalMode::kGemm,
                                                  {m, n, k, 1},
                                                  {a, rows(k), b, rows(k)},
                                                  {{1.0f, 0.0f}, nullptr, {}, y, rows(n)}};
    check(product.can_implement(arguments));
    check(product.initialize(arguments));
    check(product.run());
  });
}
// [/launch]

int main() {
  cudaDeviceProp device;
  CHECK(cudaGetDeviceProperties(&device, 0));
  std::printf("%s\n", device.name);
  cublasHandle_t cublas;
  if (cublasCreate(&cublas) != CUBLAS_STATUS_SUCCESS) return 1;
  bool right = try_gemm("cuBLAS", [&](const bf16* a, const bf16* b, bf16* y, int m, int n, int k) {
    const float one = 1, zero = 0;  // by columns: yᵀ = B·Aᵀ
    cublasGemmEx(cublas, CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &one, b, CUDA_R_16BF, k, a, CUDA_R_16BF, k, &zero,
                 y, CUDA_R_16BF, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  });
  // [schedules]
  using Cooperative = gemm::KernelTmaWarpSpecializedCooperative;
  using PingPong = gemm::KernelTmaWarpSpecializedPingpong;
  using StoreTogether = epilogue::TmaWarpSpecializedCooperative;
  using StoreInTurn = epilogue::TmaWarpSpecialized;
  right &= try_built<Built<Shape<_128, _256, _64>, Shape<_2, _1, _1>, Cooperative, StoreTogether>>(
      "cooperative, 128x256x64, cluster 2x1");
  right &= try_built<Built<Shape<_64, _256, _64>, Shape<_2, _1, _1>, PingPong, StoreInTurn>>(
      "ping-pong, 64x256x64, cluster 2x1");
  // [/schedules]
  return right ? 0 : 1;
}
