#pragma once
#include <cstddef>
#include <cstdint>

namespace rooftile {

/// Parts of a workspace, one after another; of none at all their bytes alone.
class WorkspaceParts {
 public:
  explicit WorkspaceParts(void* memory) : memory_(static_cast<std::byte*>(memory)) {}
  void* take(std::int64_t rows, std::int64_t columns, std::size_t width) {
    std::size_t size = 0, whole = 0;
    if (__builtin_mul_overflow(rows, columns, &size) || __builtin_mul_overflow(size, width, &size) ||
        __builtin_add_overflow(size, std::size_t{63}, &size) ||
        __builtin_add_overflow(bytes_, size / 64 * 64, &whole)) {
      bytes_ = SIZE_MAX;  // which no caller has
      return nullptr;
    }
    void* part = memory_ ? memory_ + bytes_ : nullptr;
    bytes_ = whole;
    return part;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* memory_;
  std::size_t bytes_ = 0;
};

}  // namespace rooftile
