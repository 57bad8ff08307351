#pragma once
// Lists of tensors, on a CPU: threads share the elements of all tensors.
#include <algorithm>

#include "rooftile/tile/cpu/launch.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// Calls body(item, begin, end) on pieces of the items, in one region for all of them: each thread looks for
/// its own. items_of(i): how many pieces item i has. done(): at the end of a thread's.
template <class PiecesOf, class Body, class Done>
void for_pieces(const CpuLaunch& launch, std::int64_t items, std::int64_t bytes, PiecesOf pieces_of,
                Body body, Done done) {
  std::int64_t pieces = 0;
  for (std::int64_t i = 0; i < items; ++i) pieces += pieces_of(i);
  for_programs(launch, pieces, bytes, [&](const ThreadScratch&, std::int64_t begin, std::int64_t end) {
    std::int64_t first = 0;
    for (std::int64_t i = 0; i < items && first < end; ++i) {
      const std::int64_t last = first + pieces_of(i);
      const std::int64_t from = std::max(begin, first), to = std::min(end, last);
      if (from < to) body(i, from - first, to - first);
      first = last;
    }
    done();
  });
}

/// Elements that threads share by, and that a strided tensor's are staged by: six operands in 24 KiB.
inline constexpr std::int64_t kListShare = 1024;

/// `size` neighbours of one operand. A choice of dtype for each chunk costs no time beside the memory, and
/// one copy of a kernel serves all combinations.
struct AnyRow {
  std::byte* data;
  std::int64_t size;
  DType dtype;

  template <class E>
  Row<E> of() const {
    return {reinterpret_cast<E*>(data), size};
  }
  template <class Team, class Chunk>
  ROOFTILE_TILE Tile<float> load(const Team& team, Chunk chunk) const {
    if (dtype == DType::f32) return team.load(of<const float>(), chunk);
    if (dtype == DType::bf16) return team.load(of<const bf16>(), chunk);
    return team.load(of<const f16>(), chunk);
  }
  template <class Team, class Chunk>
  ROOFTILE_TILE void store(const Team& team, Chunk chunk, const Tile<float>& value) const {
    if (dtype == DType::f32) return team.store(of<float>(), chunk, value);
    if (dtype == DType::bf16) return team.store(of<bf16>(), chunk, value);
    team.store(of<f16>(), chunk, value);
  }
};

/// Ahead of a chunk: what memory is asked for, since a core alone does not follow nine streams.
inline constexpr std::int64_t kListAheadBytes = 2048;

/// Calls f(integral_constant<int, i>) for each i below n.
template <int n, class F>
ROOFTILE_TILE void for_each_value(F&& f) {
  [&]<int... i>(std::integer_sequence<int, i...>) ROOFTILE_INLINE {
    (f(std::integral_constant<int, i>()), ...);
  }
  (std::make_integer_sequence<int, n>());
}

template <class Program, Access kAccess>
void update_rows(const typename Program::Shared& shared, const AnyRow (&row)[kListsOf<Program>]) {
  constexpr int kValues = Program::kValues;
  const CpuTeam<float, kAccess> team(nullptr);
  const bool has_master = Program::kMaster && row[kListsOf<Program> - 1].data;
  unsigned has = 0;
  for (int v = 0; v < kValues; ++v) has |= row[v].data ? 1u << v : 0;
  const AnyRow& master = row[kListsOf<Program> - 1];
  const AnyRow& source = has_master ? master : row[0];
  [[maybe_unused]] Tile<float> rest{};  // 0; a NaN where a value was none or infinite
  team.each(row[0].size, [&](auto chunk) ROOFTILE_INLINE {
    if constexpr (kAccess == Access::streaming)
      for (const AnyRow& r : row) {
        if (!r.data || (has_master && &r == &row[0])) continue;
        const int bytes = bits(r.dtype) / 8;
        const std::byte* ahead = r.data + chunk.first * bytes + kListAheadBytes;
        for (int b = 0; b < kLanes<float> * bytes; b += 64) __builtin_prefetch(ahead + b, 0, 3);
      }
    Tile<float> x[kValues]{};
    for_each_value<kValues>([&](auto v) ROOFTILE_INLINE {
      if (v == 0)
        x[v] = source.load(team, chunk);
      else if (has >> v & 1)
        x[v] = row[v].load(team, chunk);
    });
    if constexpr (kFinds<Program>) rest = rest + (x[0] - x[0]);
    Program::element(shared, has, x);
    for_each_value<kValues>([&](auto v) ROOFTILE_INLINE {
      if constexpr (writes_list<Program>(v))
        if (has >> v & 1) row[v].store(team, chunk, x[v]);
    });
    if (has_master) master.store(team, chunk, x[0]);
  });
  if constexpr (kFinds<Program>)
    if (const float sum = reduce_sum(rest); sum != 0) {
      const float one = 1;
      __atomic_store(shared.found, &one, __ATOMIC_RELAXED);  // other threads may, too
    }
}

