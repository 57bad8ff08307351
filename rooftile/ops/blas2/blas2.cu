// On a GPU a warp adds up a chunk of a row. Down contiguous columns a warp's lanes are 32 rows, and each
// thread has a few of the sums that a row's lanes would have: the same terms in the same order. Chunks are
// joined in their order, in f64.
#include <algorithm>

#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/blas2/blas2.problem.h"
#include "rooftile/ops/blas2/blas2.tile.h"
#include "rooftile/tile/cuda/elements.h"

namespace rooftile {
namespace {
using namespace tile;

template <class T>
using RealOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// Columns of a chunk; chunks that a block adds up before it joins them.
constexpr std::int64_t kChunk = 1024;
constexpr int kRound = 16;
/// Rows of one chunk that a team loads together (1048576 x 64 f32, H200, of a copy: one 0.26, four 0.86), and
/// rows of several chunks, of which it loads one chunk at a time. Each element of x is widened once for them.
constexpr int kRowsTogether = 4, kTogether = 2, kBatch = 4;
/// The same of rows that a team covers in one step, which need no sums beside each other (1048576 x 64 bf16,
/// H200: 75.7 µs by four, 46.7 by eight).
constexpr int kStepRows = 8;
/// A row is cut into at most so many spans of chunks, of which a block takes one where rows are few.
constexpr std::int64_t kMaxSpans = 512;
constexpr int kRowThreads = 256, kMinTeam = 4, kMaxRows = kRowThreads / kMinTeam;  // of a block, by rows
constexpr int kColumnWarps = 8;  // of a group, by columns; a block has two
constexpr int kMaxGroups = 2;

/// Which rows a launch has, and how they are cut.
struct Spans {
  std::int64_t first, end;     ///< rows
  std::int64_t chunks, each;   ///< of a row, of a span
  std::int64_t count, shares;  ///< spans of a row, and blocks that share them: all of them, or one
  double* sums;                ///< of each span, where a span has a block of its own; else null
};

template <class T>
ROOFTILE_TILE void finish_row(const GemvProblem& p, std::int64_t row, double sum) {
  using Real = RealOf<T>;
  const Real alpha = static_cast<Real>(p.alpha), total = static_cast<Real>(sum);
  Real y = alpha * total;
  if (p.c)
    y = fused(total, alpha,
              static_cast<Real>(p.beta) * widen<Real>(static_cast<const T*>(p.c)[row * p.c_stride]));
  static_cast<T*>(p.y)[row * p.y_stride] = narrow<T>(y);
}

/// Goes through a block's spans, kRound chunks at a time: add(first chunk, count) leaves their sums in
/// `sums[row of the block][…]`, which thread r then joins for row `first` + r.
template <class T, int kRows, class Add>
ROOFTILE_TILE void join_chunks(const GemvProblem& p, const Spans& spans, double (&sums)[kRows][kRound + 1],
                               std::int64_t first, int rows, std::int64_t share, const Add& add) {
  const int thread = static_cast<int>(threadIdx.x);
  const bool mine = thread < rows && first + thread < spans.end;
  const std::int64_t begin = spans.shares == 1 ? 0 : share, end = spans.shares == 1 ? spans.count : share + 1;
  double all = 0;
  for (std::int64_t span = begin; span < end; ++span) {
    const std::int64_t stop = span * spans.each + spans.each,
                       last = stop < spans.chunks ? stop : spans.chunks;
    double total = 0;
    for (std::int64_t chunk = span * spans.each; chunk < last; chunk += kRound) {
      const int count = last - chunk < kRound ? static_cast<int>(last - chunk) : kRound;
      add(chunk, count);
      __syncthreads();
      if (mine)
        for (int k = 0; k < count; ++k) total += sums[thread][k];
      __syncthreads();  // before the next ones are written
    }
    all += total;
  }
  if (!mine) return;
  if (spans.sums)
    spans.sums[(first + thread - spans.first) * spans.count + share] = all;
  else
    finish_row<T>(p, first + thread, all);
}

/// How a block's threads are shared: teams of `threads` of a warp, of which `warps` of a whole warp share a
/// row, each with some of its chunks. Bits do not depend on it: a team of less than a warp has a lane for
/// each element, and where the rest of a warp would have zeros it has no lanes.
struct RowTeams {
  int threads, warps;
  constexpr int rows() const { return kRowThreads / (threads * warps); }
};

/// kernels::row_dot of several rows of one size at once; done(t, its sum). Same bits. While kSteps steps of
/// `threads` threads are left, all their loads come first: between the steps of each() there are branches,
/// and the loads of one step would wait for the one before.
template <int kSteps, class Team, class T, int K, class Done>
ROOFTILE_TILE void row_dots(const Team& team, int threads, const Row<const T> (&a)[K], const Row<const T>& x,
                            const Done& done) {
  constexpr int N = Team::kLanes;
  using Tile = decltype(team.fill(0));
  Tile sums[K];
  ROOFTILE_UNROLL for (auto& its : sums) its = team.fill(0);
  const int step = threads * N, mine = (static_cast<int>(threadIdx.x) & (threads - 1)) * N;
  std::int64_t first = 0;
  if constexpr (in_words(Team::kReads) && kSteps > 1)
    for (; first + kSteps * step <= x.size; first += kSteps * step) {
      Tile left[kSteps][K], right[kSteps];
      ROOFTILE_UNROLL for (int b = 0; b < kSteps; ++b) {
        const Chunk chunk{0, first + b * step + mine, N};
        right[b] = team.load(x, chunk);
        ROOFTILE_UNROLL for (int t = 0; t < K; ++t) left[b][t] = team.load(a[t], chunk);
      }
      ROOFTILE_UNROLL for (int b = 0; b < kSteps; ++b) ROOFTILE_UNROLL for (int t = 0; t < K; ++t) sums[t] =
          fma(left[b][t], right[b], sums[t]);
    }
  Row<const T> rest[K];
  ROOFTILE_UNROLL for (int t = 0; t < K; ++t) rest[t] = a[t].part(first, x.size - first);
  const Row<const T> x_rest = x.part(first, x.size - first);
  team.each(x_rest.size, [&](const auto& chunk) ROOFTILE_INLINE {
    const Tile right = team.load(x_rest, chunk);
    ROOFTILE_UNROLL for (int t = 0; t < K; ++t) sums[t] = fma(team.load(rest[t], chunk), right, sums[t]);
  });
  ROOFTILE_UNROLL for (int t = 0; t < K; ++t) done(t, team.sum(sums[t]));
}

/// The same of rows that one step covers: each is added up alone, when all have been asked for.
template <class Team, class T, int K, class Done>
ROOFTILE_TILE void row_dots_of_a_step(const Team& team, int threads, const Row<const T> (&a)[K],
                                      const Row<const T>& x, const Done& done) {
  using Tile = decltype(team.fill(0));
  const int mine = (static_cast<int>(threadIdx.x) & (threads - 1)) * Team::kLanes;
  const Chunk chunk{0, mine, x.size - mine};
  Tile left[K];
  const Tile right = team.load(x, chunk);
  ROOFTILE_UNROLL for (int t = 0; t < K; ++t) left[t] = team.load(a[t], chunk);
  ROOFTILE_UNROLL for (int t = 0; t < K; ++t) done(t, team.sum(fma(left[t], right, team.fill(0))));
}

template <class T, Access kAccess>
using RowTeam = CudaTeam<RealOf<T>, 16 / int(sizeof(T)), 0, kAccess, Scope::warp>;

/// Rows of one chunk: a team has kRows of them, and x once for all. Each row's y is written by a lane of its
/// own.
template <class T, Access kAccess, int kRows>
__global__ void __launch_bounds__(kRowThreads, 3)
    gemv_short_rows(const __grid_constant__ GemvProblem p, const __grid_constant__ Spans spans,
                    const __grid_constant__ RowTeams teams) {
  using Real = RealOf<T>;
  Rounds rounds;
  const RowTeam<T, kAccess> team(teams.threads, rounds);
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t first =
      spans.first + (std::int64_t{blockIdx.x} * teams.rows() + thread / teams.threads) * kRows;
  Row<const T> a[kRows];
  ROOFTILE_UNROLL for (int r = 0; r < kRows; ++r) {
    const std::int64_t row = first + r < spans.end ? first + r : spans.end - 1;
    a[r] = {static_cast<const T*>(p.a) + row * p.a_row, p.n, p.a_column};
  }
  const Row<const T> x{static_cast<const T*>(p.x), p.n, p.x_stride};
  const auto done = [&](int r, Real sum) ROOFTILE_INLINE {
    if (thread % teams.threads == r % teams.threads && first + r < spans.end)
      finish_row<T>(p, first + r, static_cast<double>(sum + Real(0)));
  };
  if constexpr (kRows == kStepRows)
    row_dots_of_a_step(team, teams.threads, a, x, done);
  else
    row_dots<1>(team, teams.threads, a, x, done);
}

/// Rows of several chunks. 16 warps of 104 registers each have 8 words of A in flight; 32 of 64 had one
/// (16384 x 4096 bf16, H200, of a copy: 0.61).
template <class T, Access kAccess>
__global__ void __launch_bounds__(kRowThreads, 2)
    gemv_rows(const __grid_constant__ GemvProblem p, const __grid_constant__ Spans spans,
              const __grid_constant__ RowTeams teams) {
  using Real = RealOf<T>;
  ROOFTILE_SHARED(sums, double[kMaxRows][kRound + 1]);
  Rounds rounds;
  const RowTeam<T, kAccess> team(teams.threads, rounds);
  const int thread = static_cast<int>(threadIdx.x), its = thread / (teams.threads * teams.warps) * kTogether,
            rows = teams.rows() * kTogether;
  const std::int64_t first = spans.first + blockIdx.x / spans.shares * rows;
  Row<const T> a[kTogether];
  const Row<const T> x{static_cast<const T*>(p.x), p.n, p.x_stride};
  // All teams of a warp come to its shuffles: past the end the last row once more, for nobody.
  ROOFTILE_UNROLL for (int t = 0; t < kTogether; ++t) {
    const std::int64_t row = first + its + t < spans.end ? first + its + t : spans.end - 1;
    a[t] = {static_cast<const T*>(p.a) + row * p.a_row, p.n, p.a_column};
  }
  join_chunks<T>(p, spans, sums, first, rows, blockIdx.x % spans.shares, [&](std::int64_t chunk, int count) {
    for (int k = thread / teams.threads % teams.warps; k < count; k += teams.warps) {
      Row<const T> parts[kTogether];
      ROOFTILE_UNROLL for (int t = 0; t < kTogether; ++t) parts[t] = a[t].part((chunk + k) * kChunk, kChunk);
      row_dots<kBatch>(team, teams.threads, parts, x.part((chunk + k) * kChunk, kChunk),
                       [&](int t, Real sum) ROOFTILE_INLINE {
                         if (thread % teams.threads == 0)
                           sums[its + t][k] = static_cast<double>(sum + Real(0));  // -0 becomes +0
                       });
    }
  });
}

// [gemv_columns]
/// A block has 32 rows, a lane each. Its warps share the 32·N sums that a row has by rows: warp w those of
/// lanes 4w to 4w + 3.
template <class T>
__global__ void __launch_bounds__(kMaxGroups* kColumnWarps* kWarp)
    gemv_columns(const __grid_constant__ GemvProblem p, const __grid_constant__ Spans spans) {
  using Real = RealOf<T>;
  constexpr int N = 16 / int(sizeof(T)), kLanesEach = kWarp / kColumnWarps, kSums = kLanesEach * N;
  ROOFTILE_SHARED(sums, double[kWarp][kRound + 1]);
  ROOFTILE_SHARED(turned, Real[kMaxGroups][kWarp][kWarp + 1]);
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp,
            group = warp / kColumnWarps, part = warp % kColumnWarps,
            groups = static_cast<int>(blockDim.x) / (kColumnWarps * kWarp);
  const std::int64_t first = spans.first + blockIdx.x / spans.shares * kWarp, row = first + lane;
  const T* const a = static_cast<const T*>(p.a) + row * p.a_row;
  const T* const x = static_cast<const T*>(p.x);
  join_chunks<T>(p, spans, sums, first, kWarp, blockIdx.x % spans.shares, [&](std::int64_t chunk, int count) {
    for (int k = group; k - group < count; k += groups) {
      Real its[kSums];
      ROOFTILE_UNROLL for (int i = 0; i < kSums; ++i) its[i] = 0;
      const std::int64_t at = (chunk + k) * kChunk + part * kSums, rest = (chunk + k + 1) * kChunk;
      const std::int64_t end = k < count && row < spans.end ? (rest < p.n ? rest : p.n) : 0;
      ROOFTILE_UNROLL_BY(1) for (std::int64_t j = at; j < end; j += kWarp * N) {
        ROOFTILE_UNROLL for (int i = 0; i < kSums; ++i) {
          if (j + i < end)
            its[i] =
                fused(widen<Real>(a[(j + i) * p.a_column]), widen<Real>(x[(j + i) * p.x_stride]), its[i]);
        }
      }
      // A lane's N sums by halves, as a team folds them; then all lanes', which come together in one thread.
      ROOFTILE_UNROLL for (int l = 0; l < kLanesEach; ++l) {
        ROOFTILE_UNROLL for (int span = N / 2; span > 0; span /= 2) {
          ROOFTILE_UNROLL for (int i = 0; i < span; ++i) its[l * N + i] += its[l * N + i + span];
        }
        turned[group][part * kLanesEach + l][lane] = its[l * N];
      }
      __syncthreads();
      if (part == 0 && k < count) {
        Real all[kWarp];
        ROOFTILE_UNROLL for (int l = 0; l < kWarp; ++l) all[l] = turned[group][l][lane];
        ROOFTILE_UNROLL for (int span = kWarp / 2; span > 0; span /= 2) {
          ROOFTILE_UNROLL for (int l = 0; l < span; ++l) all[l] += all[l + span];
        }
        sums[lane][k] = static_cast<double>(all[0] + Real(0));
      }
      __syncthreads();
    }
  });
}
// [/gemv_columns]

constexpr int kFinishThreads = 128;
/// y of rows whose spans had blocks of their own.
template <class T>
__global__ void __launch_bounds__(kFinishThreads)
    gemv_finish(const __grid_constant__ GemvProblem p, const __grid_constant__ Spans spans) {
  const std::int64_t row = spans.first + std::int64_t{blockIdx.x} * kFinishThreads + threadIdx.x;
  if (row >= spans.end) return;
  double all = 0;
  for (std::int64_t s = 0; s < spans.count; ++s) all += spans.sums[(row - spans.first) * spans.count + s];
  finish_row<T>(p, row, all);
}

std::int64_t ceil_div(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }
bool whole_words(const void* data, std::int64_t row, std::int64_t rows, std::int64_t column, int width) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && column == 1 &&
         (rows <= 1 || row * width % 16 == 0);
}

template <class T>
Status multiply(const CudaLaunch& launch, const GemvProblem& p) {
  const auto distance = [](std::int64_t stride) { return stride < 0 ? -stride : stride; };
  const bool columns = p.m > 1 && p.n > 1 && distance(p.a_row) < distance(p.a_column);
  const bool words = p.n * int(sizeof(T)) % 16 == 0 &&
                     whole_words(p.a, p.a_row, p.m, p.a_column, sizeof(T)) &&
                     whole_words(p.x, 0, 1, p.x_stride, sizeof(T));
  Spans spans{};
  spans.chunks = ceil_div(p.n, kChunk);
  spans.each = kRound;
  while (ceil_div(spans.chunks, spans.each) > kMaxSpans) spans.each *= 2;
  spans.count = ceil_div(spans.chunks, spans.each);
  spans.shares = 1;

  // Threads of a row, and blocks: as many as keep the device busy.
  const std::int64_t busy = 2 * std::int64_t{launch.multiprocessors};
  RowTeams teams{kMinTeam, 1};
  while (teams.threads < kWarp && teams.threads * (16 / int(sizeof(T))) < p.n) teams.threads *= 2;
  while (teams.warps < kRowThreads / kWarp && teams.warps < spans.chunks &&
         p.m * spans.count * teams.warps < busy * (kRowThreads / kWarp) * kTogether)
    teams.warps *= 2;
  const int groups = spans.chunks > 1 ? kMaxGroups : 1;
  const bool a_step = words && p.n <= teams.threads * (16 / int(sizeof(T)));
  const int together = spans.chunks != 1 ? kTogether : a_step ? kStepRows : kRowsTogether;
  const std::int64_t rows = columns ? kWarp : teams.rows() * together;
  std::int64_t step = p.m;
  if (spans.count > 1 && ceil_div(p.m, rows) < busy) {
    spans.shares = spans.count;
    spans.sums = static_cast<double*>(launch.scratch);
    step = kCudaScratchBytes / sizeof(double) / spans.count;
  }
  const auto rows_kernel = spans.chunks != 1
                               ? words ? gemv_rows<T, Access::aligned> : gemv_rows<T, Access::any>
                           : a_step ? gemv_short_rows<T, Access::aligned, kStepRows>
                           : words  ? gemv_short_rows<T, Access::aligned, kRowsTogether>
                                    : gemv_short_rows<T, Access::any, kRowsTogether>;
  for (std::int64_t first = 0; first < p.m; first += step) {
    spans.first = first;
    spans.end = std::min(p.m, first + step);
    const std::int64_t blocks = ceil_div(spans.end - first, rows) * spans.shares;
    if (blocks > kMaxBlocks)
      return Status::error("gemv: %lld rows take more blocks than the %lld of a launch",
                           static_cast<long long>(p.m), static_cast<long long>(kMaxBlocks));
    const auto grid = static_cast<unsigned>(blocks);
    Status status;
    if (columns)
      status =
          rooftile::cuda::launch(launch, "gemv", {grid, static_cast<unsigned>(groups * kColumnWarps * kWarp)},
                                 gemv_columns<T>, p, spans);
    else
      status = rooftile::cuda::launch(launch, "gemv", {grid, kRowThreads}, rows_kernel, p, spans, teams);
    if (status.ok() && spans.sums)
      status = rooftile::cuda::launch(
          launch, "gemv",
          {static_cast<unsigned>(ceil_div(spans.end - first, kFinishThreads)), kFinishThreads},
          gemv_finish<T>, p, spans);
    if (!status) return status;
  }
  return {};
}

Status launch_gemv(const CudaLaunch& launch, const GemvProblem& p) {
  return with_type<double, float, f16, bf16>(p.dtype, [&]<class T>() { return multiply<T>(launch, p); });
}

// ---- geru

template <class T>
struct Outer {
  GeruProblem p;
  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const auto& part) const {
    using Real = RealOf<T>;
    const auto row_of = [&](const void* data, std::int64_t row, std::int64_t column) {
      return Row<const T>{static_cast<const T*>(data) + (part.row * row + part.first * column), part.size,
                          column};
    };
    const Row<T> a{static_cast<T*>(p.a) + (part.row * p.a_row + part.first * p.a_column), part.size,
                   p.a_column};
    Row<const T> c{nullptr, part.size};
    if (p.c) c = row_of(p.c, p.c_row, p.c_column);
    if (p.c == p.a) c.begin = c.end = c.data;  // others write beside it
    if (p.x)
      kernels::outer_row(team, static_cast<Real>(p.alpha),
                         widen<Real>(static_cast<const T*>(p.x)[part.row * p.x_stride]),
                         row_of(p.y, 0, p.y_stride), c, a);
    else
      kernels::copy_row(team, c, a);
  }
};

