#pragma once
// What the GPU's kernels get: a product in the order in which it is computed, and where tiles lie in it.
#include <utility>

#include "rooftile/ops/gemm/gemm.gpu_epilogue.h"
#include "rooftile/ops/gemm/gemm.operand.h"

namespace rooftile::gemm_gpu {
using namespace rooftile::tile;

/// y and its operands; where neighbours in y lie along M, M and N, A and B have changed places, which changes
/// no bit: a product's factors do not.
struct GpuProduct {
  GpuOperand a, b;
  std::int64_t m, n, k;
  Rows<4> batch;
  int a_index, b_index;  // of the operands in `batch`
  GpuEpilogue epilogue;
};

/// The operands as they are given; none change places.
inline GpuProduct product_in_order(const GemmProblem& p, const GpuOperand& a, const GpuOperand& b) {
  GpuProduct r{};
  r.a = a;
  r.b = b;
  r.m = p.m;
  r.n = p.n;
  r.k = p.k;
  r.batch = p.batch;
  r.a_index = 1;
  r.b_index = 2;
  r.epilogue = epilogue_of(p);
  return r;
}
/// `size`: bytes of an element of A and B.
inline GpuProduct product_of(const GemmProblem& p, int size) {
  const bool turned = p.y_column != 1 && p.y_row == 1 && p.m > 1;
  GpuProduct r = product_in_order(p, a_of(p, size), b_of(p, size));
  if (turned) {
    std::swap(r.a, r.b);
    std::swap(r.a_index, r.b_index);
    std::swap(r.m, r.n);
    turn(r.epilogue, p.batch);
  }
  return r;
}

/// All matrices' tiles in one line. Within a matrix groups of kGroup rows of tiles, column by column: what
/// runs at one time shares operands in L2.
struct GpuTiles {
  static constexpr int kGroup = 8;
  std::int64_t rows, columns, count;

  GpuTiles(const GpuProduct& p, int height, int width)
      : rows((p.m + height - 1) / height),
        columns((p.n + width - 1) / width),
        count(p.batch.rows * rows * columns) {}
};
struct GpuTile {
  std::int64_t matrix, row, column;  // row and column in tiles
};
ROOFTILE_TILE std::int64_t quotient(std::int64_t a, std::int64_t b) {
  return (a | b) >> 32 != 0 ? a / b : static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
}
ROOFTILE_TILE GpuTile tile_at(const GpuTiles& tiles, std::int64_t index) {
  const std::int64_t of_matrix = tiles.rows * tiles.columns, matrix = quotient(index, of_matrix);
  const std::int64_t within = index - matrix * of_matrix, of_group = GpuTiles::kGroup * tiles.columns;
  const std::int64_t group = quotient(within, of_group), first = group * GpuTiles::kGroup;
  const std::int64_t rest = tiles.rows - first, height = rest < GpuTiles::kGroup ? rest : GpuTiles::kGroup;
  const std::int64_t in_group = within - group * of_group, column = quotient(in_group, height);
  return {matrix, first + in_group - column * height, column};
}

/// A block for each tile; a grid has at most 2^31 - 1. `more`: what the kernel takes behind the product.
template <class Kernel, class... More>
Status launch_tiles(const CudaLaunch& launch, const char* function, const GpuProduct& p, int height,
                    int width, int threads, std::size_t shared_bytes, Kernel kernel, const More&... more) {
  const GpuTiles tiles(p, height, width);
  for (std::int64_t first = 0; first < tiles.count; first += kMaxBlocks) {
    const std::int64_t rest = tiles.count - first;
    const auto blocks = static_cast<unsigned>(rest < kMaxBlocks ? rest : kMaxBlocks);
    if (Status s =
            rooftile::cuda::launch(launch, function, {blocks, static_cast<unsigned>(threads), shared_bytes},
                                   kernel, p, more..., tiles, first);
        !s)
      return s;
  }
  return {};
}

Status launch_hopper(const CudaLaunch&, const GemmProblem&);    // gemm.hopper.cu
Status launch_mma_16(const CudaLaunch&, const GemmProblem&);    // gemm.mma.cu
Status launch_mma_tf32(const CudaLaunch&, const GemmProblem&);  // gemm.tf32.cu
Status launch_mma_i8(const CudaLaunch&, const GemmProblem&);    // gemm.i8.cu
Status launch_simt(const CudaLaunch&, const GemmProblem&);      // gemm.simt.cu

}  // namespace rooftile::gemm_gpu