/// Elements [begin, end) in row-major order, each operand's gathered as f32 and scattered, rounded.
template <class Program>
void update_staged(const typename Program::Shared& shared, const ListItem<kListsOf<Program>>& t,
                   std::int64_t begin, std::int64_t end) {
  constexpr int kLists = kListsOf<Program>;
  alignas(64) float staged[kLists][kListShare];
  const auto for_each = [&](int o, auto f) {
    std::int64_t row = begin / t.rows.columns, column = begin % t.rows.columns;
    for (std::int64_t i = begin; i < end; ++row, column = 0) {
      const std::int64_t first = t.rows.offset(o, row);
      for (; i < end && column < t.rows.columns; ++i, ++column)
        f(static_cast<std::byte*>(t.data[o]) +
              (first + column * t.rows.column_stride[o]) * (bits(t.dtype[o]) / 8),
          staged[o][i - begin]);
    }
  };
  AnyRow rows[kLists];
  for (int o = 0; o < kLists; ++o) {
    rows[o] = {t.has(o) ? reinterpret_cast<std::byte*>(staged[o]) : nullptr, end - begin, DType::f32};
    if (t.has(o) && !(o == 0 && Program::kMaster && t.has(kLists - 1)))
      for_each(o, [&](const std::byte* from, float& to) {
        to = static_cast<float>(load_scalar(from, t.dtype[o]));
      });
  }
  update_rows<Program, Access::cached>(shared, rows);
  for (int o = 0; o < kLists; ++o)
    if (t.has(o) && writes_list<Program>(o))
      for_each(o, [&](std::byte* to, float from) { store_scalar(to, t.dtype[o], double(from)); });
}

template <class Program>
void update_part(const typename Program::Shared& shared, const ListItem<kListsOf<Program>>& t,
                 std::int64_t begin, std::int64_t end, bool streaming) {
  constexpr int kLists = kListsOf<Program>;
  if (!t.contiguous()) {
    for (; begin < end; begin += kListShare)
      update_staged<Program>(shared, t, begin, std::min(end, begin + kListShare));
    return;
  }
  AnyRow rows[kLists];
  for (int o = 0; o < kLists; ++o)
    rows[o] = {t.has(o) ? static_cast<std::byte*>(t.data[o]) + begin * (bits(t.dtype[o]) / 8) : nullptr,
               end - begin, t.dtype[o]};
  streaming ? update_rows<Program, Access::streaming>(shared, rows)
            : update_rows<Program, Access::cached>(shared, rows);
}

template <class Program>
Status begin_only(const CpuLaunch&, const char*, const typename Program::Numbers& numbers) {
  Program::begin(numbers);
  return {};
}

template <class Program>
Status for_lists(const CpuLaunch& launch, const char*, const ListsProblemOf<Program>& p) {
  const typename Program::Shared shared = Program::begin(p.numbers);
  if (shared.skips) return {};
  std::int64_t bytes = 0;
  for (std::int64_t i = 0; i < p.count(); ++i) {
    const auto t = p.item(i);
    for (int o = 0; o < kListsOf<Program>; ++o)
      if (t.has(o)) bytes += (writes_list<Program>(o) ? 2 : 1) * t.size() * (bits(t.dtype[o]) / 8);
  }
  const bool streaming = bytes > launch.streaming_bytes;
  for_pieces(
      launch, p.count(), bytes, [&](std::int64_t i) { return (p.size(i) + kListShare - 1) / kListShare; },
      [&](std::int64_t i, std::int64_t begin, std::int64_t end) {
        const auto t = p.item(i);
        update_part<Program>(shared, t, begin * kListShare, std::min(t.size(), end * kListShare), streaming);
      },
      [&] {
        if (streaming) stream_fence();
      });
  return {};
}

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
