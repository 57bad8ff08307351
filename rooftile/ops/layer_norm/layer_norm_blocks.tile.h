#pragma once
// Long rows of a CPU, several at a time.
#include "rooftile/ops/layer_norm/layer_norm.tile.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

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
template <class T, bool kAdds, class Team, class RowAt, class Weight>
ROOFTILE_TILE void layer_norm_by_blocks(Team team, std::int64_t begin, std::int64_t end, RowAt row_at,
                                        Weight weight, Weight bias, float eps, float each_one) {
  using Tile = typename Team::Tile;
  using Groups = LayerNormGroups<T>;
  const Groups groups{row_at(begin).x.size};
  LayerNormRow<T> coming[Groups::kRows], rows[Groups::kRows];
  LayerNormScale<float> found[Groups::kRows], scales[Groups::kRows];
  LayerNormMoments<Team, T> moments;

  int to_write = 0;
  for (std::int64_t first = begin; first < end || to_write > 0; first += groups.rows) {
    const int to_read = first + groups.rows <= end ? groups.rows
                        : first < end              ? static_cast<int>(end - first)
                                                   : 0;
    for (int r = 0; r < to_read; ++r) coming[r] = row_at(first + r);
    groups.each(to_read, to_write, [&](const typename Groups::Step& s) ROOFTILE_INLINE {
      LayerNormRow<T> in =
          coming[s.reading ? s.read_row : 0].part(s.read_block * Groups::kBlock, Groups::kBlock);
      const std::int64_t at = s.write_block * Groups::kBlock;
      const LayerNormRow<T> out = rows[s.write_row].part(at, Groups::kBlock);
      const LayerNormScale<float> scale = scales[s.write_row];
      const Weight w = weight.part(at, Groups::kBlock), b = bias.part(at, Groups::kBlock);
      Team reader = team;
      if (s.reading) {
        if (s.read_block == 0)
          moments.begin(team, groups.size, each_one, [&](auto chunk, auto use) ROOFTILE_INLINE {
            layer_norm_input<kAdds>(team, coming[s.read_row], chunk, use);
          });
        const std::int64_t row = first + s.read_row;
        in.x.ahead =
            groups.ahead(s, row, end, [&](std::int64_t i) ROOFTILE_INLINE { return row_at(i).x.data; });
        reader.hold(in.x, 0);
        if (kAdds && in.residual.data) {
          in.residual.ahead = groups.ahead(
              s, row, end, [&](std::int64_t i) ROOFTILE_INLINE { return row_at(i).residual.data; });
          reader.hold(in.residual, 0);
        }
        reader.one_pass();
      }
      layer_norm_step(reader, s.reading ? in.x.size : 0, s.writing ? out.x.size : 0,
                      [&](auto chunk, bool reads, bool writes) ROOFTILE_INLINE {
                        if (writes)
                          layer_norm_input<kAdds>(team, out, chunk, [&](const Tile& h) ROOFTILE_INLINE {
                            layer_norm_write<true>(team, out, scale, w, b, chunk, h);
                          });
                        if (reads)
                          layer_norm_input<kAdds>(team, in, chunk, [&](const Tile& h) ROOFTILE_INLINE {
                            moments.add(reader, chunk, h);
                          });
                      });
      if (s.reading && s.read_block + 1 == groups.blocks) {
        LayerNormScale<float> its = moments.finish(team, coming[s.read_row], each_one, eps);
        if (its.factor != 1) [[unlikely]]
          its = layer_norm_look_again_apart<Team::kReads>(LayerNormRow<T>(coming[s.read_row]), its.factor,
                                                          eps, each_one, team.half());
        found[s.read_row] = its;
      }
    });
    for (int r = 0; r < to_read; ++r) {
      rows[r] = coming[r];
      scales[r] = found[r];
    }
    to_write = to_read;
  }
}

}  // namespace rooftile::kernels
