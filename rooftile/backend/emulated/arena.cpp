// A block's shared memory: the dynamic array at offset 0, then each static one when the first thread comes to
// its declaration. All begin at multiples of 1024 bytes, a guard of at least 1024 behind each. Where the
// hardware leaves what the last block wrote, here everything is NaN (all ones) at first, so that a result
// that depends on it shows.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "rooftile/backend/emulated/controls.h"
#include "rooftile/backend/emulated/state.h"

namespace rooftile::emulated {
namespace {
constexpr std::size_t kAlignment = 1024, kGuard = 1024, kStride = 1 << 20, kStaticLimit = 48 << 10;

/// What guards are filled with: 0xfff5, a NaN in every floating-point format.
const std::byte* guard_pattern() {
  struct Pattern {
    alignas(64) std::byte bytes[2 * kAlignment];
    Pattern() {
      for (std::size_t i = 0; i < sizeof bytes; i += 2)
        bytes[i] = std::byte{0xf5}, bytes[i + 1] = std::byte{0xff};
    }
  };
  static const Pattern pattern;
  return pattern.bytes;
}

/// The guard reaches from the array's end to the next place for an array.
std::size_t guard_bytes(std::size_t bytes) {
  return (bytes + kGuard + kAlignment - 1) / kAlignment * kAlignment - bytes;
}

void add_array(Block& block, const SharedSite* site, std::size_t bytes) {
  const SharedArray array{site, block.arena_used, bytes};
  std::memset(block.arena + array.offset, 0xff, bytes);
  std::memmove(block.arena + array.offset + bytes, guard_pattern(), guard_bytes(bytes));
  block.arena_used += bytes + guard_bytes(bytes);
  block.shared_bytes += bytes;
  block.arrays.push_back(array);
  if (observer) observer->declare_shared(block, array);
}
}  // namespace

std::size_t arena_stride() { return kStride; }
std::size_t arena_margin() { return 64 << 10; }

bool start_arena(Block& block) {
  block.arrays.clear();
  block.arena_used = block.shared_bytes = 0;
  // Its guard also catches what is written in front of the first static array.
  if (const std::size_t bytes = block.runner->launch->geometry.dynamic_shared)
    add_array(block, nullptr, bytes);
  return true;
}

const SharedArray* damaged_guard(const Block& block) {
  for (const SharedArray& a : block.arrays)
    if (std::memcmp(block.arena + a.offset + a.bytes, guard_pattern(), guard_bytes(a.bytes)) != 0) return &a;
  return nullptr;
}

namespace device {

void* shared_array(const SharedSite& site) {
  Block& block = *current->block;
  for (const SharedArray& a : block.arrays)
    if (a.site == &site) return block.arena + a.offset;
  const Launch& launch = *block.runner->launch;
  const std::size_t dynamic = launch.geometry.dynamic_shared, fixed = block.shared_bytes - dynamic;
  if (site.bytes + fixed > kStaticLimit)
    fail_plainly(
        "%zu bytes for the shared array %s (%s:%u) and %zu for those before it; static arrays have at most "
        "%zu together",
        site.bytes, site.name, site.file, site.line, fixed, kStaticLimit);
  if (site.bytes + block.shared_bytes > launch.shared_limit)
    fail_plainly(
        "%zu bytes for the shared array %s (%s:%u), %zu for those before it and %zu of dynamic shared "
        "memory; a block of "
        "sm_%d has at most %zu",
        site.bytes, site.name, site.file, site.line, fixed, dynamic, launch.options.architecture,
        launch.shared_limit);
  if (block.arena_used + site.bytes + 2 * kAlignment > kStride)
    fail_plainly("too many shared arrays: no place in the arena for %s (%s:%u)", site.name, site.file,
                 site.line);
  add_array(block, &site, site.bytes);
  return block.arena + block.arrays.back().offset;
}

std::byte* dynamic_shared() {
  const Block& block = *current->block;
  if (block.runner->launch->geometry.dynamic_shared == 0)
    fail_plainly("it uses dynamic shared memory, and its launch gives none");
  return block.arena;
}

std::uint32_t shared_offset(const void* pointer, Site where) {
  const Block& block = *current->block;
  const auto offset = static_cast<std::uintptr_t>(static_cast<const std::byte*>(pointer) - block.arena);
  if (offset >= kStride)
    fail(static_cast<int>(FindingKind::kOutOfBounds), where,
         "__cvta_generic_to_shared of %p, which is no shared memory of the block (%s:%u)", pointer,
         where.file, where.line);
  return static_cast<std::uint32_t>(offset);
}

void* map_shared_rank(const void* pointer, unsigned rank, Site where) {
  Block& block = *current->block;
  if (rank >= block.runner->blocks.size())
    fail(static_cast<int>(FindingKind::kOutOfBounds), where,
         "shared memory of block %u of a cluster of %zu (%s:%u)", rank, block.runner->blocks.size(),
         where.file, where.line);
  // A kernel may map before it arrives at the cluster's barrier, and static arrays appear in the order of
  // declarations: the other block's array may not be there yet, but will be at the same offset.
  return block.runner->blocks[rank].arena + shared_offset(pointer, where);
}

}  // namespace device
}  // namespace rooftile::emulated