Status launch_geru(const CudaLaunch& launch, const GeruProblem& given) {
  // Down the columns, where those are contiguous: x and y exchange their places.
  const bool down = given.a_column != 1 && given.a_row == 1 && given.m > 1;
  GeruProblem p = given;
  if (down) {
    std::swap(p.x, p.y), std::swap(p.x_stride, p.y_stride), std::swap(p.m, p.n);
    std::swap(p.a_row, p.a_column), std::swap(p.c_row, p.c_column);
  }
  return with_type<double, float, f16, bf16>(p.dtype, [&]<class T>() {
    constexpr int kWidth = sizeof(T);
    const bool words = p.n * kWidth % 16 == 0 && whole_words(p.a, p.a_row, p.m, p.a_column, kWidth) &&
                       (!p.c || whole_words(p.c, p.c_row, p.m, p.c_column, kWidth)) &&
                       (!p.x || whole_words(p.y, 0, 1, p.y_stride, kWidth));
    return for_parts<16 / kWidth, 4, RealOf<T>>(launch, "geru", p.m, p.n, words, Outer<T>{p});
  });
}

Status launch_gradients(const CudaLaunch& launch, const Blas2Gradients& g) {
  for (const GemvProblem& p : g.products)
    if (p.y)
      if (Status s = launch_gemv(launch, p); !s) return s;
  return g.outer.a ? launch_geru(launch, g.outer) : Status{};
}

}  // namespace

ROOFTILE_CUDA_KERNELS(blas2) = {
    entry<launch_gemv>("gemv", "tile"),
    entry<launch_gradients>("gemv_backward", "tile"),
    entry<launch_geru>("geru", "tile"),
    entry<launch_gradients>("geru_backward", "tile"),
    {},
};

}  // namespace rooftile
