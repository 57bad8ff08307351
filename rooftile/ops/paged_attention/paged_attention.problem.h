#pragma once
// What passes from validation (paged_attention.cpp) to the launches (paged_attention.cpu.cpp,
// paged_attention.cu).
#include "rooftile/core/rows.h"
#include "rooftile/ops/attention/attention.problem.h"
#include "rooftile/ops/quantize/quantize.problem.h"

namespace rooftile {

/// One number for each key head.
struct HeadScales {
  const float* data;  ///< null: 1 for each
  std::int64_t stride;

  ROOFTILE_ATTENTION float operator[](std::int64_t head) const { return data ? data[head * stride] : 1; }
};

/// Attention's problem, but k and v are caches, whose strides are page, place in it, head and channel; and
/// each sequence has a length of its own: t is none of them.
struct PagedAttentionProblem : AttentionProblem {
  const std::int32_t *table, *lengths;
  std::int64_t table_stride[2], lengths_stride;
  std::int64_t pages, page_size, pages_each;
  std::int64_t heads_each;  ///< query heads of a key head
  DType cache_dtype;        ///< f8e4m3 or f8e5m2: codes; else dtype
  /// On a GPU, where each chunk of a sequence's keys is a block's own: of each row and chunk the sums, in the
  /// workspace. Null: a block passes through all of its rows' chunks. Bits are the same.
  float* parts;

  bool codes() const { return cache_dtype != dtype; }
  /// -1: none that the table could hold.
  ROOFTILE_ATTENTION std::int64_t length(std::int64_t batch) const {
    const std::int64_t its = lengths[batch * lengths_stride];
    return its < 0 || its > pages_each * page_size ? -1 : its;
  }
  /// What the table says, which may be no page of the cache.
  ROOFTILE_ATTENTION std::int32_t table_at(std::int64_t batch, std::int64_t index) const {
    return table[batch * table_stride[0] + index * table_stride[1]];
  }
  /// -1: no page of the cache. `index` is below the pages that a length reaches, so the table has it.
  ROOFTILE_ATTENTION std::int64_t page(std::int64_t batch, std::int64_t index) const {
    const std::int64_t its = table_at(batch, index);
    return its < 0 || its >= pages ? -1 : its;
  }

  static constexpr int kTall = 16;  ///< rows of a GPU's block
  /// Rows of a key head: its group's queries.
  ROOFTILE_ATTENTION std::int64_t rows() const { return s * heads_each; }
  /// Chunks of keys that a table has room for.
  ROOFTILE_ATTENTION std::int64_t chunks() const {
    const std::int64_t most = 0x7fffffff, room = pages_each * page_size;
    return ((room < most ? room : most) + kAttentionChunk - 1) / kAttentionChunk;
  }
  /// A part: y's sums, to whole 16-byte words, then the weights' maximum and sum.
  ROOFTILE_ATTENTION std::int64_t part_channels() const { return (e + 3) / 4 * 4; }
  ROOFTILE_ATTENTION std::int64_t part_floats() const { return part_channels() + 4; }
  ROOFTILE_ATTENTION float* part(std::int64_t batch, std::int64_t key_head, std::int64_t row,
                                 std::int64_t chunk) const {
    return parts + (((batch * g + key_head) * rows() + row) * chunks() + chunk) * part_floats();
  }
  /// The floats that `parts` needs: 0 where blocks of all chunks are enough to keep a GPU busy. Shapes alone
  /// decide, since lengths are the device's.
  std::int64_t parts_floats() const {
    constexpr std::int64_t kEnough = 264;  // two blocks for each of 132 SMs
    const std::int64_t blocks = g == 0 ? 0 : b * g * ((rows() + kTall - 1) / kTall);
    return blocks >= kEnough || chunks() < 2 ? 0 : b * g * rows() * chunks() * part_floats();
  }
};

/// A cache that tokens are written to: its strides are page, place, head and channel; a token's head and
/// channel.
struct KvCacheSide {
  const void* from;
  void* cache;
  std::int64_t stride[4], from_stride[2], channels;
  HeadScales scale;
};

struct KvCacheAppendProblem {
  enum { kSlots, kK, kV };
  Rows<3> rows;  ///< a row for each token, where it begins in these
  const void* slots;
  DType slots_dtype;
  std::int64_t pages, page_size, heads;
  KvCacheSide k, v;
  DType dtype, cache_dtype;  ///< of k and v, of the caches
  CodeFormat format;         ///< of these, where they hold codes

  /// Of an element that is copied.
  int bytes() const { return bits(dtype) / 8; }
  ROOFTILE_ATTENTION bool codes() const { return cache_dtype != dtype; }
  /// Elements are divided by scales and rounded; else copied.
  bool converts() const { return codes() || k.scale.data || v.scale.data; }

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
