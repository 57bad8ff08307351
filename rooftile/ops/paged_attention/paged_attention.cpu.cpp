// Paged attention on a CPU: attention's tiles (rooftile/ops/attention/attention.tiles.h), so that every row
// has attention's bits. What differs is where rows come from. In the lanes are the queries of all heads that
// share a key head, position by position, so that keys are read once for all of them; a block's keys come
// through the page table. Few long sequences are shared by all threads (attention.pieces.h).
#include <cstring>
#include <limits>

#include "rooftile/ops/attention/attention.pieces.h"
#include "rooftile/ops/gemm_scaled/gemm_scaled.pack.h"
#include "rooftile/ops/paged_attention/paged_attention.problem.h"
#include "rooftile/ops/quantize/quantize.tile.h"

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
        base(task.batch * o.stride[0] + task.head * p.heads_each * o.stride[2]),
        group(p.heads_each),
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

/// Codes as floats, as load_row does elements.
__attribute__((noinline)) void load_codes(const void* data, DType dtype, std::int64_t at, std::int64_t stride,
                                          int count, float* to) {
  const auto* const from = static_cast<const std::uint8_t*>(data) + at;
  with_type<f8e4m3, f8e5m2>(dtype, [&]<class T>() {
    int c = 0;
    if (stride == 1)
      for (; c + kWidth <= count; c += kWidth) {
        Vec<std::int32_t> codes;
        widen(from + c, codes);
        store_unaligned(to + c, decoded<T>(codes));
      }
    for (; c < count; ++c) to[c] = decoded_one<T>(from[c * stride]);
    for (; c < padded(count); ++c) to[c] = 0;
  });
}

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
      if (page < 0) {
        std::fill_n(to, size, missing);
        continue;
      }
      const std::int64_t at = page * cache.stride[0] + place * cache.stride[1] + head * cache.stride[2];
      (p.codes() ? load_codes : load_row)(cache.data, p.cache_dtype, at, cache.stride[3], size, to);
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
    const std::int64_t head = task.head * p.heads_each + row % p.heads_each;
    p.lse[task.batch * p.lse_stride[0] + head * p.lse_stride[1] + row / p.heads_each * p.lse_stride[2]] =
        value;
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
  const std::int64_t d = p.d, e = padded(p.e, 4), group = p.heads_each, rows = p.s * group;
  const std::int64_t fixed = 2 * kRows * kPitch + kRows * kPanel + kLine, each = (d + e + 2) * kPanel;
  const std::int64_t panels = panels_of(launch, shares(fixed, each), p.b * p.g, rows);
  const std::int64_t tall = panels * kPanel, blocks = (rows + tall - 1) / tall, tasks = p.b * p.g * blocks;
  const Pieces pieces(launch, tasks, panels, work_of(p), fixed + panels * each, p.e);
  /// Of rows before `last`.
  const auto share_of_rows = [&](std::int64_t first, std::int64_t last, std::int64_t length) {
    return Share(static_cast<int>(last - first),
                 {p.keys(first / group, length).begin, p.keys((last - 1) / group, length).end}, kRows);
  };
  const auto share_of = [&](std::int64_t index) {
    const Task task(index, p.g, blocks);
    const std::int64_t first = task.block * tall, length = p.length(task.batch);
    return length < 0 ? Share() : share_of_rows(first, std::min(rows, first + tall), length);
  };

  pieces.run(
      tasks, work_of(p), share_of,
      [&](const ThreadScratch& mine, std::int64_t begin, std::int64_t end, std::int64_t round) {
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
          const std::int64_t number = index / pieces.count, piece = index % pieces.count;
          const Task task(number, p.g, blocks);
          const std::int64_t first = task.block * tall, last = std::min(rows, first + tall);
          const std::int64_t length = p.length(task.batch);
          const GroupRows q_rows(p, p.q, task, p.d), y_rows(p, p.y, task, p.e);
          const LseRows lse{p, task};
          const float scale = p.scale_of(task.batch, task.head),
                      value_scale = p.value_scale_of(task.batch, task.head);
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
          for (int n = 0; n < count; ++n) q_rows.load_panel(lanes_of(n), q + n * d * kPanel, row, scale);
          std::fill_n(y, panels * e * kPanel, 0.f);
          for (std::int64_t r = 0; r < panels * kPanel; ++r) {
            m[r] = sink_of(p, task.head * group + (first + r) % group);
            l[r] = begin_sum(m[r]);
          }

          const Share share = share_of_rows(first, last, length);
          const AttentionRange its_blocks = pieces.blocks(share, piece, round);
          for (std::int64_t at_block = its_blocks.begin; at_block < its_blocks.end; ++at_block) {
            const std::int64_t at = at_block * kRows;
            const Rows block{at, static_cast<int>(std::min<std::int64_t>(kRows, length - at))};
            k_rows.load_block(block, kPitch, k);
            v_rows.load_block(block, kPitch, v);
            for (int n = 0; n < count; ++n) {
              const Panel panel(lanes_of(n), keys);
              const Meeting meeting(panel, at, padded(block.count, 4));
              const Forward its{q + n * d * kPanel, y + n * e * kPanel, m + n * kPanel, l + n * kPanel};
              if (!pieces.whole()) pieces.begin(its, p.e);
              if (!meeting.empty()) step<kPitch>(p, its, meeting, k, v, kPitch, nullptr, nullptr, s);
              if (!pieces.whole()) pieces.keep(share, number, piece, at_block - its_blocks.begin, its);
            }
          }
          if (!pieces.whole()) continue;
          for (int n = 0; n < count; ++n) {
            const Rows lanes = lanes_of(n);
            for (int lane = 0; lane < lanes.count; ++lane) {
              float& sum = l[n * kPanel + lane];
              lse.put(lanes.first + lane, m[n * kPanel + lane] + log(sum));
              sum = sum == 0 ? 0 : value_scale / sum;
            }
            y_rows.store_panel(lanes, y + n * e * kPanel, l + n * kPanel, row);
          }
        }
      },
      [&](std::int64_t number, int lane) {
        const Task task(number, p.g, blocks);
        return sink_of(p, task.head * group + (task.block * tall + lane) % group);
      },
      [&](const ThreadScratch& mine, std::int64_t number, int lane, float* total) {
        const Task task(number, p.g, blocks);
        const std::int64_t row = task.block * tall + lane;
        LseRows{p, task}.put(row, total[0] + log(total[1]));
        GroupRows(p, p.y, task, p.e)
            .store_scaled(row, pieces.values(total),
                          total[1] == 0 ? 0 : p.value_scale_of(task.batch, task.head) / total[1],
                          Scratch(mine.begin).floats(kLine));
      });
}

