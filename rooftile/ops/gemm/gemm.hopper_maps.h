#pragma once
// Tensor maps of a product's operands, by the host: what the copy engine is told.
#include "rooftile/backend/cuda/tensor_map.h"
#include "rooftile/ops/gemm/gemm.gpu.h"
#include "rooftile/ops/gemm/gemm.hopper_parts.h"
#include "rooftile/ops/gemm/gemm.hopper_plan.h"

namespace rooftile::gemm_gpu {

/// Neighbours of 128 bytes are a row of a box, which has `box` rows. A dimension of the batch along which the
/// matrix is the same is not in the map: its coordinate stays 0. `size`: bytes of an element.
inline Status map_of(TensorMap& map, int size, const void* data, std::int64_t near, std::int64_t far,
                     std::int64_t far_stride, const Rows<4>& batch, int operand, int box) {
  const auto outer = [&](int d) -> rooftile::cuda::MapDimension {
    const std::int64_t stride = d < batch.rank ? batch.stride[operand][d] : 0;
    if (stride == 0) return {1, 16, 1};
    return {batch.extent[d], stride * size, 1};
  };
  return rooftile::cuda::make_tensor_map(map, "gemm", data, size,
                                         {{near, size, kHopperRow / size},
                                          {far, far_stride == 0 ? 16 : far_stride * size, box},
                                          outer(0),
                                          outer(1)},
                                         rooftile::cuda::Swizzle::k128);
}
/// Rows of a box that has `rows` of a matrix: whole groups of eight, as the swizzle has them.
constexpr int box_rows(std::int64_t rows) { return static_cast<int>((rows + 7) / 8 * 8); }
/// A or B, of which a box has `extent` of M or N; where neighbours are along those, 64, and `depth` of K.
inline Status map_of(TensorMap& map, int size, const GpuOperand& o, std::int64_t mn, std::int64_t k,
                     const Rows<4>& batch, int operand, int extent, int depth) {
  return o.k_first ? map_of(map, size, o.data, k, mn, o.mn_stride, batch, operand, extent)
                   : map_of(map, size, o.data, mn, k, o.k_stride, batch, operand, depth);
}
/// A's, in slices of `depth` along K. `tail`: rows of the last tile's box.
inline Status maps_of_tiles(HopperMaps& maps, int& tail, int size, const GpuProduct& p, int depth) {
  const std::int64_t rest = p.m % kHopperHeight;
  tail = p.a.k_first && rest != 0 ? box_rows(rest) : kHopperHeight;
  Status s = map_of(maps.whole, size, p.a, p.m, p.k, p.batch, p.a_index, kHopperHeight, depth);
  return s ? map_of(maps.tail, size, p.a, p.m, p.k, p.batch, p.a_index, tail, depth) : s;
}

/// Whether y is alpha times the sums, in rows that the copy engine can store.
inline bool is_whole(const GpuProduct& p) {
  const GpuEpilogue& e = p.epilogue;
  const int size = bits(e.out) / 8;
  // It stores words of 4 bytes (H200): of an odd row of 16 bits the next element, too.
  if (size == 2 && p.n % 2 != 0) return false;
  if (p.m <= 1 && p.n * size % 16 != 0) return false;  // of a lone row, whole 16-byte words
  if (e.c || e.bias || e.activation != 0) return false;
  constexpr std::int64_t kMaxStride = std::int64_t{1} << 39;
  if (e.y_row < 0 || e.y_row >= kMaxStride) return false;
  for (int d = 0; d < p.batch.rank; ++d)
    if (p.batch.stride[0][d] <= 0 || p.batch.stride[0][d] >= kMaxStride) return false;
  return piece_of(p.batch, 0, e.y, e.y_column, e.y_row, size) == 16;
}
/// y's map, of boxes that a warp stores: 128 bytes of its 16 rows.
inline Status map_of_results(TensorMap& map, const GpuProduct& p) {
  const GpuEpilogue& e = p.epilogue;
  return map_of(map, bits(e.out) / 8, e.y, p.n, p.m, e.y_row, p.batch, 0, 16);
}

Status launch_skinny(const CudaLaunch&, DType, const GpuProduct&,
                     const HopperPlan&);  // gemm.hopper_skinny.cu

}  // namespace rooftile::gemm_gpu
