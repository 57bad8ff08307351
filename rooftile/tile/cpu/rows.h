#pragma once
// Row programs (rooftile/tile/rows.h) on a CPU: one row is written while the next is read, so that memory and
// arithmetic work at once.
#include "rooftile/tile/cpu/launch.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// A vector over the columns as contiguous floats;
struct FloatVector {
  Row<const float> row;
  ROOFTILE_TILE FloatVector part(std::int64_t begin, std::int64_t count) const {
    return {row.part(begin, count)};
  }
  template <class Team, class C>
  ROOFTILE_TILE typename Team::Tile load(const Team& team, C chunk) const {
    return team.load(row, chunk);
  }
};
/// or as it comes: as f32, as T, or `absent` throughout where neither has data.
template <class T>
struct AnyVector {
  Row<const float> floats;
  Row<const T> others;
  float absent;  // 0 or 1
  template <class Team, class C>
  ROOFTILE_TILE typename Team::Tile load(const Team& team, C chunk) const {
    typename Team::Tile t = team.fill(absent);
    if (floats.data) t = team.load(floats, chunk);
    if (others.data) t = team.load(others, chunk);
    return t;
  }
};
template <class T>
Row<T> vector_row(const ColumnVector& c, std::int64_t columns) {
  return {static_cast<T*>(const_cast<void*>(c.data)), columns, c.stride};
}
inline bool plain_floats(const ColumnVector& c, DType dtype, std::int64_t columns) {
  return c.data && dtype == DType::f32 && (columns <= 1 || c.stride == 1);
}
template <class W>
FloatVector floats_of(CpuTeam<float, Access::strided>& team, Row<const W> vector, float absent) {
  const auto floats = team.scratch(vector.size);
  team.each(vector.size, [&](auto chunk) ROOFTILE_INLINE {
    if (vector.data) {
      floats[chunk] = team.load(vector, chunk);
    } else {
      floats[chunk] = team.fill(absent);
    }
  });
  return {{floats.data, vector.size}};
}
/// A vector as floats, converted into scratch where it is not. A call, as it happens but once for a thread's
/// rows.
__attribute__((noinline)) inline FloatVector floats_of(ThreadScratch& scratch, const ColumnVector& c,
                                                       DType dtype, std::int64_t columns, float absent) {
  if (plain_floats(c, dtype, columns)) return {vector_row<const float>(c, columns)};
  CpuTeam<float, Access::strided> team(scratch, dtype);
  const FloatVector floats = dtype == DType::f32
                                 ? floats_of(team, vector_row<const float>(c, columns), absent)
                                 : floats_of(team, vector_row<const AnyHalf>(c, columns), absent);
  scratch = team.rest();
  return floats;
}
/// The same for rows that no scratch holds, or whose elements lie apart: as it is.
template <class T>
AnyVector<T> as_it_is(const ColumnVector& c, DType dtype, std::int64_t columns, float absent) {
  const bool is_float = dtype == DType::f32;
  return {vector_row<const float>(is_float ? c : ColumnVector{}, columns),
          vector_row<const T>(is_float ? ColumnVector{} : c, columns), absent};
}

/// Sums for the gradients that are there, over a block of rows: of vectors by column, of scalars of all.
template <class Team, int n, int kScalars>
struct Gradients {
  using Tile = typename Team::Tile;
  typename Team::Columns sums[n + 1];
  typename Team::Real* scalars[kScalars + 1];  ///< where their sums go
  Tile of_row[kScalars + 1], of_block[kScalars + 1];
  bool first;  ///< the block's first row, which begins the sums

