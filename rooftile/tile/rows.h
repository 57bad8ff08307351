#pragma once
// Row programs in stages. A program says what one row is:
//
//   begin(team)                           what read() adds to; absent: one sum, team.accumulator(); or
//   begin(team, row, each_one, in)        the same of a program that samples the row first (kSamples):
//                                         in(chunk) are its inputs
//   read(sums, at)                        takes a chunk of the inputs in
//   measure(team, sums, row, each_one)    the row's scalars, from the sums of all its elements
//   statistics(found)                     those scalars that are operands
//   write(found, at, columns)             a chunk of the outputs
//
// `at.in[k]` is the tile of row input k at `at.chunk`, `at.w[k]` of vector k, `row.statistics[k]` what a row
// has of an operand with one value each, `row.scalars[k]` an operand that all rows share, each_one 1 / the
// row's elements. `columns.add(k, chunk, tile)` adds to the gradient of vector k, `columns.add_to_scalar(k,
// chunk, tile)` to that of scalar k. *When* rows are read, measured and written, which of these overlap, and
// how rows come on chip is the machinery's: a CPU writes one row while it reads the next, a GPU holds rows in
// registers. A program also says
//
//   Problem         its RowProblem (rooftile/core/row_problem.h)
//   kAddsResidual   whether the last input is an optional residual: then in[0] is x + residual as memory
//                   would hold it, and the last output, if it is there, receives that
//
// and, if it has vectors, absent(k), the elements of one that is absent. It may have kReadsAgain: on a CPU
// 16-bit inputs are widened again to be written, not kept as floats; and kOnlyWrites: no element needs
// anything of its row, there is write() alone, and what is found is Nothing.
//
// A program whose sum may leave f32 where the row does not, as squares do, takes a second look at such rows:
//
//   second_look(found)                    what elements are to be multiplied by for that, a power of two; 1:
//                                         the row needs none
//   term(h)                               what is added of an element then: h * h
//   measure_again(sum, each_one, factor)  the row's scalars, from that sum; or, in the place of both,
//   look_again(sums_of, count, each_one, factor)  the same of a row of `count` elements, from as many passes
//                                         as it takes: sums_of(terms) adds terms(team, chunk, h) up
//
// Rows of f64, which CPUs alone take, are computed in double, all others in float: with_real() says which. Of
// doubles there is no second look.
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

/// What rows of T are computed in.
template <class T>
using RealOf = std::conditional_t<std::is_same_v<T, double>, double, float>;
/// Calls run with that of rows of `dtype`: run.template operator()<float>().
template <class Run>
Status with_real([[maybe_unused]] DType dtype, const Run& run) {
#if !defined(__CUDACC__) && !defined(ROOFTILE_EMULATED)
  if (dtype == DType::f64) return run.template operator()<double>();
#endif
  return run.template operator()<float>();
}

/// One row's operands; those without data are absent. Of a GPU's warp, a team may have none: `there`.
template <class T, RowCounts n>
struct RowOperands {
  using Real = RealOf<T>;
  Row<const T> in[n.inputs];
  Row<T> out[n.outputs];
  Real statistics[n.statistics_in + 1];
  Real* statistics_out[n.statistics_out + 1];
  Real scalars[n.scalars + 1];
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

/// What a stage sees of its row at one chunk.
template <class Team, class C, class In, class W, class Row>
struct At {
  const Team& team;
  C chunk;
  const In& in;
  const W& w;
  const Row& row;
};
template <class Team, class C, class In, class W, class Row>
At(const Team&, C, const In&, const W&, const Row&) -> At<Team, C, In, W, Row>;

/// Whether begin() reads elements: a pass of its own before read()'s.
template <class Program>
inline constexpr bool kSamples = requires {
  Program::kSamples;
};
/// What a program's read() adds to.
template <class Program, class Team, class Row, class In>
ROOFTILE_TILE auto begin_of(const Program& program, const Team& team, [[maybe_unused]] const Row& row,
                            [[maybe_unused]] typename Team::Real each_one, [[maybe_unused]] const In& in) {
  if constexpr (kSamples<Program>)
    return program.begin(team, row, each_one, in);
  else if constexpr (requires { program.begin(team); })
    return program.begin(team);
  else
    return team.accumulator();
}

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
    return static_cast<float>(program.absent(vector));
  else
    return 0;
}

template <class Program>
inline constexpr int kRowInputs = Program::Problem::kCounts.inputs - (Program::kAddsResidual ? 1 : 0);
template <class Program>
inline constexpr int kRowOutputs = Program::Problem::kCounts.outputs - (Program::kAddsResidual ? 1 : 0);
template <class Program>
inline constexpr bool kOnlyWrites = requires {
  Program::kOnlyWrites;
};
template <class Program>
inline constexpr bool kWidensOnce = !kOnlyWrites<Program> && !requires {
  Program::kReadsAgain;
};

template <class Program>
inline constexpr bool kLooksAgain = requires {
  &Program::second_look;
};
/// Elements times kShrinks have squares and sums of squares in f32, however large they are; times kGrows
/// squares that are normal numbers, however small. Of mean squares (or sums) from kLeastSquares on, what
/// subnormal squares lost is below 2^-60.
inline constexpr float kShrinks = 0x1p-90f, kGrows = 0x1p90f, kLeastSquares = 0x1p-90f;
/// Terms of a second look at an element.
template <class Program>
struct TermAgain {
  static constexpr int kSums = 1;
  Program program;
  float factor;
  template <class Team, class C, class X>
  ROOFTILE_TILE Tiles<X, 1> operator()(const Team&, const C&, const X& h) const {
    return {{program.term(h * factor)}};
  }
};
/// What a program finds of a row at its second look. `sums_of(terms)`: Σ of the row's terms.
template <class Program, class SumsOf>
ROOFTILE_TILE auto found_again(const Program& program, const SumsOf& sums_of,
                               [[maybe_unused]] std::int64_t count, float each_one, float factor) {
  if constexpr (requires { program.look_again(sums_of, each_one, each_one, factor); })
    return program.look_again(sums_of, static_cast<float>(count), each_one, factor);
  else
    return program.measure_again(sums_of(TermAgain<Program>{program, factor})[0], each_one, factor);
}

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
    team.store_scalars(row.statistics_out[0], p.statistics(found).v[0], static_cast<RealOf<T>*>(nullptr), 0);
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
