#pragma once
#include <cstdint>

#include "rooftile/core/dtype.h"

namespace rooftile {

inline constexpr int kMaxRank = 8;
/// Ranks of what view() could not make a view of: a container of fewer elements (shape[1]) than its shape has
/// (shape[0]), and a list of shape[0] sizes beside one of shape[1] strides.
inline constexpr int kTooFewElements = 1 << 30, kUnlikeStrides = kTooFewElements + 1;

/// A tensor that is only read: memory of the caller's, element type, up to 8 sizes, and strides in elements
/// (0 to broadcast, negative to reverse). A default-constructed view is absent: an optional argument left
/// out. Views are passed by value, own nothing, and are checked by the function that takes them.
struct ConstView {
  const void* data = nullptr;
  DType dtype = DType::f32;
  int rank = -1;  ///< below 0: absent; above kMaxRank: no view, which the function that takes it refuses
  std::int64_t shape[kMaxRank];
  std::int64_t stride[kMaxRank];

  bool present() const { return rank >= 0; }
  std::int64_t size() const {
    std::int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= shape[d];
    return n;
  }
};

/// A tensor that is written.
struct View : ConstView {
  void* mutable_data() const { return const_cast<void*>(data); }
};

}  // namespace rooftile
