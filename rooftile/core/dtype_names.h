#pragma once
#include <cstdint>
#include <cstring>

#include "rooftile/core/dtype.h"

namespace rooftile {

/// "f32, f16, bf16": those of a mask.
struct DTypeNames {
  char text[128] = "";
  explicit DTypeNames(std::uint32_t mask) {
    for (int t = 0; t < kDTypes; ++t)
      if (mask >> t & 1) {
        if (*text) std::strcat(text, ", ");
        std::strcat(text, name(static_cast<DType>(t)));
      }
  }
};

}  // namespace rooftile
