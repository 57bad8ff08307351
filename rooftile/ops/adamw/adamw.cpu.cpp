#include <algorithm>

#include "rooftile/ops/adamw/adamw.tile.h"
#include "rooftile/tile/cpu/launch.h"

namespace rooftile {
namespace {
using namespace tile;
using kernels::AdamwElement;
using kernels::AdamwStep;
using T = AdamwTensor;
using Floats = tile::Tile<float>;

/// Elements that threads share by, and that a strided tensor's are staged by: six operands in 24 KiB.
constexpr std::int64_t kShare = 1024;

/// `size` neighbours of one operand. A choice of dtype for each chunk costs no time beside the memory, and
/// one copy of the kernel serves all 54 combinations.
struct AnyRow {
  std::byte* data;
  std::int64_t size;
  DType dtype;

  template <class E>
  Row<E> of() const {
    return {reinterpret_cast<E*>(data), size};
  }
  template <class Team, class Chunk>
  ROOFTILE_TILE Floats load(const Team& team, Chunk chunk) const {
    if (dtype == DType::f32) return team.load(of<const float>(), chunk);
    if (dtype == DType::bf16) return team.load(of<const bf16>(), chunk);
    return team.load(of<const f16>(), chunk);
  }
  template <class Team, class Chunk>
  ROOFTILE_TILE void store(const Team& team, Chunk chunk, const Floats& value) const {
    if (dtype == DType::f32) return team.store(of<float>(), chunk, value);
    if (dtype == DType::bf16) return team.store(of<bf16>(), chunk, value);
    team.store(of<f16>(), chunk, value);
  }
};

/// Ahead of a chunk: what memory is asked for, since a core alone does not follow nine streams.
constexpr std::int64_t kAheadBytes = 2048;

template <Access kAccess>
void update(const AdamwStep& s, const AnyRow (&row)[T::kOperands]) {
  const CpuTeam<float, kAccess> team(nullptr);
  const bool amsgrad = row[T::kMaxV].data, has_master = row[T::kMaster].data;
  const AnyRow& p = has_master ? row[T::kMaster] : row[T::kParameter];
  team.each(row[T::kParameter].size, [&](auto chunk) ROOFTILE_INLINE {
    if constexpr (kAccess == Access::streaming)
      for (const AnyRow& r : row) {
        if (!r.data || (has_master && &r == &row[T::kParameter])) continue;
        const int bytes = bits(r.dtype) / 8;
        const std::byte* ahead = r.data + chunk.first * bytes + kAheadBytes;
        for (int b = 0; b < tile::kLanes<float> * bytes; b += 64) __builtin_prefetch(ahead + b, 0, 3);
      }
    AdamwElement<Floats> x{
        p.load(team, chunk), row[T::kM].load(team, chunk), row[T::kV].load(team, chunk), {}};
    if (amsgrad) x.max_v = row[T::kMaxV].load(team, chunk);
    x = kernels::adamw_element(s, amsgrad, x, row[T::kGradient].load(team, chunk));
    row[T::kParameter].store(team, chunk, x.p);
    row[T::kM].store(team, chunk, x.m);
    row[T::kV].store(team, chunk, x.v);
    if (amsgrad) row[T::kMaxV].store(team, chunk, x.max_v);
    if (has_master) row[T::kMaster].store(team, chunk, x.p);
  });
}

/// Elements [begin, end) in row-major order, each operand's gathered as f32 and scattered, rounded.
void update_staged(const AdamwStep& s, const AdamwTensor& t, std::int64_t begin, std::int64_t end) {
  alignas(64) float staged[T::kOperands][kShare];
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
  AnyRow rows[T::kOperands];
  for (int o = 0; o < T::kOperands; ++o) {
    rows[o] = {t.has(o) ? reinterpret_cast<std::byte*>(staged[o]) : nullptr, end - begin, DType::f32};
    if (t.has(o) && !(o == T::kParameter && t.has(T::kMaster)))
      for_each(o, [&](const std::byte* from, float& to) {
        to = static_cast<float>(load_scalar(from, t.dtype[o]));
      });
  }
  update<Access::cached>(s, rows);
  for (int o = 0; o < T::kOperands; ++o)
    if (t.has(o) && o != T::kGradient)
      for_each(o, [&](std::byte* to, float from) { store_scalar(to, t.dtype[o], double(from)); });
}

void update_part(const AdamwStep& s, const AdamwTensor& t, std::int64_t begin, std::int64_t end,
                 bool streaming) {
  if (!t.contiguous()) {
    for (; begin < end; begin += kShare) update_staged(s, t, begin, std::min(end, begin + kShare));
    return;
  }
  AnyRow rows[T::kOperands];
  for (int o = 0; o < T::kOperands; ++o)
    rows[o] = {t.has(o) ? static_cast<std::byte*>(t.data[o]) + begin * (bits(t.dtype[o]) / 8) : nullptr,
               end - begin, t.dtype[o]};
  streaming ? update<Access::streaming>(s, rows) : update<Access::cached>(s, rows);
}

void launch_tile(const CpuLaunch& launch, const AdamwProblem& p) {
  const AdamwStep step = kernels::adamw_step(p.numbers);
  if (step.skips) return;
  std::int64_t shares = 0, bytes = 0;
  const auto shares_of = [](const AdamwTensor& t) { return (t.size() + kShare - 1) / kShare; };
  for (std::int64_t i = 0; i < p.count(); ++i) {
    const AdamwTensor t = p.tensor(i);
    shares += shares_of(t);
    bytes += t.bytes();
  }
  // One region for all tensors: each thread looks for its own.
  const bool streaming = bytes > launch.streaming_bytes;
  for_programs(launch, shares, bytes, [&](const ThreadScratch&, std::int64_t begin, std::int64_t end) {
    std::int64_t first = 0;
    for (std::int64_t i = 0; i < p.count() && first < end; ++i) {
      const AdamwTensor t = p.tensor(i);
      const std::int64_t last = first + shares_of(t);
      const std::int64_t from = std::max(begin, first), to = std::min(end, last);
      if (from < to)
        update_part(step, t, (from - first) * kShare, std::min(t.size(), (to - first) * kShare), streaming);
      first = last;
    }
    if (streaming) stream_fence();
  });
}

}  // namespace

ROOFTILE_CPU_KERNELS(adamw) = {entry<launch_tile>("adamw", "tile"), {}};

}  // namespace rooftile