  template <class C>
  ROOFTILE_TILE void add(int k, C chunk, const Tile& t) const {
    if (sums[k].sums.data) sums[k].add(chunk, t, first);
  }
  /// Adds a · b, fused.
  template <class C>
  ROOFTILE_TILE void add_product(int k, C chunk, const Tile& a, const Tile& b) const {
    if (sums[k].sums.data) sums[k].add_product(chunk, a, b, first);
  }
  template <class C>
  ROOFTILE_TILE void add_to_scalar(int k, C chunk, const Tile& t) {
    of_row[k] += Team(nullptr).only(chunk, t, 0);
  }
  /// Rows apart: a block's may be thousands, and each sum's rounding errors grow with its terms.
  ROOFTILE_TILE void end_row() {
    for (int k = 0; k < kScalars; ++k) {
      of_block[k] += of_row[k];
      of_row[k] = {};
    }
  }
  ROOFTILE_TILE void end_block() const {
    for (int k = 0; k < kScalars; ++k)
      if (scalars[k]) *scalars[k] = Team(nullptr).sum(of_block[k]);
  }
};

template <class Team, class Program>
using GradientsOf = Gradients<Team, Program::Problem::kGradients, Program::Problem::kScalarGradients>;

/// A chunk of a row's inputs.
template <class Program, bool kAdds, class T, RowCounts n, class Team, class C>
ROOFTILE_TILE auto row_input(const Team& team, const RowOperands<T, n>& row, C chunk) {
  Tiles<typename Team::Tile, kRowInputs<Program>> in;
  for (int k = 0; k < kRowInputs<Program>; ++k) in.v[k] = team.load(row.in[k], chunk);
  if constexpr (kAdds) in.v[0] = team.template round_to<T>(in.v[0] + team.load(row.in[n.inputs - 1], chunk));
  return in;
}

/// The team of rows that are read once more.
template <Access kAccess>
using AgainTeam = CpuTeam<float, kAccess == Access::strided ? Access::strided : Access::cached>;

/// Σ of what `terms(team, chunk, h)` gives over a row that is read once more. Few rows need it: a call, which
/// takes no register from those that do not.
template <Access kAccess, class T, class Terms>
__attribute__((noinline, cold)) Tiles<float, Terms::kSums> sums_apart(Row<const T> x, Row<const T> residual,
                                                                      DType half, Terms terms) {
  using Team = AgainTeam<kAccess>;
  constexpr int kSums = Terms::kSums;
  const Team team(nullptr, half);
  typename Team::Accumulator sums[kSums];
  typename Team::Accumulator::Aside aside[kSums];
  for (int k = 0; k < kSums; ++k) sums[k] = team.accumulator();
  team.each_in_parts(
      x.size,
      [&](auto chunk) {
        typename Team::Tile h = team.load(x, chunk);
        if (residual.data) h = team.template round_to<T>(h + team.load(residual, chunk));
        const auto added = terms(team, chunk, h);
        for (int k = 0; k < kSums; ++k) sums[k][chunk] += added[k];
      },
      [&] {
        for (int k = 0; k < kSums; ++k) sums[k].put_aside(aside[k]);
      });
  Tiles<float, kSums> all;
  for (int k = 0; k < kSums; ++k) {
    if (x.size > Team::kPart) sums[k].bring_back(aside[k]);
    all.v[k] = team.sum(sums[k]);
  }
  return all;
}
template <class T, class Team, class Terms>
ROOFTILE_TILE Tiles<float, Terms::kSums> sums_again(const Team& team, const Row<const T>& x,
                                                    const Row<const T>& residual, const Terms& terms) {
  return sums_apart<Team::kReads>(x, residual, team.half(), terms);
}