/// A token's channels, divided by the heads' scales and rounded: to codes, or to T.
template <class T>
void put_converted(const KvCacheAppendProblem& p, const KvCacheSide& side, std::int64_t from,
                   std::int64_t slot) {
  const std::int64_t at = slot / p.page_size * side.stride[0] + slot % p.page_size * side.stride[1],
                     stride = side.from_stride[1];
  for (std::int64_t h = 0; h < p.heads; ++h) {
    const T* const its = static_cast<const T*>(side.from) + from + h * side.from_stride[0];
    const std::int64_t there = at + h * side.stride[2];
    const float each_one = 1 / side.scale[h];
    for (std::int64_t c = 0; c < side.channels; c += kLanes<float>) {
      const int live = static_cast<int>(std::min<std::int64_t>(kLanes<float>, side.channels - c));
      const Tile<float> x = load_apart<float>(its + c * stride, stride, live, 0.f, p.dtype) * each_one;
      const auto put = [&](auto* to, const auto& tile) {
        store_apart(to + there + c * side.stride[3], side.stride[3], live, tile, p.dtype);
      };
      if (p.codes())
        put(static_cast<std::uint8_t*>(side.cache), kernels::encode(x, p.format));
      else
        put(static_cast<T*>(side.cache), x);
    }
  }
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
  const std::int64_t bytes = 2 * p.rows.rows * p.heads * (p.k.channels + p.v.channels) * p.bytes();
  for_programs(launch, launch.threads, bytes,
               [&](const ThreadScratch&, std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = 0; i < p.rows.rows; ++i) {
                   const std::int64_t slot = p.slot_at(p.rows.offset(P::kSlots, i));
                   if (slot < 0) continue;
                   const std::int64_t owner = p.owner(slot, launch.threads);
                   if (owner < begin || owner >= end) continue;
                   const std::int64_t k = p.rows.offset(P::kK, i), v = p.rows.offset(P::kV, i);
                   const auto copy = [&]<class T>() {
                     put_token<T>(p, p.k, k, slot);
                     put_token<T>(p, p.v, v, slot);
                   };
                   if (p.converts())
                     with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
                       put_converted<T>(p, p.k, k, slot);
                       put_converted<T>(p, p.v, v, slot);
                     });
                   else if (p.bytes() == 4)
                     copy.template operator()<std::uint32_t>();
                   else
                     copy.template operator()<std::uint16_t>();
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
