#pragma once
// Row programs in stages. A program says what one row is:
//
//   begin(team, size, in)                 what read() adds to; it may pass over the row by itself first:
//                                         in(chunk) gives the inputs' tiles, `size` the elements that this
//                                         team's block has of the row, a part where a cluster shares it
//   read(team, sums, chunk, in, w, row)   takes a chunk of the inputs in
//   measure(team, sums, row, each_one)    the row's scalars, from the sums of all its elements
//   statistics(found)                     those scalars that are operands
//   write(team, found, chunk, in, w, row, columns)   a chunk of the outputs
//
// `in[k]` is a tile of row input k, `w[k]` of vector k, `row.statistics[k]` what a row has of an operand with
// one value each, `row.scalars[k]` an operand that all rows share, each_one 1 / the row's elements.
// `columns.add(k, chunk, tile)` adds to the gradient of vector k, `columns.add_to_scalar(k, chunk, tile)` to
// that of scalar k. *When* rows are read, measured and written, which of these overlap, and how rows come on
// chip is the machinery's: a CPU writes one row while it reads the next, a GPU holds rows in registers. A
// program also says
//
//   Problem         its RowProblem (rooftile/core/row_problem.h)
//   kAddsResidual   whether the last input is an optional residual: then in[0] is x + residual as memory
//                   would hold it, and the last output, if it is there, receives that
//
// and, if it has vectors, absent(k), the elements of one that is absent. It may have kReadsFirst: its begin()
// reads the row; kReadsAgain: on a CPU 16-bit inputs are widened again to be written, not kept as floats; and
// kOnlyWrites: no element needs anything of its row, there is write() alone, and what is found is Nothing.
#include "rooftile/core/row_problem.h"
#include "rooftile/tile/kernels.h"
#include "rooftile/tile/tile.h"

namespace rooftile::tile {

/// A tile of each of n operands at one chunk.
template <class Tile, int n>
struct Tiles {
  Tile v[n];
  ROOFTILE_TILE const Tile& operator[](int k) const { return v[k]; }
};

/// One row's operands; those without data are absent. Of a GPU's warp, a team may have none: `there`.
template <class T, RowCounts n>
struct RowOperands {
  Row<const T> in[n.inputs];
  Row<T> out[n.outputs];
  float statistics[n.statistics_in + 1];
  float* statistics_out[n.statistics_out + 1];
  float scalars[n.scalars + 1];
  bool there = true;

  /// Makes of elements that are 0 a row that adds nothing to any sum.
  ROOFTILE_TILE void leave_out() {
    for (int k = 0; k < n.statistics_in; ++k) statistics[k] = 0;
    for (int k = 0; k < n.scalars; ++k) scalars[k] = 0;
    there = false;
  }
};
/// What a program that only writes has found of a row.
struct Nothing {};

/// The vectors' tiles at one chunk, each read when it is asked for.
template <class Vectors, class Team, class C>
struct VectorTiles {
  const Vectors& vectors;
  const Team& team;
  const C& chunk;
  ROOFTILE_TILE typename Team::Tile operator[](int k) const { return vectors.v[k].load(team, chunk); }
};
template <class V, int n>
struct VectorList {
  V v[n];
};
template <class V>
struct VectorList<V, 0> {};
/// Of each vector k what make(k) gives.
template <class V, class Make, int... k>
ROOFTILE_TILE VectorList<V, int(sizeof...(k))> vector_list(const Make& make,
                                                           std::integer_sequence<int, k...>) {
  return {{make(k)...}};
}
template <class V, int n, class Make>
ROOFTILE_TILE VectorList<V, n> vector_list(const Make& make) {
  if constexpr (n == 0)
    return {};
  else
    return vector_list<V>(make, std::make_integer_sequence<int, n>());
}

/// The elements of a vector that is absent.
template <class Program>
constexpr float absent_of(const Program& program, int vector) {
  if constexpr (Program::Problem::kVectors > 0)
    return program.absent(vector);
  else
    return 0;
}

template <class Program>
inline constexpr int kRowInputs = Program::Problem::kCounts.inputs - (Program::kAddsResidual ? 1 : 0);
template <class Program>
inline constexpr int kRowOutputs = Program::Problem::kCounts.outputs - (Program::kAddsResidual ? 1 : 0);
template <class Program>
inline constexpr bool kReadsFirst = requires {
  Program::kReadsFirst;
};
template <class Program>
inline constexpr bool kOnlyWrites = requires {
  Program::kOnlyWrites;
};
template <class Program>
inline constexpr bool kWidensOnce = !kOnlyWrites<Program> && !requires {
  Program::kReadsAgain;
};

/// What write() gave, to the outputs: a tile, or Tiles of several.
template <int kOutputs, class T, RowCounts n, class Team, class C, class Result>
ROOFTILE_TILE void store_outputs(const Team& team, const RowOperands<T, n>& row, const C& chunk,
                                 const Result& result) {
  if constexpr (kOutputs == 1) {
    team.store(row.out[0], chunk, result);
  } else {
    for (int k = 0; k < kOutputs; ++k) team.store(row.out[k], chunk, result[k]);
  }
}
/// Scalars that are operands, each where it goes or nowhere.
template <class Program, class T, RowCounts n, class Team, class Found>
ROOFTILE_TILE void store_statistics(const Program& p, const Team& team, const RowOperands<T, n>& row,
                                    const Found& found) {
  static_assert(n.statistics_out <= 2, "rooftile::tile: a row has two statistics at most");
  if constexpr (n.statistics_out == 1)
    team.store_scalars(row.statistics_out[0], p.statistics(found).v[0], static_cast<float*>(nullptr), 0);
  if constexpr (n.statistics_out == 2) {
    const auto all = p.statistics(found);
    team.store_scalars(row.statistics_out[0], all.v[0], row.statistics_out[1], all.v[1]);
  }
}

}  // namespace rooftile::tile

#if defined(__CUDACC__) || defined(ROOFTILE_EMULATED)
#include "rooftile/tile/cuda/rows.h"
#else
#include "rooftile/tile/cpu/rows.h"
#endif
