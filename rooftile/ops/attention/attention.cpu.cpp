// Attention on a CPU, tile by tile with the softmax on the way (Dao et al., arXiv:2205.14135): a thread takes
// a few panels of queries through blocks of keys. Blocks begin at multiples of their size, each has a softmax
// of its own, and totals take them in order: a row's bits follow from its keys alone. Where threads outnumber
// tasks, several share a task's blocks (attention.pieces.h). The backward computes scores again, with queries
// in the lanes for dq and with keys in the lanes for dk and dv.
#include "rooftile/ops/attention/attention.pieces.h"
#include "rooftile/tile/philox.h"

namespace rooftile {
namespace attention {
inline namespace ROOFTILE_ISA {
namespace {

/// A head's bias as [row][lane] of a block; rows are keys, or queries (`turned`). With alibi its share, too.
/// Null: there is neither.
const float* load_bias(const AttentionProblem& p, const Task& task, Rows queries, Rows keys, bool query_lanes,
                       float* to, float* row) {
  if (!p.bias.data && !p.alibi) return nullptr;
  const std::int64_t base = task.batch * p.bias.stride[0] + task.head * p.bias.stride[1];
  const float slope = p.alibi ? p.alibi[task.head * p.alibi_stride] : 0;
  for (int i = 0; i < queries.count; ++i) {
    float* const line = query_lanes ? row : to + i * kPanel;
    if (p.bias.data)
      load_row(p.bias.data, p.bias_dtype,
               base + (queries.first + i) * p.bias.stride[2] + keys.first * p.bias.stride[3],
               p.bias.stride[3], keys.count, line);
    else
      std::fill_n(line, keys.count, 0.f);
    if (p.alibi)
      for (int j = 0; j < keys.count; ++j) line[j] -= slope * p.distance(queries.first + i, keys.first + j);
    if (query_lanes)
      for (int j = 0; j < keys.count; ++j) to[j * kPanel + i] = line[j];
  }
  return to;
}

/// Which weights of a block dropout keeps: of each row a bit for each lane. Rows and lanes are as a bias's;
/// both sides begin at a multiple of 4, and so does a counter's share of a row.
struct Kept {
  std::uint32_t rows[Block<64>::kRows + 4];

  const std::uint32_t* load(const AttentionProblem& p, const Task& task, Rows queries, Rows keys,
                            bool query_lanes) {
    if (!p.dropout) return nullptr;
    const PhiloxStream stream = p.dropout.numbers.stream();
    const PhiloxKeep keep = p.dropout.keep;
    alignas(64) std::uint32_t words[Block<64>::kRows + kWordsOfTile];
    std::fill(std::begin(rows), std::end(rows), 0u);
    for (int i = 0; i < queries.count; ++i) {
      const std::uint64_t counter = stream.offset + p.counter(task.batch, task.head, queries.first + i) +
                                    static_cast<std::uint64_t>(keys.first / 4);
      for (int at = 0; at < keys.count; at += kWordsOfTile)
        random_words_to(words + at, stream.seed, counter + static_cast<std::uint64_t>(at / 4));
      if (query_lanes) {
        for (int j = 0; j < keys.count; ++j) rows[j] |= static_cast<std::uint32_t>(keep(words[j])) << i;
      } else {
        std::uint32_t lanes = 0;
        for (int j = 0; j < keys.count; ++j) lanes |= static_cast<std::uint32_t>(keep(words[j])) << j;
        rows[i] = lanes;
      }
    }
    return rows;
  }
};

/// What threads are worth, as bytes of a memory-bound kernel: 16 multiplications take as long as a byte.
std::int64_t work_of(const AttentionProblem& p) {
  return p.b * p.h * p.s * std::max<std::int64_t>(p.t / (p.sequences + 1), 1) * (p.d + p.e) / 16;
}

template <int kSize>
void forward(const CpuLaunch& launch, const AttentionProblem& all) {
  constexpr int kRows = Block<kSize>::kRows, kPitch = Block<kSize>::kPitch;
  const std::int64_t d = all.d, e = padded(all.e, 4);
  const std::int64_t fixed = 2 * kRows * kPitch + 2 * kRows * kPanel + 2 * kLine, each = (d + e + 2) * kPanel;
  const std::int64_t panels = panels_of(launch, shares(fixed, each), all.b * all.h, all.s);
  const std::int64_t tall = panels * kPanel, blocks = all.tiles(all.s, tall), tasks = all.b * all.h * blocks;
  const Pieces pieces(launch, tasks, panels, work_of(all), fixed + panels * each, all.e);
  const auto share_of = [&](std::int64_t index) {
    std::int64_t first = Task(index, all.h, blocks).block;
    AttentionProblem p = all;
    if (!p.take_queries(first, tall)) return Share();
    const std::int64_t last = std::min(p.s, first + tall);
    return Share(static_cast<int>(last - first), p.keys_of(first, last), kRows);
  };
  /// A row's lse, and what its values are multiplied with.
  const auto finish_row = [](const AttentionProblem& p, const Task& task, std::int64_t i, float m, float l) {
    if (p.lse)
      p.lse[task.batch * p.lse_stride[0] + task.head * p.lse_stride[1] + i * p.lse_stride[2]] = m + log(l);
    return l == 0 ? 0 : p.value_scale_of(task.batch, task.head / p.group()) / l;
  };

  pieces.run(
      tasks, work_of(all), share_of,
      [&](const ThreadScratch& mine, std::int64_t begin, std::int64_t end, std::int64_t round) {
        Scratch scratch(mine.begin);
        Kept kept;
        float* const k = scratch.floats(kRows * kPitch);
        float* const v = scratch.floats(kRows * kPitch);
        float* const s = scratch.floats(kRows * kPanel);
        float* const bias = scratch.floats(kRows * kPanel);
        float* const row = scratch.floats(kLine);
        float* const q = scratch.floats(panels * d * kPanel);
        float* const y = scratch.floats(panels * e * kPanel);
        float* const m = scratch.floats(panels * kPanel);
        float* const l = scratch.floats(panels * kPanel);
        for (std::int64_t index = begin; index < end; ++index) {
          const std::int64_t number = index / pieces.count, piece = index % pieces.count;
          const Task task(number, all.h, blocks);
          AttentionProblem p = all;
          std::int64_t first = task.block;
          if (!p.take_queries(first, tall)) continue;
          const std::int64_t last = std::min(p.s, first + tall);
          const HeadRows q_rows(p.q, p.dtype, task.batch, task.head, p.d),
              k_rows(p.k, p.dtype, task.batch, task.head / p.group(), p.d),
              v_rows(p.v, p.dtype, task.batch, task.head / p.group(), p.e),
              y_rows(p.y, p.dtype, task.batch, task.head, p.e);
          const int count = static_cast<int>((last - first + kPanel - 1) / kPanel);
          const auto lanes_of = [&](int n) {
            const std::int64_t from = first + n * kPanel;
            return Rows{from, static_cast<int>(std::min<std::int64_t>(kPanel, last - from))};
          };
          const float scale = p.scale_of(task.batch, task.head / p.group());
          for (int n = 0; n < count; ++n) q_rows.load_panel(lanes_of(n), q + n * d * kPanel, row, scale);
          std::fill_n(y, count * e * kPanel, 0.f);
          const float sink = sink_of(p, task.head);
          std::fill_n(m, count * kPanel, sink);
          std::fill_n(l, count * kPanel, begin_sum(sink));

          const Share share(static_cast<int>(last - first), p.keys_of(first, last), kRows);
          const AttentionRange mine_of = pieces.blocks(share, piece, round);
          for (std::int64_t block = mine_of.begin; block < mine_of.end; ++block) {
            const std::int64_t at = block * kRows;
            const Rows keys{at, static_cast<int>(std::min<std::int64_t>(kRows, p.t - at))};
            k_rows.load_block(keys, kPitch, k);
            v_rows.load_block(keys, kPitch, v);
            for (int n = 0; n < count; ++n) {
              const Panel panel(lanes_of(n), [&](std::int64_t i) { return p.keys(i); });
              const Meeting meeting(panel, at, padded(keys.count, 4));
              const Forward its{q + n * d * kPanel, y + n * e * kPanel, m + n * kPanel, l + n * kPanel};
              if (!pieces.whole()) pieces.begin(its, p.e);
              if (!meeting.empty()) {
                const float* const its_bias = load_bias(p, task, panel.lanes, keys, true, bias, row);
                step<kPitch>(p, its, meeting, k, v, kPitch, its_bias,
                             kept.load(p, task, panel.lanes, keys, true), s);
              }
              if (!pieces.whole()) pieces.keep(share, number, piece, block - mine_of.begin, its);
            }
          }
          if (!pieces.whole()) continue;

          for (int n = 0; n < count; ++n) {
            const Rows lanes = lanes_of(n);
            for (int lane = 0; lane < lanes.count; ++lane) {
              float& sum = l[n * kPanel + lane];
              sum = finish_row(p, task, lanes.first + lane, m[n * kPanel + lane], sum);
            }
            y_rows.store_panel(lanes, y + n * e * kPanel, l + n * kPanel, row);
          }
        }
      },
      [&](std::int64_t number, int) { return sink_of(all, Task(number, all.h, blocks).head); },
      [&](const ThreadScratch& mine, std::int64_t number, int lane, float* total) {
        const Task task(number, all.h, blocks);
        AttentionProblem p = all;
        std::int64_t first = task.block;
        if (!p.take_queries(first, tall)) return;
        const float scale = finish_row(p, task, first + lane, total[0], total[1]);
        HeadRows(p.y, p.dtype, task.batch, task.head, p.e)
            .store_scaled(first + lane, pieces.values(total), scale, Scratch(mine.begin).floats(kLine));
      });
}

// ---- backward

// [backward]
/// Products and scores to p and ds of a block's rows: s becomes ds, dp becomes p, 0 where that is not kept.
/// lse and delta stand by lane or by row, as `pair(of, row)` has them.
template <class Pair>
void weights(const AttentionProblem& p, const Meeting& meeting, const float* bias, const std::uint32_t* kept,
             float* s, float* dp, const float* lse, const float* delta, Pair pair) {
  for (int row = meeting.begin; row < meeting.end; row += 2) {
    float *const at = s + row * kPanel, *const dp_at = dp + row * kPanel;
    Tile<float> slope = fill(1.f);
    const Tile<float> x =
        score_of(load_whole<float>(at), p.softcap, bias ? bias + row * kPanel : nullptr, &slope);
    const Tile<float> weight = meeting.only(row, exp(x - pair(lse, row)), 0);
    Tile<float> product = load_whole<float>(dp_at);
    if (kept) product = where_kept(kept + row, product * p.dropout.keep.scale);
    Tile<float> ds = weight * (product - pair(delta, row));
    if (p.softcap != 0) ds = ds * slope;
    store_whole(at, ds);
    store_whole(dp_at, kept ? where_kept(kept + row, weight) : weight);
  }
}
// [/backward]

/// What a row's scores are taken off, and Σ dy·y. A row without keys: +inf, so that each weight is 0.
struct RowNumbers {
  const AttentionProblem& p;
  HeadRows y, dy;
  std::int64_t lse_base;

  RowNumbers(const AttentionProblem& problem, std::int64_t batch, std::int64_t head)
      : p(problem),
        y(p.y, p.dtype, batch, head, p.e),
        dy(p.dy, p.dtype, batch, head, p.e),
        lse_base(batch * p.lse_stride[0] + head * p.lse_stride[1]) {}
  void load(std::int64_t i, float& lse, float& delta, float* row, float* other) const {
    lse = p.lse[lse_base + i * p.lse_stride[2]];
    if (lse == -kInfinity) lse = kInfinity;
    y.load(i, row);
    dy.load(i, other);
    Vec<float> sum{};
    for (int c = 0; c < y.size; c += kWidth)  // past the last are zeros
      sum = vfma(load_unaligned<Vec<float>>(row + c), load_unaligned<Vec<float>>(other + c), sum);
    delta = 0;
    for (int lane = 0; lane < kWidth; ++lane) delta += sum[lane];
  }
};

/// dq: queries in the lanes, keys row by row.
template <int kSize>
void backward_queries(const CpuLaunch& launch, const AttentionProblem& all) {
  constexpr int kRows = Block<kSize>::kRows, kPitch = Block<kSize>::kPitch;
  const std::int64_t d = padded(all.d, 4), e = all.e;
  const std::int64_t fixed = 2 * kRows * kPitch + 3 * kRows * kPanel + 2 * kLine + 64,
                     each = (2 * d + e + 2) * kPanel;
  const std::int64_t panels = panels_of(launch, shares(fixed, each), all.b * all.h, all.s);
  const std::int64_t tall = panels * kPanel, blocks = all.tiles(all.s, tall);

  for_programs(
      launch, all.b * all.h * blocks, work_of(all),
      [&](const ThreadScratch& mine, std::int64_t begin, std::int64_t end) {
        Scratch scratch(mine.begin);
        float* const k = scratch.floats(kRows * kPitch);
        float* const v = scratch.floats(kRows * kPitch);
        float* const s = scratch.floats(kRows * kPanel);
        float* const dp = scratch.floats(kRows * kPanel);
        float* const bias = scratch.floats(kRows * kPanel);
        float* const row = scratch.floats(kLine);
        float* const other = scratch.floats(kLine);
        float* const q = scratch.floats(panels * d * kPanel);
        float* const dy = scratch.floats(panels * e * kPanel);
        float* const dq = scratch.floats(panels * d * kPanel);
        float* const lse = scratch.floats(panels * kPanel);
        float* const delta = scratch.floats(panels * kPanel);
        Kept kept;
        alignas(64) float one[kPanel], scale[kPanel];
        std::fill_n(one, kPanel, 1.f);
        std::fill_n(scale, kPanel, all.scale);
        for (std::int64_t index = begin; index < end; ++index) {
          const Task task(index, all.h, blocks);
          AttentionProblem p = all;
          std::int64_t first = task.block;
          if (!p.take_queries(first, tall)) continue;
          const std::int64_t last = std::min(p.s, first + tall);
          const HeadRows q_rows(p.q, p.dtype, task.batch, task.head, p.d),
              k_rows(p.k, p.dtype, task.batch, task.head / p.group(), p.d),
              v_rows(p.v, p.dtype, task.batch, task.head / p.group(), p.e),
              dq_rows(p.dq, p.dtype, task.batch, task.head, p.d);
          const RowNumbers numbers(p, task.batch, task.head);
          const int count = static_cast<int>((last - first + kPanel - 1) / kPanel);
          const auto lanes_of = [&](int n) {
            const std::int64_t from = first + n * kPanel;
            return Rows{from, static_cast<int>(std::min<std::int64_t>(kPanel, last - from))};
          };
          std::fill_n(lse, count * kPanel, 0.f);
          std::fill_n(delta, count * kPanel, 0.f);
          for (int n = 0; n < count; ++n) {
            const Rows lanes = lanes_of(n);
            q_rows.load_panel(lanes, q + n * d * kPanel, row, p.scale);
            numbers.dy.load_panel(lanes, dy + n * e * kPanel, row);
            for (int lane = 0; lane < lanes.count; ++lane)
              numbers.load(lanes.first + lane, lse[n * kPanel + lane], delta[n * kPanel + lane], row, other);
          }
          std::fill_n(dq, count * d * kPanel, 0.f);

          const AttentionRange any = p.keys_of(first, last);
          for (std::int64_t at = any.begin / kRows * kRows; at < any.end; at += kRows) {
            const Rows keys{at, static_cast<int>(std::min<std::int64_t>(kRows, p.t - at))};
            k_rows.load_block(keys, kPitch, k);
            v_rows.load_block(keys, kPitch, v);
            for (int n = 0; n < count; ++n) {
              const Panel panel(lanes_of(n), [&](std::int64_t i) { return p.keys(i); });
              const Meeting meeting(panel, at, padded(keys.count, 4));
              if (meeting.empty()) continue;
              const float* const its_bias = load_bias(p, task, panel.lanes, keys, true, bias, row);
              const int rows = meeting.end - meeting.begin, from = meeting.begin;
              scores<kPitch>(k + from * kPitch, q + n * d * kPanel, static_cast<int>(p.d), rows,
                             s + from * kPanel);
              scores<kPitch>(v + from * kPitch, dy + n * e * kPanel, static_cast<int>(e), rows,
                             dp + from * kPanel);
              weights(p, meeting, its_bias, kept.load(p, task, panel.lanes, keys, true), s, dp,
                      lse + n * kPanel, delta + n * kPanel, [](const float* of, int) { return twice(of); });
              accumulate(k + from * kPitch, kPitch, s + from * kPanel, rows, static_cast<int>(p.d),
                         dq + n * d * kPanel, {one});
            }
          }
          for (int n = 0; n < count; ++n) dq_rows.store_panel(lanes_of(n), dq + n * d * kPanel, scale, row);
        }
      });
}

/// dk and dv: keys in the lanes, queries row by row, of one head that shares them after the other.
template <int kSize>
void backward_keys(const CpuLaunch& launch, const AttentionProblem& all) {
  constexpr int kRows = Block<kSize>::kRows, kPitch = Block<kSize>::kPitch;
  const std::int64_t d = padded(all.d, 4), e = padded(all.e, 4);
  const std::int64_t fixed = 2 * kRows * kPitch + 3 * kRows * kPanel + 2 * kLine + 2 * kRows + 64,
                     each = 2 * (d + e) * kPanel;
  const std::int64_t panels = panels_of(launch, shares(fixed, each), all.b * all.g, all.t);
  const std::int64_t tall = panels * kPanel, blocks = all.tiles(all.t, tall);

  for_programs(
      launch, all.b * all.g * blocks, work_of(all),
      [&](const ThreadScratch& mine, std::int64_t begin, std::int64_t end) {
        Scratch scratch(mine.begin);
        float* const q = scratch.floats(kRows * kPitch);
        float* const dy = scratch.floats(kRows * kPitch);
        float* const s = scratch.floats(kRows * kPanel);
        float* const dp = scratch.floats(kRows * kPanel);
        float* const bias = scratch.floats(kRows * kPanel);
        float* const row = scratch.floats(kLine);
        float* const other = scratch.floats(kLine);
        float* const lse = scratch.floats(kRows);
        float* const delta = scratch.floats(kRows);
        float* const k = scratch.floats(panels * d * kPanel);
        float* const v = scratch.floats(panels * e * kPanel);
        float* const dk = scratch.floats(panels * d * kPanel);
        float* const dv = scratch.floats(panels * e * kPanel);
        Kept kept;
        alignas(64) float one[kPanel], kept_scale[kPanel];
        std::fill_n(one, kPanel, 1.f);
        std::fill_n(kept_scale, kPanel, all.dropout.keep.scale);
        for (std::int64_t index = begin; index < end; ++index) {
          const Task task(index, all.g, blocks);
          AttentionProblem p = all;
          std::int64_t first = task.block;
          if (!p.take_keys(first, tall)) continue;
          const std::int64_t last = std::min(p.t, first + tall);
          const HeadRows k_rows(p.k, p.dtype, task.batch, task.head, p.d),
              v_rows(p.v, p.dtype, task.batch, task.head, p.e),
              dk_rows(p.dk, p.dtype, task.batch, task.head, p.d),
              dv_rows(p.dv, p.dtype, task.batch, task.head, p.e);
          const int count = static_cast<int>((last - first + kPanel - 1) / kPanel);
          const auto lanes_of = [&](int n) {
            const std::int64_t from = first + n * kPanel;
            return Rows{from, static_cast<int>(std::min<std::int64_t>(kPanel, last - from))};
          };
          for (int n = 0; n < count; ++n) {
            k_rows.load_panel(lanes_of(n), k + n * d * kPanel, row);
            v_rows.load_panel(lanes_of(n), v + n * e * kPanel, row);
          }
          std::fill_n(dk, count * d * kPanel, 0.f);
          std::fill_n(dv, count * e * kPanel, 0.f);

          const AttentionRange any = p.queries_of(first, last);
          for (std::int64_t head = task.head * p.group(); head < (task.head + 1) * p.group(); ++head) {
            const HeadRows q_rows(p.q, p.dtype, task.batch, head, p.d);
            const RowNumbers numbers(p, task.batch, head);
            Task of_head = task;
            of_head.head = head;
            for (std::int64_t at = any.begin / kRows * kRows; at < any.end; at += kRows) {
              const Rows queries{at, static_cast<int>(std::min<std::int64_t>(kRows, p.s - at))};
              q_rows.load_block(queries, kPitch, q, p.scale);
              numbers.dy.load_block(queries, kPitch, dy);
              std::fill_n(lse, kRows, 0.f);
              std::fill_n(delta, kRows, 0.f);
              for (int r = 0; r < queries.count; ++r) numbers.load(at + r, lse[r], delta[r], row, other);
              for (int n = 0; n < count; ++n) {
                const Panel panel(lanes_of(n), [&](std::int64_t j) { return p.queries(j); });
                const Meeting meeting(panel, at, padded(queries.count, 4));
                if (meeting.empty()) continue;
                const float* const its_bias = load_bias(p, of_head, queries, panel.lanes, false, bias, row);
                const int rows = meeting.end - meeting.begin, from = meeting.begin;
                scores<kPitch>(q + from * kPitch, k + n * d * kPanel, static_cast<int>(p.d), rows,
                               s + from * kPanel);
                scores<kPitch>(dy + from * kPitch, v + n * e * kPanel, static_cast<int>(p.e), rows,
                               dp + from * kPanel);
                weights(p, meeting, its_bias, kept.load(p, of_head, queries, panel.lanes, false), s, dp, lse,
                        delta, [](const float* of, int r) { return by_row(of[r], of[r + 1]); });
                accumulate(dy + from * kPitch, kPitch, dp + from * kPanel, rows, static_cast<int>(p.e),
                           dv + n * e * kPanel, {one});
                accumulate(q + from * kPitch, kPitch, s + from * kPanel, rows, static_cast<int>(p.d),
                           dk + n * d * kPanel, {one});
              }
            }
          }
          for (int n = 0; n < count; ++n) {
            dk_rows.store_panel(lanes_of(n), dk + n * d * kPanel, one, row);
            dv_rows.store_panel(lanes_of(n), dv + n * e * kPanel, kept_scale, row);
          }
        }
      });
}

/// dsink, a head to a task.
void backward_sink(const CpuLaunch& launch, const AttentionProblem& p) {
  for_programs(launch, p.h, 2 * p.b * p.s * p.h * p.e * (bits(p.dtype) / 8),
               [&](const ThreadScratch& mine, std::int64_t begin, std::int64_t end) {
                 Scratch scratch(mine.begin);
                 float* const row = scratch.floats(kLine);
                 float* const other = scratch.floats(kLine);
                 for (std::int64_t head = begin; head < end; ++head) {
                   const float sink = sink_of(p, head);
                   double sum = 0;
                   for (std::int64_t batch = 0; sink != -kInfinity && batch < p.b; ++batch) {
                     const RowNumbers numbers(p, batch, head);
                     for (std::int64_t i = 0; i < p.s; ++i) {
                       float lse = 0, delta = 0;
                       numbers.load(i, lse, delta, row, other);
                       sum -= double(exp(sink - lse)) * double(delta);
                     }
                   }
                   store_scalar(
                       static_cast<std::byte*>(p.dsink) + head * p.dsink_stride * (bits(p.sink_dtype) / 8),
                       p.sink_dtype, sum);
                 }
               });
}

}  // namespace
}  // namespace ROOFTILE_ISA
}  // namespace attention

namespace {

void launch_forward(const CpuLaunch& launch, const AttentionProblem& p) {
  attention::with_size(std::max(p.d, p.e), [&]<int kSize>() { attention::forward<kSize>(launch, p); });
}
void launch_backward(const CpuLaunch& launch, const AttentionProblem& p) {
  attention::with_size(std::max(p.d, p.e), [&]<int kSize>() {
    attention::backward_queries<kSize>(launch, p);
    attention::backward_keys<kSize>(launch, p);
  });
  if (p.dsink) attention::backward_sink(launch, p);
}

}  // namespace

ROOFTILE_CPU_KERNELS(attention) = {
    entry<launch_forward>("attention", "tile"),
    entry<launch_backward>("attention_backward", "tile"),
    {},
};

}  // namespace rooftile
