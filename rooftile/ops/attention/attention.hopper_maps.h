#pragma once
// How the host tells the copy engine of operands, for the forward and the backward on Hopper.
#include "rooftile/ops/attention/attention.hopper_parts.h"

namespace rooftile::attention_gpu {

/// Whether the copy engine can fetch or store an operand: rows of whole 16-byte words, strides for a map.
inline bool engine_moves(const AttentionOperand& o, std::int64_t rows, std::int64_t heads,
                         std::int64_t batches, bool stored) {
  constexpr std::int64_t kMaxStride = std::int64_t{1} << 39;  // elements: 2^40 bytes
  if (rows == 0 || o.stride[3] != 1 || reinterpret_cast<std::uintptr_t>(o.data) % 16 != 0) return false;
  const std::int64_t extent[] = {batches, rows, heads};
  for (int d = 0; d < 3; ++d) {
    const std::int64_t stride = o.stride[d];
    if (extent[d] == 1) continue;
    if (stride % 8 != 0 || stride < 0 || stride >= kMaxStride) return false;
    if (stride == 0 && (stored || d == 1)) return false;
  }
  return true;
}

/// Boxes of rows of the swizzle, 64 channels of 2 bytes. A dimension along which all is one is not in the
/// map: `steps` makes its coordinate 0.
inline Status hopper_map_of(cuda::TensorMap& map, const char* function, const AttentionOperand& o,
                            std::int64_t channels, std::int64_t rows, std::int64_t heads,
                            std::int64_t batches, int box, HopperSteps& steps, int bytes = 2) {
  const auto dimension = [bytes](std::int64_t size, std::int64_t stride, int boxed) -> cuda::MapDimension {
    if (size == 1 || stride == 0) return {1, 16, boxed};
    return {size, stride * bytes, boxed};
  };
  steps = {o.stride[2] == 0 ? 0 : 1, o.stride[0] == 0 ? 0 : 1};
  return cuda::make_tensor_map(map, function, o.data, bytes,
                               {{channels, bytes, 128 / bytes},
                                dimension(rows, o.stride[1], box),
                                dimension(heads, o.stride[2], 1),
                                dimension(batches, o.stride[0], 1)},
                               cuda::Swizzle::k128);
}

}  // namespace rooftile::attention_gpu
