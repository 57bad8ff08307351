#pragma once
// Row programs (rooftile/tile/rows.h) on a GPU: a team holds a row in registers, reads it, measures it and
// writes it; other warps fill its waits.
//
// Kernels are few: the common call, rows in whole 16-byte vectors with weights of their dtype and without a
// residual, has its own (kPlain). All others share kernels, which learn from the call whether there is a
// residual and which dtype vectors have.
#include "rooftile/tile/cuda/tuning.h"
#include "rooftile/tile/cuda/vectors.h"

namespace rooftile::tile {
inline namespace cuda {

template <class T, class Team, class Problem>
ROOFTILE_TILE Row<const T> input_of(const Problem& p, int operand, const RowRange& range, std::int64_t i,
                                    bool optional = false) {
  bool alone = false;
  for (int o = 0; o < Problem::kOperands; ++o)
    alone = alone || (o != operand && p.data[o] == p.data[operand]);
  return row_of<const T, Team>(p.rows, operand, p.data[operand], range, i, alone, optional);
}
template <class T, class Team, class Problem>
ROOFTILE_TILE Row<T> output_of(const Problem& p, int operand, const RowRange& range, std::int64_t i,
                               bool optional = true) {
  return row_of<T, Team>(p.rows, operand, p.data[operand], range, i, false, optional);
}
/// Where the row's value of an operand that has one for each row lies; null: nowhere.
template <class Team, class Problem>
ROOFTILE_TILE float* value_of(const Problem& p, int operand, const RowRange& range, std::int64_t i) {
  if (!p.data[operand]) return nullptr;
  float* first = static_cast<float*>(const_cast<void*>(p.data[operand]));
  const std::int64_t row = range.row + i * range.step;
  if constexpr (Team::kStaged) {
    if (row >= p.rows.rows) return nullptr;
    // In two parts, of which all rows of a block have one in common.
    return first + offset_for<Team>(p.rows, operand, range.row) +
           i * offset_for<Team>(p.rows, operand, range.step);
  }
  return first + offset_for<Team>(p.rows, operand, row);
}
/// Calls f with the vectors' type.
template <class T, class F>
Status with_vector_type(DType type, F&& f) {
  if constexpr (sizeof(T) != sizeof(float))
    if (type != DType::f32) return f.template operator()<T>();
  return f.template operator()<float>();
}
/// How a problem's rows and vectors lie; the last of them counts.
template <class T, class Problem>
RowAlignment problem_alignment(const Problem& p) {
  RowAlignment alignment = RowAlignment::vectorized;
  for (int v = 0; v < Problem::kVectors; ++v)
    alignment = std::max(alignment, vector_alignment(p.vectors[v], p.rows.columns));
  for (int o = 0; o < Problem::kOperands; ++o) {
    const bool statistic =
        (o >= Problem::kStatisticsIn && o < Problem::kOutputs) || o >= Problem::kStatisticsOut;
    if (!statistic && p.data[o])
      alignment = std::max(alignment, alignment_of(p.rows, o, p.data[o], sizeof(T)));
  }
  return alignment;
}
/// Operands that are staged: rows, then vectors.
template <class Problem>
SharedLayout staged_layout(const Problem& p, bool adds_residual) {
  constexpr RowCounts n = Problem::kCounts;
  static_assert(n.operands() + n.vectors <= 8, "rooftile::tile: SharedLayout has eight operands");
  StagedRows all[n.operands()] = {};
  for (int o = 0; o < n.operands(); ++o) all[o] = {nullptr};
  for (int k = 0; k < n.inputs; ++k) all[k] = {p.data[k]};
  // An output follows the input of its number; the sum the residual.
  for (int k = 0; k < n.outputs; ++k) {
    const bool sum = adds_residual && k == n.outputs - 1;
    all[Problem::kOutputs + k] = {p.data[Problem::kOutputs + k], sum ? n.inputs - 1 : k < n.inputs ? k : -1};
  }
  SharedLayout shared_layout = touching_layout(p.rows, all);
  for (int v = 0; v < n.vectors; ++v) shared_layout.add_vector(n.operands() + v);
  return shared_layout;
}
template <class T, class Program, class Rows, class Vectors>
ROOFTILE_TILE void each_staged_operand(const Program& program, const typename Program::Problem& p,
                                       const Rows& rows, const Vectors& vectors) {
  using Problem = typename Program::Problem;
  ROOFTILE_UNROLL for (int k = 0; k < Problem::kCounts.inputs; ++k)
      rows(k, static_cast<const T*>(p.data[k]), false);
  ROOFTILE_UNROLL for (int k = Problem::kOutputs; k < Problem::kStatisticsOut; ++k)
      rows(k, static_cast<const T*>(p.data[k]), true);
  ROOFTILE_UNROLL for (int v = 0; v < Problem::kVectors; ++v) {
    constexpr int kFirst = Problem::kOperands;
    if (p.vector_dtype == DType::f32)
      vectors(kFirst + v, static_cast<const float*>(p.vectors[v].data), absent_of(program, v));
    else
      vectors(kFirst + v, static_cast<const T*>(p.vectors[v].data), absent_of(program, v));
  }
}

/// A vector in memory: the columns that this block has of it.
template <class T, bool kPlain, class Program>
ROOFTILE_TILE auto global_vector(const Program& program, const typename Program::Problem& p, int v,
                                 const RowRange& range) {
  const float absent = absent_of(program, v);
  if constexpr (kPlain)
    return vector_of<T, true>(p.vectors[v], range, absent);
  else
    return EitherVector<T>{vector_of<T, false>(p.vectors[v], range, absent),
                           vector_of<float, false>(p.vectors[v], range, absent),
                           p.vector_dtype == DType::f32};
}

/// The tiles of rows that a team holds; of staged 16-bit rows as floats, since there instructions are what
/// takes time (layer_norm_backward bf16 524288x100, H200: widened at each use 165 µs, once 142).
template <class Team, class T, int n>
struct HeldRows {
  using Tile = typename Team::Tile;
  static constexpr bool kFloats = Team::kStaged && sizeof(T) < sizeof(float);
  typename Team::template Held<T> held[n];
  typename Team::Scratch floats[kFloats ? n : 1];

  ROOFTILE_TILE void widen(const Team& team, std::int64_t size) {
    if constexpr (kFloats)
      team.each(size, [&](const Chunk& chunk) {
        ROOFTILE_UNROLL for (int k = 0; k < n; ++k) floats[k][chunk] = held[k][chunk];
      });
  }
  ROOFTILE_TILE Tiles<Tile, n> operator()(const Chunk& chunk) const {
    Tiles<Tile, n> tiles;
    ROOFTILE_UNROLL for (int k = 0; k < n; ++k) {
      if constexpr (kFloats)
        tiles.v[k] = floats[k][chunk];
      else
        tiles.v[k] = held[k][chunk];
    }
    return tiles;
  }
};

/// What column gradients are to a program that has none.
struct NoColumns {};

/// A scalar, which is f32 or T.
template <class T, class Problem>
ROOFTILE_TILE float scalar_of(const Problem& p, int scalar) {
  if (p.vector_dtype == DType::f32) return *static_cast<const float*>(p.scalars[scalar]);
  return widen<float>(*static_cast<const T*>(p.scalars[scalar]));
}

/// Σ of what `terms(team, chunk, h)` gives over a row that is read once more, as few rows need it.
template <class T, class Team, class Terms>
ROOFTILE_TILE Tiles<float, Terms::kSums> sums_again(const Team& team, const Row<const T>& x,
                                                    const Row<const T>& residual, const Terms& terms) {
  constexpr int kSums = Terms::kSums;
  typename Team::Accumulator sums[kSums] = {};
  each_again(team, x.size, [&](const Chunk& chunk) {
    auto h = load_again(team, x, chunk);
    if (residual.data) h = team.template round_to<T>(h + load_again(team, residual, chunk));
    const auto added = terms(team, chunk, h);
    ROOFTILE_UNROLL for (int k = 0; k < kSums; ++k) sums[k][chunk] += added[k];
  });
  if constexpr (kSums == 1) {
    return {{team.sum(sums[0])}};
  } else {
    const auto both = team.sums(sums[0], sums[1]);
    return {{both.first, both.second}};
  }
}

/// What a program finds of a row that a team holds, or reads again. `in(chunk)`: its inputs.
template <bool kAdds, class T, class Program, class Team, class In, class Vectors>
ROOFTILE_TILE auto found_of(const Program& p, const Team& team,
                            const RowOperands<T, Program::Problem::kCounts>& row, const In& in,
                            const Vectors& vectors, float each_one) {
  if constexpr (kOnlyWrites<Program>) {
    return Nothing{};
  } else {
    auto sums = begin_of(p, team, row, each_one, in);
    team.each(row.in[0].size, [&](const Chunk& chunk) {
      const VectorTiles<Vectors, Team, Chunk> w{vectors, team, chunk};
      const auto tiles = in(chunk);
      p.read(sums, At{team, chunk, tiles, w, row});
    });
    auto found = p.measure(team, sums, row, each_one);
    if constexpr (kLooksAgain<Program>) {
      const float factor = p.second_look(found);
      if (any_of_warp<Team>(factor != 1)) [[unlikely]] {
        Row<const T> residual{nullptr, row.in[0].size};
        if constexpr (kAdds) residual = row.in[Program::Problem::kCounts.inputs - 1];
        const auto again = found_again(
            p, [&](const auto& terms) { return sums_again(team, row.in[0], residual, terms); },
            team.length(row.in[0]), each_one, factor);
        if (factor != 1) found = again;
      }
    }
    store_statistics(p, team, row, found);
    return found;
  }
}
/// Such a row is read, measured and written.
template <bool kAdds, class T, class Program, class Team, class In, class Vectors, class Columns>
ROOFTILE_TILE void run_row(const Program& p, const Team& team,
                           const RowOperands<T, Program::Problem::kCounts>& row, const In& in,
                           const Vectors& vectors, Columns& columns, float each_one) {
  const auto found = found_of<kAdds, T>(p, team, row, in, vectors, each_one);
  team.each(row.in[0].size, [&](const Chunk& chunk) {
    const VectorTiles<Vectors, Team, Chunk> w{vectors, team, chunk};
    const auto tiles = in(chunk);
    if constexpr (kAdds) {
      const auto& sum = row.out[Program::Problem::kCounts.outputs - 1];
      if (sum.data) team.store(sum, chunk, tiles[0]);
    }
    store_outputs<kRowOutputs<Program>>(team, row, chunk,
                                        p.write(found, At{team, chunk, tiles, w, row}, columns));
  });
}

/// A program without column sums, as for_rows() wants it.
template <class Program_, class T, bool kPlain>
struct RowsKernel {
  using Program = Program_;
  using Problem = typename Program::Problem;
  static constexpr RowCounts kCounts = Problem::kCounts;
  static constexpr int kInputs = kRowInputs<Program>, kVectors = Problem::kVectors;
  static constexpr bool kAdds = Program::kAddsResidual && !kPlain;
  static constexpr RowTuning kTuning =
      row_tuning({kInputs, kVectors, int(sizeof(T)), false, kSamples<Program>});
  static constexpr int kHeldThreads = kTuning.max_threads;
  static constexpr Clusters kClusters = kTuning.clusters;
  static constexpr Streaming kStreaming = kTuning.streaming;
  static constexpr bool full(Scope scope) { return kPlain && scope >= kTuning.full; }
  static constexpr int least_threads(std::int64_t columns) { return kTuning.threads_of(columns); }
  static constexpr int least_blocks(Scope scope) { return kTuning.min_blocks[static_cast<int>(scope)]; }
  static constexpr int kept(Scope scope) { return kPlain && scope == Scope::block ? kTuning.stages : 0; }
  static constexpr Late late(const RowShape&) { return kTuning.late; }
  Problem p;
  Program program;
  float each_one;  // 1 / columns, of the host: before the first load, a division would hold up short rows

  /// Only aligned rows have kernels of their own, and of these those that fill their team, or have several
  /// vectors: layer_norm bf16 65536x1024 71 µs, by the others' kernel 94; rms_norm 71 by either.
  template <Access kAccess, Scope kScope>
  auto serving() const {
    constexpr bool kOwn = kAccess == Access::full || (kAccess == Access::aligned && kVectors > 1);
    return RowsKernel < Program, T, kPlain && kOwn > {p, program, each_one};
  }
  SharedLayout shared_layout() const { return staged_layout(p, Program::kAddsResidual); }
  template <class Rows, class Vectors>
  ROOFTILE_TILE void each_staged(const Rows& rows, const Vectors& vectors) const {
    each_staged_operand<T>(program, p, rows, vectors);
  }

  template <class Team>
  ROOFTILE_TILE RowOperands<T, kCounts> row_at(const RowRange& range, std::int64_t i) const {
    RowOperands<T, kCounts> r;
    ROOFTILE_UNROLL for (int k = 0; k < kCounts.inputs; ++k) {
      const bool residual = Program::kAddsResidual && k == kCounts.inputs - 1;
      if (!residual || kAdds) r.in[k] = input_of<T, Team>(p, k, range, i, residual);
    }
    ROOFTILE_UNROLL for (int k = 0; k < kCounts.outputs; ++k) r.out[k] =
        output_of<T, Team>(p, Problem::kOutputs + k, range, i, k > 0);
    ROOFTILE_UNROLL for (int k = 0; k < kCounts.statistics_in; ++k) {
      const float* value = value_of<Team>(p, Problem::kStatisticsIn + k, range, i);
      r.statistics[k] = value ? *value : 0;
    }
    ROOFTILE_UNROLL for (int k = 0; k < kCounts.statistics_out; ++k) r.statistics_out[k] =
        value_of<Team>(p, Problem::kStatisticsOut + k, range, i);
    ROOFTILE_UNROLL for (int k = 0; k < kCounts.scalars; ++k) r.scalars[k] = scalar_of<T>(p, k);
    return r;
  }
  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const RowRange& range) const {
    const auto run = [&](const auto& vectors) {
      for (std::int64_t i = 0; i < range.count; ++i) row(team, row_at<Team>(range, i), vectors);
    };
    if constexpr (Team::kStaged) {
      run(vector_list<StagedVector, kVectors>(
          [&](int v) { return StagedVector(range.staging, kCounts.operands() + v); }));
    } else if constexpr (Team::kVectors > 0) {
      using V = RingVector<T, Team>;
      run(vector_list<V, kVectors>(
          [&](int v) { return V(global_vector<T, kPlain>(program, p, v, range), v); }));
    } else {
      using V = decltype(global_vector<T, kPlain>(program, p, 0, range));
      run(vector_list<V, kVectors>([&](int v) { return global_vector<T, kPlain>(program, p, v, range); }));
    }
  }
  template <class Team, class Vectors>
  ROOFTILE_TILE void row(const Team& team, const RowOperands<T, kCounts>& r, const Vectors& vectors) const {
    using Tile = typename Team::Tile;
    constexpr int kResidual = kCounts.inputs - 1;
    const NoColumns none;
    if constexpr (Team::kHoldsRows) {
      HeldRows<Team, T, kInputs> in;
      ROOFTILE_UNROLL for (int k = 0; k < kInputs; ++k) in.held[k] = team.hold(r.in[k], 0);
      if constexpr (kAdds) {
        if (r.in[kResidual].data) {
          const auto residual = team.hold(r.in[kResidual], 0);
          team.each(r.in[0].size,
                    [&](const Chunk& chunk) { in.held[0].set(chunk, in.held[0][chunk] + residual[chunk]); });
        }
      }
      in.widen(team, r.in[0].size);
      if constexpr (kVectors > 0) {
        ROOFTILE_UNROLL for (int v = 0; v < kVectors; ++v) vectors.v[v].ask(team);
      }
      run_row<kAdds, T>(program, team, r, in, vectors, none, each_one);
    } else {
      const auto in = [&](const Chunk& chunk) {
        Tiles<Tile, kInputs> tiles;
        ROOFTILE_UNROLL for (int k = 0; k < kInputs; ++k) tiles.v[k] = team.load(r.in[k], chunk);
        if constexpr (kAdds)
          if (r.in[kResidual].data)
            tiles.v[0] = team.template round_to<T>(tiles.v[0] + team.load(r.in[kResidual], chunk));
        return tiles;
      };
      run_row<kAdds, T>(program, team, r, in, vectors, none, each_one);
    }
  }
};

}  // namespace cuda
}  // namespace rooftile::tile

#include "rooftile/tile/cuda/row_sums.h"
