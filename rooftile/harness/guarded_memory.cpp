#include "rooftile/harness/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <map>
#include <new>
#include <vector>

namespace rooftile::harness {
namespace {

using Pages = GuardedMemory::Pages;
constexpr std::size_t kAstray = std::size_t{64} << 20;
constexpr std::size_t kMinCapacity = std::size_t{1} << 16, kMaxKept = std::size_t{1} << 22;

std::size_t in_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (std::max<std::size_t>(bytes, 1) + page - 1) / page * page;
}
/// Few sizes, which come again; of large ones, which are not kept, no more than what they take.
std::size_t capacity_of(std::size_t size) {
  return size > kMaxKept ? size : std::max(std::bit_ceil(size), kMinCapacity);
}
std::size_t mapped(const Pages& pages) { return 2 * pages.capacity + 3 * kAstray; }

Pages map_pages(std::size_t capacity) {
  Pages pages;
  pages.capacity = capacity;
  void* mapping = mmap(nullptr, mapped(pages), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  pages.mapping = static_cast<std::byte*>(mapping);
  pages.data = pages.mapping + kAstray;
  pages.before = pages.data + capacity + kAstray;
  if (mprotect(pages.before, capacity, PROT_READ | PROT_WRITE) == 0) return pages;
  munmap(mapping, mapped(pages));
  throw std::bad_alloc();
}

/// Pages that nothing uses, by capacity.
class Spare {
 public:
  ~Spare() {
    for (const auto& [capacity, all] : pages_)
      for (const Pages& pages : all) munmap(pages.mapping, mapped(pages));
  }
  Pages take(std::size_t capacity) {
    std::vector<Pages>& all = pages_[capacity];
    if (all.empty()) return map_pages(capacity);
    const Pages pages = all.back();
    all.pop_back();
    return pages;
  }
  void give_back(const Pages& pages) {
    std::vector<Pages>& all = pages_[pages.capacity];
    constexpr std::size_t kMaxOfACapacity = 32;
    if (pages.capacity > kMaxKept || all.size() == kMaxOfACapacity)
      munmap(pages.mapping, mapped(pages));
    else
      all.push_back(pages);
  }

 private:
  std::map<std::size_t, std::vector<Pages>> pages_;
};
Spare& spare() {
  thread_local Spare all;
  return all;
}

}  // namespace

GuardedMemory::GuardedMemory(std::size_t bytes)
    : size_(in_pages(bytes)), pages_(spare().take(capacity_of(size_))) {
  if (mprotect(pages_.data, size_, PROT_READ | PROT_WRITE) == 0) return;
  spare().give_back(pages_);
  throw std::bad_alloc();
}

GuardedMemory::~GuardedMemory() {
  mprotect(pages_.data, size_, PROT_NONE);
  spare().give_back(pages_);
}

}  // namespace rooftile::harness