/// A row that needs a second look: its scalars and outputs.
template <bool kAdds, Access kAccess, class T, class Program, class Vectors>
__attribute__((noinline, cold)) void far_row(const Program p,
                                             const RowOperands<T, Program::Problem::kCounts>& row,
                                             const Vectors vectors, float each_one, DType half,
                                             float factor) {
  using Team = AgainTeam<kAccess>;
  constexpr RowCounts n = Program::Problem::kCounts;
  static_assert(n.gradients == 0 && n.scalar_gradients == 0, "rooftile::tile: gradients of far rows");
  const Team team(nullptr, half);
  Row<const T> residual{nullptr, row.in[0].size};
  if constexpr (kAdds) residual = row.in[n.inputs - 1];
  const auto found = found_again(
      p, [&](const auto& terms) { return sums_again(team, row.in[0], residual, terms); }, row.in[0].size,
      each_one, factor);
  store_statistics(p, team, row, found);
  team.each(row.in[0].size, [&](auto chunk) {
    const VectorTiles<Vectors, Team, decltype(chunk)> w{vectors, team, chunk};
    const auto in = row_input<Program, kAdds>(team, row, chunk);
    if constexpr (Program::kAddsResidual)
      if (row.out[n.outputs - 1].data) team.store(row.out[n.outputs - 1], chunk, in[0]);
    store_outputs<kRowOutputs<Program>>(team, row, chunk,
                                        p.write(found, At{team, chunk, in, w, row}, Nothing{}));
  });
}

/// Rows `begin` to `end`, a block of rows where there are gradients. kKeeps: inputs wait as floats in scratch
/// from the read to the write of a row, which pays where reading them again takes more than a load; bits
/// do not depend on it.
template <bool kAdds, bool kKeeps, class T, class Program, class Team, class RowAt, class Vectors>
ROOFTILE_TILE void run_rows(const Program& p, Team team, std::int64_t begin, std::int64_t end, RowAt row_at,
                            const Vectors& vectors, typename Team::Real each_one,
                            GradientsOf<Team, Program>& columns) {
  constexpr RowCounts n = Program::Problem::kCounts;
  constexpr int kInputs = kRowInputs<Program>;
  constexpr bool kLooks = kLooksAgain<Program> && std::is_same_v<typename Team::Real, float>;
  using Tile = typename Team::Tile;
  using In = Tiles<Tile, kInputs>;
  const std::int64_t size = row_at(begin).in[0].size;
  typename Team::Scratch kept[kInputs];
  if constexpr (kKeeps)
    for (int k = 0; k < kInputs; ++k) kept[k] = team.scratch(size);
  const auto near = [&](std::int64_t from, auto use) ROOFTILE_INLINE {
    RowOperands<T, n> coming = row_at(from), row = coming;
    const auto input = [&](auto chunk)
                           ROOFTILE_INLINE { return row_input<Program, kAdds>(team, coming, chunk); };
    decltype(begin_of(p, team, coming, each_one, input)) sums{};
    decltype(p.measure(team, sums, row, each_one)) found{};

    const auto step = [&](std::int64_t i, bool reads, bool writes) ROOFTILE_INLINE -> bool {
      Team reader = team;
      if (writes) row = coming;
      if constexpr (kLooks)
        if (writes && p.second_look(found) != 1) [[unlikely]]
          return false;
      columns.first = i - 1 == begin;
      if (reads) {
        coming = row_at(i);
        if (writes) {
          if constexpr (!kSamples<Program>) reader.one_pass();
          for (int k = 0; k < kInputs; ++k) reader.hold(coming.in[k], 0);
          if constexpr (kAdds) reader.hold(coming.in[n.inputs - 1], 0);
        }
        sums = begin_of(p, reader, coming, each_one, input);
      }
      const auto compute = [&](auto chunk) ROOFTILE_INLINE {
        const VectorTiles<Vectors, Team, decltype(chunk)> w{vectors, team, chunk};
        const auto write = [&](const In& in) ROOFTILE_INLINE {
          if constexpr (Program::kAddsResidual)
            if (row.out[n.outputs - 1].data) team.store(row.out[n.outputs - 1], chunk, in[0]);
          store_outputs<kRowOutputs<Program>>(team, row, chunk,
                                              p.write(found, At{team, chunk, in, w, row}, columns));
        };
        if constexpr (kKeeps) {
          if (writes) {
            In in;
            for (int k = 0; k < kInputs; ++k) in.v[k] = kept[k][chunk];
            write(in);
          }
          if (!reads) return;
          const In in = input(chunk);
          for (int k = 0; k < kInputs; ++k) kept[k][chunk] = in.v[k];
          p.read(sums, At{reader, chunk, in, w, coming});
        } else {
          if (writes) write(row_input<Program, kAdds>(team, row, chunk));
          if (!reads) return;
          const In in = input(chunk);
          p.read(sums, At{reader, chunk, in, w, coming});
        }
      };
      if constexpr (requires { sums.tile; }) {
        // Beside the sums, not in them: in registers they would take the place of others (a tenth slower).
        typename Team::Accumulator::Aside aside;
        reader.each_in_parts(size, compute, [&]() ROOFTILE_INLINE { sums.put_aside(aside); });
        if (size > Team::kPart) sums.bring_back(aside);
      } else {
        reader.each(size, compute);
      }
      if (reads) {
        found = p.measure(team, sums, coming, each_one);
        store_statistics(p, team, coming, found);
      }
      return true;
    };
    const std::int64_t stopped = team.rows(from, end, step);
    if constexpr (kLooks)
      if (stopped <= end) use(found);
    return stopped;
  };
  if constexpr (kLooks) {
    for (std::int64_t i = begin; i < end;) {
      float factor = 1;
      i = near(i, [&](const auto& found) ROOFTILE_INLINE { factor = p.second_look(found); });
      if (i <= end) far_row<kAdds, Team::kReads, T>(p, row_at(i - 1), vectors, each_one, team.half(), factor);
    }
  } else {
    near(begin, 0);
  }
}

