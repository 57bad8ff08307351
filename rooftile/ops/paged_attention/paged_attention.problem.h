#pragma once
// What passes from validation (paged_attention.cpp) to the launches (paged_attention.cpu.cpp,
// paged_attention.cu).
#include "rooftile/core/rows.h"
#include "rooftile/ops/attention/attention.problem.h"

namespace rooftile {

/// Attention's problem, but k and v are caches, whose strides are page, place in it, head and channel; and
/// each sequence has a length of its own: t is none of them.
struct PagedAttentionProblem : AttentionProblem {
  const std::int32_t *table, *lengths;
  std::int64_t table_stride[2], lengths_stride;
  std::int64_t pages, page_size, pages_each;

  /// -1: none that the table could hold.
  ROOFTILE_ATTENTION std::int64_t length(std::int64_t batch) const {
    const std::int64_t its = lengths[batch * lengths_stride];
    return its < 0 || its > pages_each * page_size ? -1 : its;
  }
  /// -1: no page of the cache. `index` is below the pages that a length reaches, so the table has it.
  ROOFTILE_ATTENTION std::int64_t page(std::int64_t batch, std::int64_t index) const {
    const std::int64_t its = table[batch * table_stride[0] + index * table_stride[1]];
    return its < 0 || its >= pages ? -1 : its;
  }
};

/// A cache that tokens are written to: its strides are page, place, head and channel; a token's head and
/// channel.
struct KvCacheSide {
  const void* from;
  void* cache;
  std::int64_t stride[4], from_stride[2], channels;
};

struct KvCacheAppendProblem {
  enum { kSlots, kK, kV };
  Rows<3> rows;  ///< a row for each token, where it begins in these
  const void* slots;
  DType slots_dtype;
  std::int64_t pages, page_size, heads;
  KvCacheSide k, v;
  int bytes;  ///< of an element

  /// -1: skipped.
  constexpr std::int64_t slot_at(std::int64_t offset) const {
    const std::int64_t slot = slots_dtype == DType::i64 ? static_cast<const std::int64_t*>(slots)[offset]
                                                        : static_cast<const std::int32_t*>(slots)[offset];
    return slot >= 0 && slot < pages * page_size ? slot : -1;
  }
  /// Which of so many workers writes a slot: each is one's own, so the order of a slot's tokens is kept.
  /// Slots of one place in their pages, which sequences of like lengths have, are spread.
  constexpr std::int64_t owner(std::int64_t slot, std::int64_t workers) const {
    const std::uint64_t mixed = static_cast<std::uint64_t>(slot) * 0x9E3779B97F4A7C15u;
    return static_cast<std::uint32_t>(mixed >> 32) % static_cast<std::uint32_t>(workers);
  }
};

}  // namespace rooftile
