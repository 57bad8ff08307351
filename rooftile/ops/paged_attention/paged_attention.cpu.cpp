// Paged attention on a CPU: attention's tiles (rooftile/ops/attention/attention.tiles.h), so that every row
// has attention's bits. What differs is where rows come from. In the lanes are the queries of all heads that
// share a key head, position by position, so that keys are read once for all of them; a block's keys come
// through the page table.
#include <cstring>
#include <limits>

#include "rooftile/ops/attention/attention.tiles.h"
#include "rooftile/ops/paged_attention/paged_attention.problem.h"

namespace rooftile {
namespace attention {
inline namespace ROOFTILE_ISA {
namespace {

/// The queries of a key head's group, or their y: row r is query r / group of its r % group-th head.
struct GroupRows : BlocksOf<GroupRows> {
  const AttentionOperand& operand;
  DType dtype;
  std::int64_t base, group;
  int size;

  GroupRows(const PagedAttentionProblem& p, const AttentionOperand& o, const Task& task, std::int64_t length)
      : operand(o),
        dtype(p.dtype),
        base(task.batch * o.stride[0] + task.head * p.group() * o.stride[2]),
        group(p.group()),
        size(static_cast<int>(length)) {}
  std::int64_t at(std::int64_t row) const {
    return base + row / group * operand.stride[1] + row % group * operand.stride[2];
  }
  void load(std::int64_t row, float* to) const {
    load_row(operand.data, dtype, at(row), operand.stride[3], size, to);
  }
  void store(std::int64_t row, const float* from) const {
    store_row(operand.data, dtype, at(row), operand.stride[3], size, from);
  }
};

// [pages]
/// A sequence's keys or values, of one head. Rows of a page that the cache lacks hold `missing`.
struct CacheRows {
  const PagedAttentionProblem& p;
  const AttentionOperand& cache;
  std::int64_t batch, head;
  int size;
  float missing;

  void load_block(Rows rows, int pitch, float* to) const {
    std::int64_t index = rows.first / p.page_size, place = rows.first % p.page_size,
                 page = p.page(batch, index);
    for (int r = 0; r < rows.count; ++r, to += pitch, ++place) {
      if (place == p.page_size) page = p.page(batch, ++index), place = 0;
      if (page < 0)
        std::fill_n(to, size, missing);
      else
        load_row(cache.data, p.dtype,
                 page * cache.stride[0] + place * cache.stride[1] + head * cache.stride[2], cache.stride[3],
                 size, to);
    }
    for (int r = rows.count; r < padded(rows.count, 4); ++r, to += pitch) std::fill_n(to, size, 0.f);
  }
};
// [/pages]

/// A group's rows, an element of a head's lse each.
struct LseRows {
  const PagedAttentionProblem& p;
  const Task& task;
  void put(std::int64_t row, float value) const {
    if (!p.lse) return;
    const std::int64_t head = task.head * p.group() + row % p.group();
    p.lse[task.batch * p.lse_stride[0] + head * p.lse_stride[1] + row / p.group() * p.lse_stride[2]] = value;
  }
};

/// As attention's: what threads are worth, as bytes of a memory-bound kernel.
std::int64_t work_of(const PagedAttentionProblem& p) {
  std::int64_t tokens = 0;
  for (std::int64_t n = 0; n < p.b; ++n) tokens += std::max<std::int64_t>(p.length(n), 1);
  return tokens * p.s * p.h * (p.d + p.e) / 16;
}

template <int kSize>
void paged_forward(const CpuLaunch& launch, const PagedAttentionProblem& p) {
  constexpr int kRows = Block<kSize>::kRows, kPitch = Block<kSize>::kPitch;
  const std::int64_t d = p.d, e = padded(p.e, 4), group = p.group(), rows = p.s * group;
  const std::int64_t fixed = 2 * kRows * kPitch + kRows * kPanel + kLine, each = (d + e + 2) * kPanel;
  const std::int64_t panels = panels_of(launch, shares(fixed, each), p.b * p.g, rows);
  const std::int64_t tall = panels * kPanel, blocks = (rows + tall - 1) / tall;

  for_programs(launch, p.b * p.g * blocks, work_of(p),
               [&](const ThreadScratch& mine, std::int64_t begin, std::int64_t end) {
                 Scratch scratch(mine.begin);
                 float* const k = scratch.floats(kRows * kPitch);
                 float* const v = scratch.floats(kRows * kPitch);
                 float* const s = scratch.floats(kRows * kPanel);
                 float* const row = scratch.floats(kLine);
                 float* const q = scratch.floats(panels * d * kPanel);
                 float* const y = scratch.floats(panels * e * kPanel);
                 float* const m = scratch.floats(panels * kPanel);
                 float* const l = scratch.floats(panels * kPanel);
                 for (std::int64_t index = begin; index < end; ++index) {
                   const Task task(index, p.g, blocks);
                   const std::int64_t first = task.block * tall, last = std::min(rows, first + tall);
                   const std::int64_t length = p.length(task.batch);
                   const GroupRows q_rows(p, p.q, task, p.d), y_rows(p, p.y, task, p.e);
                   const LseRows lse{p, task};
                   if (length < 0) {
                     std::fill_n(row, p.e, std::numeric_limits<float>::quiet_NaN());
                     for (std::int64_t r = first; r < last; ++r) {
                       y_rows.store(r, row);
                       lse.put(r, row[0]);
                     }
                     continue;
                   }
                   const CacheRows k_rows{p,         p.k,      task.batch,
                                          task.head, int(p.d), std::numeric_limits<float>::quiet_NaN()},
                       v_rows{p, p.v, task.batch, task.head, int(p.e), 0};
                   const int count = static_cast<int>((last - first + kPanel - 1) / kPanel);
                   const auto lanes_of = [&](int n) {
                     const std::int64_t from = first + n * kPanel;
                     return Rows{from, static_cast<int>(std::min<std::int64_t>(kPanel, last - from))};
                   };
                   const auto keys = [&](std::int64_t r) { return p.keys(r / group, length); };
                   for (int n = 0; n < count; ++n)
                     q_rows.load_panel(lanes_of(n), q + n * d * kPanel, row, p.scale);
                   std::fill_n(y, panels * e * kPanel, 0.f);
                   for (std::int64_t r = 0; r < panels * kPanel; ++r) {
                     m[r] = sink_of(p, task.head * group + (first + r) % group);
                     l[r] = begin_sum(m[r]);
                   }

                   const std::int64_t end_of_keys = keys(last - 1).end;
                   for (std::int64_t at = keys(first).begin / kRows * kRows; at < end_of_keys; at += kRows) {
                     const Rows block{at, static_cast<int>(std::min<std::int64_t>(kRows, length - at))};
                     k_rows.load_block(block, kPitch, k);
                     v_rows.load_block(block, kPitch, v);
                     for (int n = 0; n < count; ++n) {
                       const Panel panel(lanes_of(n), keys);
                       const Meeting meeting(panel, at, padded(block.count, 4));
                       if (meeting.empty()) continue;
                       step<kPitch>(p,
                                    {q + n * d * kPanel, y + n * e * kPanel, m + n * kPanel, l + n * kPanel},
                                    meeting, k, v, kPitch, nullptr, s);
                     }
                   }
                   for (int n = 0; n < count; ++n) {
                     const Rows lanes = lanes_of(n);
                     for (int lane = 0; lane < lanes.count; ++lane) {
                       float& sum = l[n * kPanel + lane];
                       lse.put(lanes.first + lane, m[n * kPanel + lane] + log(sum));
                       sum = sum == 0 ? 0 : 1 / sum;
                     }
                     y_rows.store_panel(lanes, y + n * e * kPanel, l + n * kPanel, row);
                   }
                 }
               });
}

// [append]
/// A token's channels to its slot.
template <class T>
void put_token(const KvCacheAppendProblem& p, const KvCacheSide& side, std::int64_t from, std::int64_t slot) {
  const T* const token = static_cast<const T*>(side.from) + from;
  T* const to =
      static_cast<T*>(side.cache) + slot / p.page_size * side.stride[0] + slot % p.page_size * side.stride[1];
  for (std::int64_t h = 0; h < p.heads; ++h) {
    const T* const its = token + h * side.from_stride[0];
    T* const there = to + h * side.stride[2];
    if (side.from_stride[1] == 1 && side.stride[3] == 1 && side.channels > 0)
      std::memcpy(there, its, static_cast<std::size_t>(side.channels) * sizeof(T));
    else
      for (std::int64_t c = 0; c < side.channels; ++c)
        there[c * side.stride[3]] = its[c * side.from_stride[1]];
  }
}
/// Each thread goes through all tokens, and writes those whose slots are its own.
void append(const CpuLaunch& launch, const KvCacheAppendProblem& p) {
  using P = KvCacheAppendProblem;
  const std::int64_t bytes = 2 * p.rows.rows * p.heads * (p.k.channels + p.v.channels) * p.bytes;
  for_programs(launch, launch.threads, bytes,
               [&](const ThreadScratch&, std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = 0; i < p.rows.rows; ++i) {
                   const std::int64_t slot = p.slot_at(p.rows.offset(P::kSlots, i));
                   if (slot < 0) continue;
                   const std::int64_t owner = p.owner(slot, launch.threads);
                   if (owner < begin || owner >= end) continue;
                   const auto put = [&]<class T>() {
                     put_token<T>(p, p.k, p.rows.offset(P::kK, i), slot);
                     put_token<T>(p, p.v, p.rows.offset(P::kV, i), slot);
                   };
                   if (p.bytes == 4)
                     put.template operator()<std::uint32_t>();
                   else
                     put.template operator()<std::uint16_t>();
                 }
               });
}
// [/append]

}  // namespace
}  // namespace ROOFTILE_ISA
}  // namespace attention

namespace {

void launch_append(const CpuLaunch& launch, const KvCacheAppendProblem& p) { attention::append(launch, p); }
void launch_attention(const CpuLaunch& launch, const PagedAttentionProblem& p) {
  if (p.b * p.s * p.h == 0) return;
  attention::with_size(std::max(p.d, p.e), [&]<int kSize>() { attention::paged_forward<kSize>(launch, p); });
}

}  // namespace

ROOFTILE_CPU_KERNELS(paged_attention) = {
    entry<launch_append>("kv_cache_append", "tile"),
    entry<launch_attention>("paged_attention", "tile"),
    {},
};

}  // namespace rooftile