/// The same of a program that only writes.
template <class T, class Program, class Team, class RowAt, class Vectors>
ROOFTILE_TILE void write_rows(const Program& p, const Team& team, std::int64_t begin, std::int64_t end,
                              RowAt row_at, const Vectors& vectors, GradientsOf<Team, Program>& columns) {
  for (std::int64_t i = begin; i < end; ++i) {
    const auto row = row_at(i);
    Team writer = team;
    writer.one_pass();
    for (int k = 0; k < kRowInputs<Program>; ++k) writer.hold(row.in[k], 0);
    columns.first = i == begin;
    writer.each(row.in[0].size, [&](auto chunk) ROOFTILE_INLINE {
      const VectorTiles<Vectors, Team, decltype(chunk)> w{vectors, team, chunk};
      const auto in = row_input<Program, false>(team, row, chunk);
      store_outputs<kRowOutputs<Program>>(team, row, chunk,
                                          p.write(Nothing{}, At{team, chunk, in, w, row}, columns));
    });
    columns.end_row();
  }
}

/// An absent operand has no row.
template <class T, class Problem>
Row<T> row_or_none(const Problem& p, int operand, std::int64_t row, std::int64_t end) {
  if (!p.data[operand]) return {nullptr, p.rows.columns};
  return row_of<T>(p.rows, operand, p.data[operand], row, end);
}
/// A row's one value of a statistic.
template <class Real, class Problem>
Real* value_or_none(const Problem& p, int operand, std::int64_t row) {
  if (!p.data[operand]) return nullptr;
  return static_cast<Real*>(const_cast<void*>(p.data[operand])) + p.rows.offset(operand, row);
}
template <class T, class Problem>
RowOperands<T, Problem::kCounts> operands_of(const Problem& p, std::int64_t row, std::int64_t end) {
  constexpr RowCounts n = Problem::kCounts;
  using Real = RealOf<T>;
  RowOperands<T, n> r;
  for (int k = 0; k < n.inputs; ++k) r.in[k] = row_or_none<const T>(p, k, row, end);
  for (int k = 0; k < n.outputs; ++k) r.out[k] = row_or_none<T>(p, Problem::kOutputs + k, row, end);
  for (int k = 0; k < n.statistics_in; ++k)
    r.statistics[k] = *value_or_none<Real>(p, Problem::kStatisticsIn + k, row);
  for (int k = 0; k < n.statistics_out; ++k)
    r.statistics_out[k] = value_or_none<Real>(p, Problem::kStatisticsOut + k, row);
  return r;
}

