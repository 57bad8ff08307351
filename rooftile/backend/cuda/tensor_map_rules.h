#pragma once
// What a tensor map may tell, for GPUs (tensor_map.cpp) and the emulated device alike: the driver answers
// "invalid argument" to all that is wrong.
#include <cstdint>

#include "rooftile/backend/cuda/tensor_map.h"

namespace rooftile::cuda {

inline Status check_tensor_map(const char* function, const void* data, int element_bytes,
                               std::initializer_list<MapDimension> dimensions, Swizzle swizzle) {
  if (dimensions.size() < 1 || dimensions.size() > 5)
    return Status::error("%s: a tensor map has 1 to 5 dimensions, not %d", function,
                         static_cast<int>(dimensions.size()));
  if (element_bytes != 1 && element_bytes != 2 && element_bytes != 4 && element_bytes != 8)
    return Status::error("%s: a tensor map's elements have 1, 2, 4 or 8 bytes, not %d", function,
                         element_bytes);
  if (data == nullptr || reinterpret_cast<std::uintptr_t>(data) % 16 != 0)
    return Status::error("%s: a tensor map's tensor is aligned to 16 bytes; this one stands at %p", function,
                         data);
  int i = 0;
  for (const MapDimension& d : dimensions) {
    if (d.size < 1 || d.size > std::int64_t{1} << 32)
      return Status::error("%s: dimension %d of a tensor map has 1 to 2^32 elements, not %lld", function, i,
                           static_cast<long long>(d.size));
    if (d.box < 1 || d.box > 256)
      return Status::error("%s: a box has 1 to 256 elements in each dimension, in dimension %d not %d",
                           function, i, d.box);
    const bool innermost = i == 0;
    if (innermost ? d.stride_bytes != element_bytes
                  : d.stride_bytes % 16 != 0 || d.stride_bytes < 0 || d.stride_bytes >= std::int64_t{1} << 40)
      return Status::error("%s: the stride of dimension %d of a tensor map is %s, not %lld bytes", function,
                           i, innermost ? "an element's size" : "a multiple of 16 bytes below 2^40",
                           static_cast<long long>(d.stride_bytes));
    ++i;
  }
  const int row = dimensions.begin()->box * element_bytes;
  if (row % 16 != 0)
    return Status::error("%s: a box's row has a multiple of 16 bytes, not %d", function, row);
  if (swizzle != Swizzle::kNone && row != static_cast<int>(row_bytes(swizzle)))
    return Status::error("%s: under a %u-byte swizzle a box's row has as many bytes, not %d", function,
                         row_bytes(swizzle), row);
  return {};
}

}  // namespace rooftile::cuda
