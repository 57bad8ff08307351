// Tensor maps by the driver, which is asked for its function and not linked.
#include "rooftile/backend/cuda/tensor_map.h"

#include <cuda.h>
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/tensor_map_rules.h"

namespace rooftile::cuda {
namespace {

decltype(&cuTensorMapEncodeTiled) driver_function() {
  static const auto found = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault,
                                         &result) != cudaSuccess ||
        result != cudaDriverEntryPointSuccess)
      function = nullptr;
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  return found;
}

CUtensorMapDataType type_of(int element_bytes) {  // what they are does not matter: they are copied
  return element_bytes == 1   ? CU_TENSOR_MAP_DATA_TYPE_UINT8
         : element_bytes == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16
         : element_bytes == 4 ? CU_TENSOR_MAP_DATA_TYPE_UINT32
                              : CU_TENSOR_MAP_DATA_TYPE_UINT64;
}
CUtensorMapSwizzle swizzle_of(Swizzle s) {
  return s == Swizzle::k32    ? CU_TENSOR_MAP_SWIZZLE_32B
         : s == Swizzle::k64  ? CU_TENSOR_MAP_SWIZZLE_64B
         : s == Swizzle::k128 ? CU_TENSOR_MAP_SWIZZLE_128B
                              : CU_TENSOR_MAP_SWIZZLE_NONE;
}

}  // namespace

Status make_tensor_map(TensorMap& map, const char* function, const void* data, int element_bytes,
                       std::initializer_list<MapDimension> dimensions, Swizzle swizzle) {
  static_assert(sizeof(TensorMap) == sizeof(CUtensorMap) && alignof(TensorMap) >= alignof(CUtensorMap));
  if (Status wrong = check_tensor_map(function, data, element_bytes, dimensions, swizzle); !wrong)
    return wrong;
  const auto encode = driver_function();
  if (!encode)
    return Status::error("%s: the driver has no cuTensorMapEncodeTiled: a driver for CUDA 12 is needed",
                         function);
  cuuint64_t sizes[5] = {}, strides[5] = {};
  cuuint32_t box[5] = {};
  const cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  cuuint32_t rank = 0;
  for (const MapDimension& d : dimensions) {
    sizes[rank] = static_cast<cuuint64_t>(d.size), box[rank] = static_cast<cuuint32_t>(d.box);
    if (rank > 0) strides[rank - 1] = static_cast<cuuint64_t>(d.stride_bytes);
    ++rank;
  }
  const CUresult result =
      encode(reinterpret_cast<CUtensorMap*>(&map), type_of(element_bytes), rank, const_cast<void*>(data),
             sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(swizzle),
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    return Status::error("%s: cuTensorMapEncodeTiled: error %d, of a tensor of %d dimensions at %p", function,
                         static_cast<int>(result), static_cast<int>(rank), data);
  return {};
}

}  // namespace rooftile::cuda
