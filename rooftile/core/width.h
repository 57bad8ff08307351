#pragma once
#include <cstdint>

namespace rooftile {

/// Calls f with the unsigned integer of an element's width, 1, 2, 4 or 8 bytes: for kernels that move
/// elements as the bits they are.
template <class F>
auto with_width(int bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f.template operator()<std::uint8_t>();
    case 2:
      return f.template operator()<std::uint16_t>();
    case 4:
      return f.template operator()<std::uint32_t>();
    default:
      return f.template operator()<std::uint64_t>();
  }
}

}  // namespace rooftile
