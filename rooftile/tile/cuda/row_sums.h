#pragma once
// Row programs with column sums on a GPU: a block of rows is a team's, or that of a block's teams, and its
// sums stay in registers all the while. It follows from the shape alone which rows these are
// (rooftile/core/row_blocks.h).
#include "rooftile/tile/cuda/rows.h"

namespace rooftile::tile {
inline namespace cuda {

/// The sums of all gradients, of a team that holds rows in registers: of vectors by column, of scalars of all
/// that the team has. They are taken also where nobody wants them: a branch for each chunk costs more.
template <class Team, int n, int kScalars>
struct Gradients {
  static_assert(n > 0, "rooftile::tile: scalars have gradients beside vectors'");
  typename Team::Columns sums[n];
  typename Team::Accumulator scalars[kScalars + 1] = {};
  bool first = false;  ///< of teams that read rows again: the block's first row begins the sums
  bool there = true;   ///< RowOperands::there of this row

  ROOFTILE_TILE void add(int k, const Chunk& chunk, const typename Team::Tile& t) {
    if (Team::kHoldsRows || sums[k].sums.data) sums[k].add(chunk, t, first);
  }
  /// Adds a · b, fused.
  ROOFTILE_TILE void add_product(int k, const Chunk& chunk, const typename Team::Tile& a,
                                 const typename Team::Tile& b) {
    if (Team::kHoldsRows || sums[k].sums.data) sums[k].add_product(chunk, a, b, first);
  }
  ROOFTILE_TILE void add_to_scalar(int k, const Chunk& chunk, const typename Team::Tile& t) {
    if (there) scalars[k][chunk] += sums[0].team.only(chunk, t, 0);
  }
  /// `team`: which one of all. Those of a warp may have unequal numbers of rows.
  template <class Problem>
  ROOFTILE_TILE void write_scalars(const Problem& p, std::int64_t team) const {
    ROOFTILE_UNROLL for (int k = 0; k < kScalars; ++k) {
      float* all = p.team_sums(k);
      const float sum = sums[0].team.sum_of_team(scalars[k]);
      sums[0].team.store_scalars(all ? all + team : nullptr, sum, static_cast<float*>(nullptr), 0);
    }
  }
  ROOFTILE_TILE void write() const { ROOFTILE_UNROLL for (int k = 0; k < n; ++k) sums[k].write(); }
  ROOFTILE_TILE void write_together(int teams) const {
    ROOFTILE_UNROLL for (int k = 0; k < n; ++k) sums[k].write_together(teams);
  }
  ROOFTILE_TILE void write_of_warps(int teams) const {
    ROOFTILE_UNROLL for (int k = 0; k < n; ++k) sums[k].write_of_warps(teams);
  }
};

/// Whether rows that fill their team have a kernel of their own. layer_norm_backward bf16 8192x4096 takes 62
/// µs with it, without 64, f32 4096x16384 205 and 214; rms_norm_backward nothing.
template <class Program>
inline constexpr bool kFullRows = requires {
  Program::kFullRows;
};

/// A program with column sums, as for_rows() wants it.
template <class Program_, class T, bool kPlain>
struct SumsKernel {
  using Program = Program_;
  using Problem = typename Program::Problem;
  static constexpr RowCounts kCounts = Problem::kCounts;
  static constexpr int kInputs = kCounts.inputs, kVectors = Problem::kVectors,
                       kGradients = Problem::kGradients, kScalars = Problem::kScalars,
                       kStatistics = kCounts.statistics_in;
  static_assert(!Program::kAddsResidual && kCounts.outputs == 1 && kCounts.statistics_out == 0);
  static constexpr RowTuning kTuning = row_tuning({kInputs, kVectors, int(sizeof(T)), true});
  static constexpr int kHeldThreads = kTuning.max_threads;
  static constexpr Clusters kClusters = kTuning.clusters;
  /// A row that begins anywhere comes in words that hold neighbours' elements, which are written where they
  /// lie only after a sum that all wait for. Without one such rows do not stream.
  static constexpr Streaming kStreaming = {kTuning.streaming.from, kTuning.streaming.stages,
                                           kTuning.streaming.resident,
                                           kOnlyWrites<Program> ? Scope::any : kTuning.streaming.anywhere};
  static constexpr bool full(Scope) { return kPlain && kFullRows<Program>; }
  static constexpr int least_threads(std::int64_t columns) { return kTuning.threads_of(columns); }
  static constexpr int least_blocks(Scope scope) { return kTuning.min_blocks[static_cast<int>(scope)]; }
  static constexpr int kept(Scope) { return kPlain ? kTuning.stages : 0; }
  static constexpr Late late(const RowShape&) { return kTuning.late; }
  Problem p;
  Program program;
  float each_one;
  std::int64_t programs;  // teams that have rows
  int teams;              // of them in a block, which have their sums together

  /// What rows have beside their elements: each one's statistics, and the scalars.
  struct Beside {
    const float* statistics[kStatistics + 1];
    float scalars[kScalars + 1];
  };
  ROOFTILE_TILE Beside beside() const {
    Beside all{};
    ROOFTILE_UNROLL for (int k = 0; k < kScalars; ++k) all.scalars[k] = scalar_of<T>(p, k);
    return all;
  }
  template <class Team>
  using Gradients = cuda::Gradients<Team, kGradients, Problem::kScalarGradients>;
  /// Where the sums of a block of rows go, of the columns that this block of threads has.
  ROOFTILE_TILE Row<float> sums_of(std::int64_t block, int gradient, const RowRange& range) const {
    float* all = p.block_sums(block, gradient);
    return {all ? all + range.first : nullptr, range.size};
  }
  /// A block's sums, all of them begun; nowhere to be written yet if `later`.
  template <class Team>
  ROOFTILE_TILE Gradients<Team> gradients_of(const Team& team, std::int64_t block, const RowRange& range,
                                             bool later = false) const {
    return gradients_of(team, block, range, later, std::make_integer_sequence<int, kGradients>());
  }
  template <class Team, int... g>
  ROOFTILE_TILE Gradients<Team> gradients_of(const Team& team, std::int64_t block, const RowRange& range,
                                             bool later, std::integer_sequence<int, g...>) const {
    return {{team.columns(later ? Row<float>{} : sums_of(block, g, range))...}};
  }
  template <class Team>
  ROOFTILE_TILE RowOperands<T, kCounts> row_of(const RowRange& range, std::int64_t i,
                                               const Beside& beside) const {
    RowOperands<T, kCounts> r;
    ROOFTILE_UNROLL for (int k = 0; k < kInputs; ++k) {
      r.in[k] = input_of<T, Team>(p, k, range, i);
      r.in[k].stage = k;
    }
    r.out[0] = output_of<T, Team>(p, Problem::kOutputs, range, i);
    ROOFTILE_UNROLL for (int k = 0; k < kStatistics; ++k) r.statistics[k] = *beside.statistics[k];
    ROOFTILE_UNROLL for (int k = 0; k < kScalars; ++k) r.scalars[k] = beside.scalars[k];
    return r;
  }
  /// `range`: one block of rows.
  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const RowRange& range) const {
#if defined(ROOFTILE_HAS_SM90)
    // The sums of shorter rows are not ready that much sooner (layer_norm_backward f32 524288x100: 190 µs,
    // with this 193).
    if (p.rows.columns > kWarpColumns && p.wants_gradients()) rooftile::cuda::let_next_start();
#endif
    // There is one. But without the loop other teams' kernels take longer (layer_norm_backward f32 8192x4096,
    // H200: 109 µs, 112).
    const auto all = [&](const auto& vectors) {
      if constexpr (Team::kSharesBlock)
        block(team, range, range.row, vectors);
      else
        for (std::int64_t i = 0; i < range.count; ++i)
          block(team, range, range.row + i * range.step, vectors);
    };
    if constexpr (Team::kVectors > 0) {
      const auto vectors = vector_list<RingVector<T, Team>, kVectors>(
          [&](int v) { return RingVector<T, Team>(global_vector<T, kPlain>(program, p, v, range), v); });
      ROOFTILE_UNROLL for (int v = 0; v < kVectors; ++v) vectors.v[v].ask_once(team);
      all(vectors);
    } else if constexpr (Team::kHoldsNext || (Team::kStreams && !in_words(Team::kReads))) {
      using V = RegisterVector<Team>;
      all(vector_list<V, kVectors>(
          [&](int v) { return V(team, global_vector<T, kPlain>(program, p, v, range), range.size); }));
    } else {
      using V = decltype(global_vector<T, kPlain>(program, p, 0, range));
      all(vector_list<V, kVectors>([&](int v) { return global_vector<T, kPlain>(program, p, v, range); }));
    }
  }
  template <class Team, class Vectors>
  ROOFTILE_TILE void block(const Team& team, const RowRange& range, std::int64_t number,
                           const Vectors& vectors) const {
    constexpr bool kTogether =
        Team::kHoldsRows && Team::kScope != Scope::block && Team::kScope != Scope::cluster && !Team::kStreams;
    const bool shared = kTogether && teams > 1;
    const std::int64_t together =
        shared || Team::kSharesBlock ? programs : gpu_row_turns(programs, p.rows.columns, p.dtype);
    const std::int64_t turn = number % together, own = number - turn;
    const std::int64_t begin = row_block_begin(p.rows.rows, programs, own);
    const std::int64_t end = row_block_begin(p.rows.rows, programs, own + together);
    // All teams of a warp take as many rows as the first of them.
    const std::int64_t first = shared ? turn / teams * teams : turn;
    const RowRange rows{begin + turn, together, (end - begin - first + together - 1) / together, range.first,
                        range.size};
    Beside all = beside();
    const auto row_at = [&](std::int64_t i) {
      const bool there = !shared || rows.row + i * rows.step < end;
      RowRange at = rows;
      if (!there) at.row = at.step = 0;  // any row that there is
      ROOFTILE_UNROLL for (int k = 0; k < kStatistics; ++k) {
        const float* value = value_of<Team>(p, Problem::kStatisticsIn + k, at, i);
        if constexpr (Team::kStreams && Team::kScope != Scope::warp)
          value = per_thread(value);  // H200: layer_norm_backward bf16 2048x32768 138 µs, so 135
        all.statistics[k] = value;
      }
      auto r = row_of<Team>(at, i, all);
      if (!there) r.leave_out();
      return r;
    };
    if constexpr (!Team::kHoldsRows) {
      auto gradients = gradients_of(team, number, range);
      for (std::int64_t i = 0; i < rows.count; ++i) {
        const auto row = row_at(i);
        gradients.first = i == 0;
        const auto in = [&](const Chunk& chunk) {
          Tiles<typename Team::Tile, kInputs> tiles;
          ROOFTILE_UNROLL for (int k = 0; k < kInputs; ++k) tiles.v[k] = team.load(row.in[k], chunk);
          return tiles;
        };
        run_row<false, T>(program, team, row, in, vectors, gradients, each_one);
      }
      gradients.write_scalars(p, number);
    } else {
      // Of rows that one stride covers: five products fewer for each.
      const auto step = [&](int operand) { return offset_for<Team>(p.rows, operand, together); };
      const auto after = [&](RowOperands<T, kCounts> r, auto i) {
        if constexpr (!Team::kStreams) return row_at(i);
        const bool last = i + 1 == static_cast<decltype(i)>(rows.count);
        ROOFTILE_UNROLL for (int k = 0; k < kInputs; ++k) {
          r.in[k].data += step(k);
          if (last) r.in[k].ahead = 0;
        }
        r.out[0].data += step(Problem::kOutputs);
        ROOFTILE_UNROLL for (int k = 0; k < kStatistics; ++k) r.statistics[k] =
            *(all.statistics[k] += step(Problem::kStatisticsIn + k));
        return r;
      };
      // Of rows that stream there are fewer than 2^31.
      using Count = std::conditional_t<Team::kStreams, int, std::int64_t>;
      const std::int64_t to = Team::kSharesBlock ? std::int64_t{blockIdx.x}
                              : shared           ? number / teams
                                                 : number;
      constexpr bool kLater = Team::kSharesBlock;  // where registers are scarce
      auto gradients = gradients_of(team, to, range, kLater);
      run_held(team, static_cast<Count>(rows.count), row_at(0), after, vectors, gradients);
      gradients.write_scalars(p, number);
      if constexpr (kTogether)
        if (shared) return gradients.write_together(teams);
      if constexpr (kLater) {
        ROOFTILE_UNROLL for (int g = 0; g < kGradients; ++g) gradients.sums[g].sums = sums_of(to, g, range);
        gradients.write_of_warps(teams);
      } else {
        gradients.write();
      }
    }
  }
  /// `count` rows of a team that holds them. `after(row, i)` is row i, the one after `row`; `next`: the first
  /// one, whose statistics are in flight.
  template <class Team, class Count, class After, class Vectors>
  ROOFTILE_TILE void run_held(const Team& team, Count count, RowOperands<T, kCounts> next, After after,
                              const Vectors& vectors, Gradients<Team>& gradients) const {
    ROOFTILE_UNROLL for (int k = 0; k < kInputs; ++k) team.ask(next.in[k]);
    team.ask_no_vectors();
    HeldRows<Team, T, kInputs> coming;
    const auto hold_next = [&] {
      const Team its = team.of_row(next.there);
      ROOFTILE_UNROLL for (int k = 0; k < kInputs; ++k) coming.held[k] = its.hold(next.in[k], 0);
    };
    if constexpr (Team::kHoldsNext) hold_next();
    for (Count i = 0; i < count; ++i) {
      const RowOperands<T, kCounts> row = next;
      if constexpr (!Team::kHoldsNext) hold_next();
      const auto in = coming;
      if (i + 1 < count) {
        next = after(row, i + 1);
        if constexpr (Team::kHoldsNext) hold_next();
      }
      gradients.there = row.there;
      run_row<false, T>(program, team.of_row(row.there), row, in, vectors, gradients, each_one);
    }
  }

  /// The same of rows that are staged, of which a block's teams have one each at a time.
  template <class Team>
  struct Staged {
    const SumsKernel& kernel;
    const Team& team;
    VectorList<RegisterVector<Team>, kVectors> vectors;
    Gradients<Team> gradients;
    Beside all;
    float statistics[kStatistics + 1];  // of the row that comes next
    std::int64_t number;                // of this team

    ROOFTILE_TILE Staged(const SumsKernel& its_kernel, const Team& its, const RowRange& range,
                         const Staging& staging, std::int64_t block)
        : kernel(its_kernel),
          team(its),
          vectors(vector_list<RegisterVector<Team>, kVectors>([&](int v) {
            return RegisterVector<Team>(its, StagedVector(staging, kCounts.operands() + v), range.size);
          })),
          gradients(its_kernel.gradients_of(its, block, range)),
          all(its_kernel.beside()),
          number(range.row) {
      ask(range);
    }
    /// For the row's statistics; 0 past the last one, whose elements are so, too.
    ROOFTILE_TILE void ask(const RowRange& range) {
      ROOFTILE_UNROLL for (int k = 0; k < kStatistics; ++k) {
        const float* from = value_of<Team>(kernel.p, Problem::kStatisticsIn + k, range, 0);
        statistics[k] = from ? *from : 0;
      }
    }
    /// `next`: what this team has of the next group.
    ROOFTILE_TILE void operator()(const RowRange& range, const RowRange& next) {
      Beside its = all;
      ROOFTILE_UNROLL for (int k = 0; k < kStatistics; ++k) its.statistics[k] = &statistics[k];
      auto row = kernel.row_of<Team>(range, 0, its);
      if (kScalars > 0 && range.row >= kernel.p.rows.rows) row.leave_out();
      gradients.there = row.there;
      ask(next);
      HeldRows<Team, T, kInputs> in;
      ROOFTILE_UNROLL for (int k = 0; k < kInputs; ++k) in.held[k] = team.hold(row.in[k], 0);
      in.widen(team, row.in[0].size);
      run_row<false, T>(kernel.program, team, row, in, vectors, gradients, kernel.each_one);
    }
    ROOFTILE_TILE void finish() const {
      gradients.write_scalars(kernel.p, number);
      gradients.write_together(kernel.teams);
    }
  };
  SharedLayout shared_layout() const { return teams == 1 ? SharedLayout{} : staged_layout(p, false); }
  template <class Rows, class Vectors>
  ROOFTILE_TILE void each_staged(const Rows& rows, const Vectors& vectors) const {
    each_staged_operand<T>(program, p, rows, vectors);
  }
  /// Only aligned rows have kernels of their own.
  template <Access kAccess, Scope kScope>
  auto serving() const {
    return SumsKernel < Program, T, kPlain && in_words(kAccess) > {p, program, each_one, programs, teams};
  }
  template <Access kAccess, Scope kScope>
  auto streaming() const {
    return serving<kAccess, kScope>();
  }
};

/// Threads of a block that adds sums. Its columns are neighbours: a line of memory, or of few columns a
/// sector, so that more blocks come to work (layer_norm_backward bf16 2097152x30, H200: add_blocks alone 32
/// µs with 32 columns).
inline constexpr int kAddThreads = 1024, kManyColumns = 2048;

/// A gradient: its blocks' sums, and where it goes.
template <class G>
struct Gradient {
  const float* sums;
  G* to;
  std::int64_t stride;
};
template <class G, int n>
struct GradientList {
  Gradient<G> all[n];
};
/// The sums of all blocks: groups of neighbours in the blocks' order, then groups in pairs. `teams`: rows of
/// a block, which are added first. After `vectors` gradients come scalars', of `scalar_teams` sums each, one
/// column of a thread for each group.
template <class G, int n, bool kScalars>
__global__ void __launch_bounds__(kAddThreads)
    add_blocks(const __grid_constant__ GradientList<G, n> gradients, std::int64_t blocks, int teams,
               std::int64_t stride, std::int64_t columns, [[maybe_unused]] unsigned vectors,
               [[maybe_unused]] std::int64_t scalar_teams) {
  ROOFTILE_SHARED(parts, float[kAddThreads]);
#if defined(ROOFTILE_HAS_SM90)
  rooftile::cuda::wait_for_previous();
#endif
  Gradient<G> gradient = gradients.all[0];
  ROOFTILE_UNROLL for (int g = 1; g < n; ++g) if (blockIdx.y == static_cast<unsigned>(g)) gradient =
      gradients.all[g];
  int width = static_cast<int>(blockDim.x), groups = static_cast<int>(blockDim.y);
  int group = static_cast<int>(threadIdx.y), in_group = static_cast<int>(threadIdx.x);
  const int mine = group * width + in_group;
  if constexpr (kScalars)
    if (blockIdx.y >= vectors) {
      groups *= width;
      group = mine;
      in_group = 0;
      width = teams = 1;
      stride = columns = 1;
      blocks = scalar_teams;
    }
  const std::int64_t column = std::int64_t{blockIdx.x} * width + in_group;
  const std::int64_t begin = row_block_begin(blocks, groups, group);
  const std::int64_t end = row_block_begin(blocks, groups, group + 1);
  float sum = 0;
  if (column < columns && teams == 1) {
    ROOFTILE_UNROLL_BY(8)
    for (std::int64_t b = begin; b < end; ++b) sum += gradient.sums[b * stride + column];
  } else if (column < columns) {
    for (std::int64_t b = begin; b < end; ++b) {
      const float* const team = gradient.sums + b * teams * stride + column;
      float block = *team;
      for (int t = 1; t < teams; ++t) block += team[t * stride];
      sum += block;
    }
  }
  parts[mine] = sum;
  for (int half = groups / 2; half > 0; half /= 2) {
    __syncthreads();
    if (group < half) parts[mine] = sum += parts[mine + half * width];
  }
  if (group == 0 && column < columns) gradient.to[column * gradient.stride] = narrow<G>(sum);
}

/// The gradients that are there in one launch. Each of `blocks` blocks has `teams` rows of sums.
template <class Problem>
Status launch_add_blocks(const CudaLaunch& launch, const char* name, const Problem& p, std::int64_t blocks,
                         int teams) {
  const int width = p.rows.columns < kManyColumns ? 8 : 32;
  // Eight sums to a thread at least, all in flight at once.
  const auto groups = static_cast<unsigned>(std::bit_floor(
      static_cast<std::uint64_t>(std::clamp<std::int64_t>(blocks / 8, 1, kAddThreads / width))));
  return with_type<float, f16, bf16>(p.gradient_dtype, [&]<class G>() {
    const auto parts = static_cast<unsigned>((p.rows.columns + width - 1) / width);
    constexpr int kAll = Problem::kGradients + Problem::kScalarGradients;
    GradientList<G, kAll> list{};
    unsigned count = 0;
    std::int64_t stride = 0;
    for (int g = 0; g < Problem::kGradients; ++g) {
      const ColumnVector& to = p.gradients[g];
      if (!to.data) continue;
      list.all[count++] = {p.block_sums(0, g), static_cast<G*>(const_cast<void*>(to.data)), to.stride};
      stride = p.block_sums(1, g) - p.block_sums(0, g);
    }
    const unsigned vectors = count;
    for (int g = 0; g < Problem::kScalarGradients; ++g)
      if (p.scalar_gradients[g])
        list.all[count++] = {p.team_sums(g), static_cast<G*>(p.scalar_gradients[g]), 1};
    return rooftile::cuda::launch(
        launch, name,
        {.blocks = {std::max(parts, 1u), count},
         .threads = {static_cast<unsigned>(width), groups},
         .early = has_clusters(launch) && p.rows.columns > kWarpColumns && blocks > 0},
        add_blocks<G, kAll, (Problem::kScalarGradients > 0)>, list, blocks, teams, stride, p.rows.columns,
        vectors, p.teams);
  });
}

template <class Program, class T, bool kPlain>
Status run_sums(const CudaLaunch& launch, const char* name, const typename Program::Problem& p,
                const Program& program) {
  const std::int64_t columns = p.rows.columns, programs = p.teams;
  const int teams = gpu_row_block_teams(p.rows.rows, columns, p.dtype);
  const bool in_warps = columns <= kWarpColumns;
  using Kernel = SumsKernel<Program, T, kPlain>;
  constexpr int kLanes = 16 / int(sizeof(T)), kChunks = Kernel::kTuning.elements / kLanes;
  const RowAlignment alignment = problem_alignment<T>(p);
  // Teams of several warps then stream, whatever the architecture.
  using Team =
      CudaTeam<float, kLanes, kChunks, Access::aligned, Scope::warps, Kernel::kInputs, Kernel::kVectors>;
  static_assert(all_shared_bytes<Team>({kLanes * 64, 1, 1, 0}) <= shared_limits(86).block);
  const bool together = in_warps || (alignment == RowAlignment::vectorized && one_stride(p.rows));
  const Kernel kernel{p, program, 1 / static_cast<float>(columns), programs, together ? teams : 1};
  const Status status = for_rows<kLanes, kChunks>(launch, name, programs, alignment, kernel);
  if (!status || !p.wants_gradients()) return status;
  return launch_add_blocks(launch, name, p, programs / teams, together ? 1 : teams);
}

/// Runs the program on every row.
template <class Real = float, class Program>
Status for_row_program(const CudaLaunch& launch, const char* name, const typename Program::Problem& p,
                       const Program& program) {
  using Problem = typename Program::Problem;
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
    constexpr bool kMixes = Problem::kVectors > 0 && sizeof(T) < sizeof(float);  // vectors may be f32
    bool plain = !kMixes || p.vector_dtype != DType::f32;
    if (Program::kAddsResidual)
      plain = plain && !p.data[Problem::kInputs - 1] && !p.data[Problem::kStatisticsOut - 1];
    const auto run = [&]<bool kPlain>() {
      if constexpr (Problem::kHasGradients) {
        return run_sums<Program, T, kPlain>(launch, name, p, program);
      } else {
        using Kernel = RowsKernel<Program, T, kPlain>;
        constexpr int kLanes = 16 / int(sizeof(T)), kChunks = Kernel::kTuning.elements / kLanes;
        return for_rows<kLanes, kChunks>(launch, name, p.rows.rows, problem_alignment<T>(p),
                                         Kernel{p, program, 1 / static_cast<float>(p.rows.columns)});
      }
    };
    if constexpr (Program::kAddsResidual || kMixes)
      if (!plain) return run.template operator()<false>();
    return run.template operator()<true>();
  });
}

}  // namespace cuda
}  // namespace rooftile::tile
