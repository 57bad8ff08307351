#pragma once
// A tensor map as the emulated copy engine reads it, in the place of a CUtensorMap's bits.
#include <cstddef>
#include <cstdint>

#include "rooftile/backend/cuda/tensor_map.h"

namespace rooftile::emulated {

using cuda::Swizzle;
/// An address of shared memory as the swizzle moves it: bits 4 to 6 are changed by bits 7 to 9, or fewer.
constexpr std::uint32_t swizzled(std::uint32_t address, Swizzle s) {
  const std::uint32_t mask = s == Swizzle::k128 ? 7 : s == Swizzle::k64 ? 3 : s == Swizzle::k32 ? 1 : 0;
  return address ^ (address >> 7 & mask) << 4;
}
constexpr const char* name(Swizzle s) {
  constexpr const char* names[] = {"no", "a 32-byte", "a 64-byte", "a 128-byte"};
  return names[static_cast<int>(s)];
}

struct EncodedMap {
  std::uint64_t magic;
  std::byte* data;
  std::int64_t sizes[5];    // innermost first
  std::int64_t strides[5];  // bytes; the first: of an element
  std::uint16_t box[5];
  std::uint8_t rank;
  Swizzle swizzle;
  std::uint32_t box_bytes() const {
    auto n = static_cast<std::uint32_t>(strides[0]);
    for (int i = 0; i < rank; ++i) n *= box[i];
    return n;
  }
};
static_assert(sizeof(EncodedMap) <= sizeof(cuda::TensorMap));

/// Null if nobody made it.
const EncodedMap* decode(const cuda::TensorMap*);

/// For each run of a row of the box that lies inside the tensor, and each that lies outside: each(shared
/// address relative to the box, bytes, place in the tensor or null). Runs have at most 16 bytes, so that no
/// swizzle cuts one.
template <class Each>
void for_each_run(const EncodedMap& map, const int* at, Each each) {
  std::uint32_t rows = 1;
  for (int i = 1; i < map.rank; ++i) rows *= map.box[i];
  const auto element = static_cast<std::uint32_t>(map.strides[0]), row_bytes = map.box[0] * element;
  for (std::uint32_t row = 0; row < rows; ++row) {
    std::byte* place = map.data;
    std::uint32_t rest = row;
    for (int i = 1; i < map.rank; ++i) {
      const std::int64_t x = std::int64_t{at[i]} + rest % map.box[i];
      rest /= map.box[i];
      if (x < 0 || x >= map.sizes[i]) place = nullptr;
      if (place) place += x * map.strides[i];
    }
    for (std::uint32_t c = 0; c < row_bytes; c += 16) {
      const std::int64_t begin = std::int64_t{at[0]} * element + c, end = map.sizes[0] * element;
      if (place && begin >= 0 && begin + 16 <= end)
        each(row * row_bytes + c, 16u, place + begin);
      else
        for (std::uint32_t i = 0; i < 16; i += element)  // the tensor's edge within 16 bytes
          each(row * row_bytes + c + i, element,
               place && begin + i >= 0 && begin + i < end ? place + begin + i : nullptr);
    }
  }
}

}  // namespace rooftile::emulated
