#pragma once
// What was done to memory: for each word of 4 bytes the last accesses that a later one may race with.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace rooftile::emulated {

/// One access: who, when, where in the source. `serial` counts the barriers of the cluster that were complete
/// by then, `time` the moments at which this thread let others know what it had done.
struct Stamp {
  std::uint32_t cluster = 0;  // a number that no other cluster has, in no launch; 0: none
  std::uint32_t serial = 0, time = 0;
  std::int32_t pc = 0;  // relative to hooks.cpp: kernels are in the same module
  std::uint16_t thread = 0;
  std::uint8_t bytes = 0;  // of the word, one bit each
  /// volatile_update: a write of a volatile word that its thread has just read, as x += y makes it.
  enum class Kind : std::uint8_t { plain, atomic, volatile_word, volatile_update } kind = Kind::plain;

  bool atomic() const { return kind != Kind::plain; }
  bool is_volatile() const { return kind >= Kind::volatile_word; }
};

/// Two writes, so that two threads may own the halves of a word; two reads, so that one is not the next
/// writer's own.
struct Cell {
  Stamp writes[2], reads[2];
};

constexpr std::size_t kShadowPage = 4096, kPageCells = kShadowPage / 4;

/// The cells of global memory, in pages that appear when they are touched.
class GlobalShadow {
 public:
  Cell* cells_of(std::uintptr_t address) {
    const std::uintptr_t page = address / kShadowPage;
    if (page == last_page_) return last_;
    auto& cells = pages_[page];
    if (!cells) cells = std::make_unique<Cell[]>(kPageCells);
    last_page_ = page;
    return last_ = cells.get();
  }
  /// 20 bytes for each byte of the kernel's: at half a gigabyte the past is forgotten, and races with it are
  /// missed.
  void limit() {
    if (pages_.size() < (std::size_t{512} << 20) / (kPageCells * sizeof(Cell))) return;
    pages_.clear();
    last_page_ = ~std::uintptr_t{0};
  }

 private:
  std::unordered_map<std::uintptr_t, std::unique_ptr<Cell[]>> pages_;
  std::uintptr_t last_page_ = ~std::uintptr_t{0};
  Cell* last_ = nullptr;
};

}  // namespace rooftile::emulated
