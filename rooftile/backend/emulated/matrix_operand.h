#pragma once
// A matrix in shared memory as wgmma's 64-bit descriptor gives it.
#include <cstdint>

#include "rooftile/backend/emulated/tensor_map.h"

namespace rooftile::emulated {

struct MatrixDescriptor {
  std::uint32_t start, leading, stride;  // bytes
  Swizzle swizzle;
  unsigned base_offset;
  explicit MatrixDescriptor(std::uint64_t bits)
      : start(static_cast<std::uint32_t>(bits & 0x3fff) << 4),
        leading(static_cast<std::uint32_t>(bits >> 16 & 0x3fff) << 4),
        stride(static_cast<std::uint32_t>(bits >> 32 & 0x3fff) << 4),
        swizzle(static_cast<Swizzle>((4 - (bits >> 62)) & 3)),  // 1: 128 bytes, 2: 64, 3: 32
        base_offset(static_cast<unsigned>(bits >> 49 & 7)) {}
};

/// An operand of a wgmma: `extent` of m (or n) by 32 bytes of k. MN-major are elements of 2 bytes alone.
struct MatrixOperand {
  std::uint64_t descriptor = 0;
  bool mn_major = false;
  int extent = 0, element_bytes = 2;
  int depth() const { return 32 / element_bytes; }  // of k
  int piece() const { return 16 / element_bytes; }  // elements of 16 bytes
};

/// The operand's 16-byte pieces: each(shared address, its first mn, its first k). K-major, a piece is one mn
/// and 16 bytes of k; MN-major, one k and 16 bytes of mn. Core matrices are eight rows of 16 bytes; under a
/// swizzle, eight rows of the pattern. PTX ISA, "Strides" and "Canonical layouts" of wgmma.
template <class Each>
void for_each_piece(const MatrixOperand& operand, Each each) {
  const MatrixDescriptor d(operand.descriptor);
  const std::uint32_t row = cuda::row_bytes(d.swizzle), across = row / 16;  // of the pattern: bytes, pieces
  const bool plain = d.swizzle == Swizzle::kNone;
  const auto place = [&](std::uint32_t offset) { return swizzled((d.start + offset) & 0x3ffff, d.swizzle); };
  if (!operand.mn_major) {
    for (std::uint32_t mn = 0; static_cast<int>(mn) < operand.extent; ++mn)
      for (std::uint32_t c = 0; c < 2; ++c)
        each(place(mn % 8 * row + mn / 8 * d.stride + c * (plain ? d.leading : 16)), static_cast<int>(mn),
             static_cast<int>(c) * operand.piece());
    return;
  }
  // Without a swizzle the two strides change places.
  const std::uint32_t right = plain ? d.stride : d.leading, down = plain ? d.leading : d.stride;
  for (std::uint32_t k = 0; static_cast<int>(k) < operand.depth(); ++k)
    for (std::uint32_t c = 0; static_cast<int>(c) * operand.piece() < operand.extent; ++c)
      each(place(c % across * 16 + c / across * right + k % 8 * row + k / 8 * down),
           static_cast<int>(c) * operand.piece(), static_cast<int>(k));
}

}  // namespace rooftile::emulated
