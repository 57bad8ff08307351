#pragma once
// Tensor maps of a product's operands, by the host: what the copy engine is told.
#include "rooftile/backend/cuda/tensor_map.h"
#include "rooftile/ops/gemm/gemm.gpu.h"
#include "rooftile/ops/gemm/gemm.hopper_plan.h"

namespace rooftile::gemm_gpu {
using rooftile::cuda::TensorMap;

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
/// A or B, of which a box has `extent` of M or N; where neighbours are along those, 64, and `depth` of K.
inline Status map_of(TensorMap& map, int size, const GpuOperand& o, std::int64_t mn, std::int64_t k,
                     const Rows<4>& batch, int operand, int extent, int depth) {
  return o.k_first ? map_of(map, size, o.data, k, mn, o.mn_stride, batch, operand, extent)
                   : map_of(map, size, o.data, mn, k, o.k_stride, batch, operand, depth);
}

Status launch_skinny(const CudaLaunch&, DType, const GpuProduct&,
                     const HopperPlan&);  // gemm.hopper_skinny.cu

}  // namespace rooftile::gemm_gpu