/// A thread's share of the rows; with gradients, of the blocks.
template <bool kAdds, class T, Access kAccess, class Program>
void run_share(const Program& program, const typename Program::Problem& p, ThreadScratch scratch,
               std::int64_t begin, std::int64_t end) {
  using Problem = typename Program::Problem;
  using Real = RealOf<T>;
  using Team = CpuTeam<Real, kAccess>;
  const std::int64_t columns = p.rows.columns;
  const bool sums = p.wants_gradients();
  const auto first_of = [&](std::int64_t block) {
    return sums ? row_block_begin(p.rows.rows, p.blocks, block) : block;
  };
  const std::int64_t last = first_of(end);
  Real scalars[Problem::kScalars + 1];
  for (int k = 0; k < Problem::kScalars; ++k)
    scalars[k] = static_cast<Real>(load_scalar(p.scalars[k], p.vector_dtype));
  const auto row_at = [&](std::int64_t row) ROOFTILE_INLINE {
    auto r = operands_of<T>(p, row, last);
    for (int k = 0; k < Problem::kScalars; ++k) r.scalars[k] = scalars[k];
    return r;
  };
  const Real each_one = 1 / static_cast<Real>(columns);
  const auto with_vectors = [&](const auto& vectors) ROOFTILE_INLINE {
    const Team team(scratch, p.dtype);
    for (std::int64_t block = begin; block < end; block = sums ? block + 1 : end) {
      GradientsOf<Team, Program> gradients{};
      for (int g = 0; g < Problem::kGradients; ++g)
        gradients.sums[g] = team.columns(Row<Real>{p.template block_sums<Real>(block, g), columns});
      for (int g = 0; g < Problem::kScalarGradients; ++g)
        gradients.scalars[g] = p.scalar_gradients[g] ? p.template team_sums<Real>(g) + block : nullptr;
      constexpr bool kKeeps =
          kAccess != Access::strided && (kAdds || (sizeof(T) < sizeof(float) && kWidensOnce<Program>));
      const std::int64_t from = first_of(block), to = first_of(sums ? block + 1 : end);
      if constexpr (kOnlyWrites<Program>)
        write_rows<T>(program, team, from, to, row_at, vectors, gradients);
      else
        run_rows<kAdds, kKeeps, T>(program, team, from, to, row_at, vectors, each_one, gradients);
      gradients.end_block();
    }
  };
  if constexpr (kAccess == Access::strided) {
    with_vectors(vector_list<AnyVector<T>, Problem::kVectors>([&](int v) ROOFTILE_INLINE {
      return as_it_is<T>(p.vectors[v], p.vector_dtype, columns, absent_of(program, v));
    }));
  } else {
    with_vectors(vector_list<FloatVector, Problem::kVectors>([&](int v) ROOFTILE_INLINE {
      return floats_of(scratch, p.vectors[v], p.vector_dtype, columns, absent_of(program, v));
    }));
  }
  if (kAccess == Access::streaming) stream_fence();
}

