#pragma once
// Long rows of a CPU, several at a time.
#include "rooftile/ops/layer_norm/layer_norm.tile.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

/// Some of a row's columns.
template <class T, RowCounts n>
ROOFTILE_TILE RowOperands<T, n> part_of(RowOperands<T, n> row, std::int64_t begin, std::int64_t count) {
  for (auto& in : row.in)
    if (in.data) in = in.part(begin, count);
  for (auto& out : row.out)
    if (out.data) out = out.part(begin, count);
  return row;
}

/// Groups of rows, cut into blocks: reading goes row by row, writing block by block through the group's rows.
template <class T>
struct LayerNormGroups {
  static constexpr int kRows = 4;
  static constexpr std::int64_t kBlock = 2048 / std::int64_t(sizeof(T)), kAhead = 8;
  std::int64_t size;
  std::int64_t blocks = size > kBlock ? (size + kBlock - 1) / kBlock : 1;
  int rows = size * std::int64_t(sizeof(T)) <= 64 * 1024 ? kRows : 1;  // a group stays in the second cache

  struct Step {
    bool reading, writing;
    int read_row, write_row;
    std::int64_t read_block, write_block;
  };
  /// Calls visit(step) until `to_read` rows are read and `to_write` written.
  template <class Visit>
  ROOFTILE_TILE void each(int to_read, int to_write, Visit visit) const {
    Step s{to_read > 0, to_write > 0, 0, 0, 0, 0};
    while (s.reading || s.writing) {
      visit(s);
      if (s.reading && ++s.read_block == blocks) {
        s.read_block = 0;
        s.reading = ++s.read_row < to_read;
      }
      if (s.writing && ++s.write_row == to_write) {
        s.write_row = 0;
        s.writing = ++s.write_block < blocks;
      }
    }
  }
  /// The elements from a step's reading to what it should prefetch, kAhead blocks later; 0: there is none.
  /// `data_at(i)` is where row i begins, the step's row `row`.
  template <class DataAt>
  ROOFTILE_TILE std::int64_t ahead(const Step& s, std::int64_t row, std::int64_t end, DataAt data_at) const {
    const std::int64_t later = row + (s.read_block + kAhead) / blocks;
    if (later >= end) return 0;
    return data_at(later) - data_at(row) + ((s.read_block + kAhead) % blocks - s.read_block) * kBlock;
  }
};

/// Calls body(chunk, reads, writes): both at once where the parts are of one length, else one by one.
template <class Team, class Body>
ROOFTILE_TILE void layer_norm_step(const Team& team, std::int64_t read_size, std::int64_t write_size,
                                   Body body) {
  const bool together = read_size == write_size;
  for (int pass = 0; pass < (together ? 1 : 2); ++pass) {
    const bool reads = pass == 0, writes = together || pass == 1;
    team.each(reads ? read_size : write_size,
              [&](auto chunk) ROOFTILE_INLINE { body(chunk, reads, writes); });
  }
}

/// The same arithmetic for long rows that come from memory. They push the weights out of the first cache, and
/// fetching them again for each row holds up what is on its way from memory: 0.62 of a copy at 4096 columns
/// of f32 (Zen 4). So four rows are read, then written below each other in blocks of 2 KiB: 0.70. Rows up to
/// kLongRowBytes are better off without (2048 columns: 0.85, by blocks 0.73). What comes 16 KiB later is
/// asked for; with 8 KiB it is the same, with 4 a fifth of the speed is lost.
template <class T, bool kAdds, class Team, class RowAt, class Vectors>
ROOFTILE_TILE void layer_norm_by_blocks(const LayerNorm<float>& p, Team team, std::int64_t begin,
                                        std::int64_t end, RowAt row_at, const Vectors& vectors,
                                        float each_one) {
  using Groups = LayerNormGroups<T>;
  constexpr RowCounts n = LayerNormProblem::kCounts;
  constexpr int kResidual = n.inputs - 1, kSum = n.outputs - 1;
  const Groups groups{row_at(begin).in[0].size};
  RowOperands<T, n> coming[Groups::kRows], rows[Groups::kRows];
  LayerNorm<float>::Found found[Groups::kRows], written[Groups::kRows];
  LayerNormSums<Team, T> sums;

  int to_write = 0;
  for (std::int64_t first = begin; first < end || to_write > 0; first += groups.rows) {
    const int to_read = first + groups.rows <= end ? groups.rows
                        : first < end              ? static_cast<int>(end - first)
                                                   : 0;
    for (int r = 0; r < to_read; ++r) coming[r] = row_at(first + r);
    groups.each(to_read, to_write, [&](const typename Groups::Step& s) ROOFTILE_INLINE {
      const RowOperands<T, n>& whole = coming[s.reading ? s.read_row : 0];
      RowOperands<T, n> in = part_of(whole, s.read_block * Groups::kBlock, Groups::kBlock);
      const std::int64_t at = s.write_block * Groups::kBlock;
      const RowOperands<T, n> out = part_of(rows[s.write_row], at, Groups::kBlock);
      const LayerNorm<float>::Found its = written[s.write_row];
      Vectors part = vectors;
      for (auto& v : part.v) v = v.part(at, Groups::kBlock);
      Team reader = team;
      if (s.reading) {
        if (s.read_block == 0)
          sums = p.begin(team, whole, each_one, [&](auto chunk) ROOFTILE_INLINE {
            return row_input<LayerNorm<float>, kAdds>(team, whole, chunk);
          });
        const std::int64_t row = first + s.read_row;
        for (int k = 0; k < (kAdds ? n.inputs : kResidual); ++k) {
          in.in[k].ahead =
              groups.ahead(s, row, end, [&](std::int64_t i) ROOFTILE_INLINE { return row_at(i).in[k].data; });
          reader.hold(in.in[k], 0);
        }
        reader.one_pass();
      }
      layer_norm_step(reader, s.reading ? in.in[0].size : 0, s.writing ? out.in[0].size : 0,
                      [&](auto chunk, bool reads, bool writes) ROOFTILE_INLINE {
                        const VectorTiles<Vectors, Team, decltype(chunk)> w{part, team, chunk};
                        if (writes) {
                          const auto h = row_input<LayerNorm<float>, kAdds>(team, out, chunk);
                          if (out.out[kSum].data) team.store(out.out[kSum], chunk, h[0]);
                          team.store(out.out[0], chunk, p.write(its, At{team, chunk, h, w, out}, Nothing{}));
                        }
                        if (reads) {
                          const auto h = row_input<LayerNorm<float>, kAdds>(team, in, chunk);
                          p.read(sums, At{reader, chunk, h, w, in});
                        }
                      });
      if (s.reading && s.read_block + 1 == groups.blocks) {
        auto measured = p.measure(team, sums, whole, each_one);
        if (p.second_look(measured) != 1) [[unlikely]]
          measured = found_again(
              p,
              [&](const auto& terms) {
                return sums_again(team, whole.in[0], kAdds ? whole.in[kResidual] : Row<const T>{}, terms);
              },
              groups.size, each_one, p.second_look(measured));
        store_statistics(p, team, whole, measured);
        found[s.read_row] = measured;
      }
    });
    for (int r = 0; r < to_read; ++r) {
      rows[r] = coming[r];
      written[r] = found[r];
    }
    to_write = to_read;
  }
}

}  // namespace rooftile::kernels
