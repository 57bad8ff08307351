#pragma once
// A tensor map tells the copy engine of a GPU from sm_90 on (tensor_copies.h) of a tensor in memory, and of
// the box of it that one copy brings. The host makes it; a kernel takes it as a parameter,
//   const __grid_constant__ cuda::TensorMap map,
// and hands on its address.
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "rooftile/core/status.h"

namespace rooftile::cuda {

/// Bit for bit a CUtensorMap.
struct alignas(128) TensorMap {
  std::uint64_t opaque[16];
};

/// How 16-byte pieces of a box are mixed in shared memory, so that pieces below each other lie in different
/// banks: piece p of row r, of 128 bytes, stands at p ^ r mod 8; of 64 bytes, at p ^ r/2 mod 4; of 32, at
/// p ^ r/4 mod 2. wgmma reads operands in this form. A box starts at a multiple of 8 rows: 1024, 512, 256
/// bytes.
enum class Swizzle : std::uint8_t { kNone, k32, k64, k128 };
/// Bytes of a row of the pattern, as many as a box's rows have; without a swizzle those may have any number.
constexpr unsigned row_bytes(Swizzle s) { return s == Swizzle::kNone ? 16 : 16u << static_cast<int>(s); }

/// One of a tensor's up to five dimensions.
struct MapDimension {
  std::int64_t size;  ///< elements; up to 2^32
  std::int64_t
      stride_bytes;  ///< between neighbours; of the innermost one an element's size, else a multiple of 16
  int box;           ///< elements in a box; up to 256; a row has a multiple of 16 bytes
};

/// `dimensions`: innermost first; elements of 1, 2, 4 or 8 bytes; `data`: aligned to 16. What of a box lies
/// outside of the tensor reads as zeros and is not written. Refused with a sentence that begins with
/// `function`.
Status make_tensor_map(TensorMap& map, const char* function, const void* data, int element_bytes,
                       std::initializer_list<MapDimension> dimensions, Swizzle swizzle);

}  // namespace rooftile::cuda