/// A part of the columns: the sums of all blocks, added in the blocks' order.
template <class Team, class T>
ROOFTILE_TILE void add_blocks(Team team, Row<const typename Team::Real> first, std::int64_t blocks,
                              std::int64_t stride, Row<T> out) {
  team.each(out.size, [&](auto chunk) ROOFTILE_INLINE {
    typename Team::Tile total = team.fill(0);
    for (std::int64_t block = 0; block < blocks; ++block)
      total += team.load(Row<const typename Team::Real>{first.data + block * stride, first.size}, chunk);
    team.store(out, chunk, total);
  });
}
template <class Real, class Problem>
void add_blocks(const CpuLaunch& launch, const Problem& p, int gradient) {
  constexpr std::int64_t kPart = 512;  // columns of one program
  const ColumnVector& to = p.gradients[gradient];
  if (!to.data) return;
  const std::int64_t columns = p.rows.columns, blocks = p.blocks;
  const Row<const Real> first{p.template block_sums<Real>(0, gradient), columns};
  const std::int64_t stride = p.template block_sums<Real>(1, gradient) - first.data;
  const auto add = [&]<Access kAccess, class G>() {
    for_programs(launch, (columns + kPart - 1) / kPart, columns * blocks * std::int64_t(sizeof(Real)),
                 [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                   for (std::int64_t part = begin; part < end; ++part)
                     add_blocks(CpuTeam<Real, kAccess>(scratch, p.gradient_dtype),
                                first.part(part * kPart, kPart), blocks, stride,
                                vector_row<G>(to, columns).part(part * kPart, kPart));
                 });
  };
  if constexpr (std::is_same_v<Real, double>) {
    with_type<double, float>(p.gradient_dtype,
                             [&]<class G>() { add.template operator()<Access::strided, G>(); });
  } else {
    with_access(columns <= 1 || to.stride == 1, false, [&]<Access kAccess>() {
      with_row_type<kAccess>(p.gradient_dtype, [&]<class G>() { add.template operator()<kAccess, G>(); });
    });
  }
}

/// A scalar's gradient: the sums of all blocks.
template <class Real, class Problem>
void add_scalar(const Problem& p, int gradient) {
  if (!p.scalar_gradients[gradient]) return;
  Real total = 0;
  for (std::int64_t block = 0; block < p.blocks; ++block)
    total += p.template team_sums<Real>(gradient)[block];
  store_scalar(p.scalar_gradients[gradient], p.gradient_dtype, total);
}

/// Runs the program on every row. Real: what it computes in, float or double.
template <class Real = float, class Program>
Status for_row_program(const CpuLaunch& launch, const char*, const typename Program::Problem& p,
                       const Program& program) {
  using Problem = typename Program::Problem;
  constexpr RowCounts n = Problem::kCounts;
  const std::int64_t columns = p.rows.columns;
  bool plain = true;  // vectors that need no scratch
  for (int v = 0; v < n.vectors; ++v) plain = plain && plain_floats(p.vectors[v], p.vector_dtype, columns);
  int tensors = 0;
  for (int k = 0; k < n.inputs; ++k) tensors += p.data[k] != nullptr;
  for (int k = 0; k < n.outputs; ++k) tensors += p.data[Problem::kOutputs + k] != nullptr;
  const std::int64_t bytes = p.rows.rows * columns * bits(p.dtype) / 8 * tensors;
  const bool adds = Program::kAddsResidual && p.data[n.inputs - 1];
  const int kept = (adds || (p.dtype != DType::f32 && kWidensOnce<Program>) ? kRowInputs<Program> : 0) +
                   (plain ? 0 : n.vectors);
  // Rows that scratch does not hold, in whole tiles of at most 64 floats, are read again, in small pieces.
  const bool fits = kept == 0 || columns <= std::int64_t(kScratchBytes) / 4 / kept / 64 * 64;
  const bool sums = p.wants_gradients();
  with_rows<Real>(p.rows.dense() && fits, bytes > launch.streaming_bytes, p.dtype,
                  [&]<Access kAccess, class T>() {
                    const auto run = [&]<bool kAdds>() {
                      for_programs(launch, sums ? p.blocks : p.rows.rows, bytes,
                                   [&](ThreadScratch scratch, std::int64_t begin, std::int64_t end) {
                                     run_share<kAdds, T, kAccess>(program, p, scratch, begin, end);
                                   });
                    };
                    if constexpr (Program::kAddsResidual)
                      if (adds) return run.template operator()<true>();
                    run.template operator()<false>();
                  });
  for (int g = 0; g < n.gradients; ++g) add_blocks<Real>(launch, p, g);
  for (int g = 0; g < n.scalar_gradients; ++g) add_scalar<Real>(p, g);
  return {};
}

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
