// Tensor maps for the emulated copy engine: refused as for GPUs.
#include "rooftile/backend/emulated/tensor_map.h"

#include <cstring>

#include "rooftile/backend/cuda/tensor_map_rules.h"

namespace rooftile {
namespace {
constexpr std::uint64_t kMagic = 0x70616d20726f7374;
}

Status cuda::make_tensor_map(TensorMap& map, const char* function, const void* data, int element_bytes,
                             std::initializer_list<MapDimension> dimensions, Swizzle swizzle) {
  if (Status wrong = check_tensor_map(function, data, element_bytes, dimensions, swizzle); !wrong)
    return wrong;
  emulated::EncodedMap encoded{};
  encoded.magic = kMagic;
  encoded.data = static_cast<std::byte*>(const_cast<void*>(data));
  encoded.swizzle = swizzle;
  for (const MapDimension& d : dimensions) {
    encoded.sizes[encoded.rank] = d.size;
    encoded.strides[encoded.rank] = d.stride_bytes;
    encoded.box[encoded.rank++] = static_cast<std::uint16_t>(d.box);
  }
  map = {};
  std::memcpy(map.opaque, &encoded, sizeof encoded);
  return {};
}

const emulated::EncodedMap* emulated::decode(const cuda::TensorMap* map) {
  const auto* encoded = reinterpret_cast<const EncodedMap*>(map);
  return encoded->magic == kMagic ? encoded : nullptr;
}

}  // namespace rooftile
