#pragma once
#include <cstddef>

namespace rooftile::harness {

/// Memory from the system, on 2 MiB pages where it grants them, aligned to 2 MiB. Not touched yet: whoever
/// measures touches it first, with as many threads as shall use it.
class MemoryBlock {
 public:
  MemoryBlock() = default;
  explicit MemoryBlock(std::size_t bytes);  ///< data() is null if the system refuses
  ~MemoryBlock();
  MemoryBlock(MemoryBlock&& other) noexcept;
  MemoryBlock& operator=(MemoryBlock&& other) noexcept;

  char* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  char* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace rooftile::harness
