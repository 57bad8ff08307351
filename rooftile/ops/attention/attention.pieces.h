#pragma once
// Few rows and many keys on many threads, as in decoding: a task's blocks of keys are cut into pieces, a
// thread each. A thread keeps its blocks' sums in its scratch; then the task's rows, a thread each, take all
// blocks' sums in ascending order, as one thread would have (Dao et al., "Flash-Decoding", 2023). Sequences
// that are longer than scratch go on in rounds.
#include "rooftile/ops/attention/attention.tiles.h"

namespace rooftile::attention {
inline namespace ROOFTILE_ISA {

/// A task of one panel: its rows, and the blocks that hold their keys. No rows: nothing is to be done.
struct Share {
  int rows = 0;
  AttentionRange blocks{0, 0};

  Share() = default;
  Share(int count, AttentionRange keys, std::int64_t block_rows)
      : rows(count),
        blocks{keys.begin / block_rows,
               keys.size() > 0 ? (keys.end + block_rows - 1) / block_rows : keys.begin / block_rows} {}
};

class Pieces {
 public:
  std::int64_t count = 1;  ///< of a task; 1: its thread passes through all blocks

  /// `used`: floats of scratch that a task needs besides; `work`: as for_programs takes it.
  Pieces(const CpuLaunch& launch, std::int64_t tasks, std::int64_t panels, std::int64_t work,
         std::int64_t used, std::int64_t channels)
      : launch_(launch),
        channels_(channels),
        room_((std::int64_t{kScratchBytes} / 4 - used - kSlack) / 16 * 16) {
    const std::int64_t threads = std::min<std::int64_t>(launch.threads, work / kBytesPerThread);
    if (panels == 1 && tasks > 0 && room_ >= 2 * kPanel * line())
      count = std::max<std::int64_t>(threads / tasks, 1);
  }
  bool whole() const { return count == 1; }

  /// sums(scratch, begin, end, round) has a run of tasks, or of pieces: `count` to a task. Of tasks in pieces
  /// finish(scratch, task, row, its total) follows, sink(task, row) being what a total begins with.
  template <class ShareOf, class Sums, class SinkOf, class Finish>
  void run(std::int64_t tasks, std::int64_t work, ShareOf share_of, Sums sums, SinkOf sink,
           Finish finish) const {
    std::int64_t all_rounds = 1;
    int rows = 0;
    for (std::int64_t task = 0; !whole() && task < tasks; ++task) {
      const Share share = share_of(task);
      all_rounds = std::max(all_rounds, rounds(share));
      rows = std::max(rows, share.rows);
    }
    for (std::int64_t round = 0; round < all_rounds; ++round) {
      for_programs(launch_, tasks * count, work,
                   [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                     sums(scratch, begin, end, round);
                   });
      if (whole()) return;
      for_programs(launch_, tasks * rows, work,
                   [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                     for (std::int64_t index = begin; index < end; ++index) {
                       const std::int64_t task = index / rows;
                       const int row = static_cast<int>(index % rows);
                       const Share share = share_of(task);
                       if (row >= share.rows || round >= rounds(share)) continue;
                       float* const total = merge(task, share, row, round, sink(task, row));
                       if (round + 1 == rounds(share)) finish(scratch, task, row, total);
                     }
                   });
    }
  }

  /// Of a task's blocks those that a piece has in a round.
  AttentionRange blocks(const Share& share, std::int64_t piece, std::int64_t round) const {
    const AttentionRange all = share.blocks;
    if (whole()) return all;
    const std::int64_t each = std::min(ceiling(all.size(), count), most(share)),
                       first = std::min(all.begin + (round * count + piece) * each, all.end);
    return {first, std::min(first + each, all.end)};
  }
  /// A panel that has seen nothing.
  static void begin(const Forward& f, std::int64_t channels) {
    std::fill_n(f.m, kPanel, -kInfinity);
    std::fill_n(f.l, kPanel, 0.f);
    std::fill_n(f.y, padded(channels, 4) * kPanel, 0.f);
  }
  /// A block's sums, of a panel that began so. `block` counts from the piece's first of this round.
  void keep(const Share& share, std::int64_t task, std::int64_t piece, std::int64_t block,
            const Forward& f) const {
    for (int row = 0; row < share.rows; ++row) {
      float* const to = part(share, task, piece, block, row);
      to[0] = f.m[row], to[1] = f.l[row];
      std::fill_n(values(to), padded(channels_), 0.f);
      for (std::int64_t c = 0; c < channels_; ++c) values(to)[c] = f.y[c * kPanel + row];
    }
  }
  /// Of a row's total.
  static float* values(float* sums) { return sums + kWidth; }

 private:
  static constexpr std::int64_t kSlack = 16 * 16;  ///< lines that arrays before begin at
  static std::int64_t ceiling(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
  std::int64_t line() const { return padded(channels_) + kWidth; }
  /// Blocks that scratch has room for, beside the totals.
  std::int64_t most(const Share& share) const { return room_ / (std::max(share.rows, 1) * line()) - 1; }
  /// One at least, which finishes what nothing is added to.
  std::int64_t rounds(const Share& share) const {
    return std::max<std::int64_t>(ceiling(share.blocks.size(), count * most(share)), 1);
  }
  /// A row's sums of one block: the largest score, Σ e^(s - m), and from a vector on Σ e^(s - m)·v.
  float* part(const Share& share, std::int64_t task, std::int64_t piece, std::int64_t block, int row) const {
    return area(task, piece) + (block * share.rows + row) * line();
  }
  /// Adds a round's blocks to a row's total, which stands behind the first piece's.
  float* merge(std::int64_t task, const Share& share, int row, std::int64_t round, float sink) const {
    float* const sums = area(task, 0) + room_ - (row + 1) * line();
    if (round == 0) {
      std::fill_n(sums, line(), 0.f);
      sums[0] = sink, sums[1] = begin_sum(sink);
    }
    for (std::int64_t piece = 0; piece < count; ++piece)
      for (std::int64_t block = 0; block < blocks(share, piece, round).size(); ++block) {
        float* const its = part(share, task, piece, block, row);
        const Vec<float> total_m[] = {splat(sums[0]), splat(sums[0])},
                         block_m[] = {splat(its[0]), splat(its[0])};
        const Merge merge(total_m, block_m);
        sums[0] = merge.most[0][0];
        sums[1] = merge(0, splat(sums[1]), splat(its[1]))[0];
        for (std::int64_t c = 0; c < channels_; c += kWidth)
          store_unaligned(values(sums) + c, merge(0, load_unaligned<Vec<float>>(values(sums) + c),
                                                  load_unaligned<Vec<float>>(values(its) + c)));
      }
    return sums;
  }
  float* area(std::int64_t task, std::int64_t piece) const {
    const ThreadScratch its = scratch_of(launch_, static_cast<int>(task * count + piece));
    return reinterpret_cast<float*>(its.begin + kScratchBytes) - room_;
  }

  const CpuLaunch& launch_;
  std::int64_t channels_, room_;
};

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::attention
