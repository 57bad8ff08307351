#pragma once
// Memory between pages that may not be accessed.
#include <cstddef>

namespace rooftile::harness {

/// `bytes` bytes in whole pages, with what earlier ones left, and as many again for what they hold before a
/// call. 64 MiB before and behind each may not be accessed: what goes astray further than a tensor's guards
/// ends there, and not in the harness's heap; nor may the first, once this is destroyed. Their pages are kept
/// for the next ones: mapping and clearing them takes longer than a small case takes to check.
class GuardedMemory {
 public:
  explicit GuardedMemory(std::size_t bytes);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* data() const { return pages_.data; }
  std::byte* before() const { return pages_.before; }
  /// Whole pages, so that none of what may be accessed lies outside.
  std::size_t size() const { return size_; }

  struct Pages {
    std::byte *mapping = nullptr, *data = nullptr, *before = nullptr;
    std::size_t capacity = 0;
  };

 private:
  std::size_t size_;
  Pages pages_;
};

}  // namespace rooftile::harness
