#include "rooftile/harness/bench/memory_block.h"

#include <sys/mman.h>

#include <cstdint>
#include <utility>

namespace rooftile::harness {

MemoryBlock::MemoryBlock(std::size_t bytes) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  if (bytes == 0) return;
  mapped_ = (bytes + 2 * kHugePage - 1) / kHugePage * kHugePage;
  void* mapping = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return;
  mapping_ = mapping;
  const auto address = reinterpret_cast<std::uintptr_t>(mapping);
  data_ = static_cast<char*>(mapping) + (kHugePage - address % kHugePage) % kHugePage;
  bytes_ = bytes;
#ifdef MADV_HUGEPAGE
  madvise(mapping, mapped_, MADV_HUGEPAGE);  // a wish; small pages only cost some speed
#endif
}

MemoryBlock::~MemoryBlock() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
}

MemoryBlock::MemoryBlock(MemoryBlock&& other) noexcept { *this = std::move(other); }

MemoryBlock& MemoryBlock::operator=(MemoryBlock&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_, other.mapped_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace rooftile::harness
