// On a CPU rows of A come in vectors along the row, several rows for each vector of x; columns that are
// contiguous come in vectors along the column, and are added up in as many sums as a row has lanes. Both add
// the same terms in the same order.
#include <algorithm>
#include <memory>
#include <new>

#include "rooftile/ops/blas2/blas2.problem.h"
#include "rooftile/ops/blas2/blas2.rows.h"
#include "rooftile/ops/blas2/blas2.tile.h"
#include "rooftile/tile/cpu/launch.h"
#include "rooftile/tile/reduction.h"

namespace rooftile {
namespace {
using namespace tile;

template <class T>
using RealOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// Rows at a time, and where columns are contiguous: their sums and what is joined of them fit a thread's
/// scratch beside a chunk of x. A multiple of a vector.
constexpr std::int64_t kRows = 64;
template <class Real>
constexpr std::int64_t kColumnRows = sizeof(Real) == 8 ? 128 : 256;
/// Sums of parts of rows, where rows alone are too few for the threads.
constexpr std::int64_t kTable = 4096;

std::int64_t ceil_div(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }

/// `count` elements that lie apart, next to each other.
template <class T>
void gather(const T* from, std::int64_t stride, std::int64_t count, T* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
}

/// How A lies.
enum class Order { rows, columns, apart };

/// One thread's part of a product.
template <class T>
class Rows2 {
  using Real = RealOf<T>;
  using Joined = Pairwise<Sum>;
  static constexpr std::int64_t kChunk = kReductionChunk, kSums = kLanes<Real>;

 public:
  Rows2(const GemvProblem& p, Order order, bool streaming, std::byte* scratch)
      : p_(p), order_(order), streaming_(streaming), x_(scratch) {
    a_ = reinterpret_cast<T*>(scratch + kChunk * std::int64_t(sizeof(T)));
    sums_ = reinterpret_cast<Real*>(scratch + kChunk * std::int64_t(sizeof(Real)));
    joined_ = reinterpret_cast<Joined*>(sums_ + kSums * kColumnRows<Real>);
    static_assert(kChunk * sizeof(Real) + kColumnRows<Real> * (kSums * sizeof(Real) + sizeof(Joined)) <=
                  kScratchBytes);
    static_assert(2 * kChunk * sizeof(T) <= kScratchBytes);
  }
  static constexpr std::int64_t block(Order order) {
    return order == Order::columns ? kColumnRows<Real> : kRows;
  }
  static constexpr std::int64_t step(Order order) { return order == Order::columns ? kVecLanes<Real> : 4; }
  static std::int64_t chunks(const GemvProblem& p) { return ceil_div(p.n, kChunk); }

  /// totals[r]: row first + r's sum over these chunks.
  void sums_of(std::int64_t first, std::int64_t rows, std::int64_t begin, std::int64_t end, double* totals) {
    if (order_ == Order::columns) return columns_of(first, rows, begin, end, totals);
    std::int64_t r = 0;
    if (order_ == Order::rows)
      for (; r + kRowsAtOnce <= rows; r += kRowsAtOnce)
        rows_of<kRowsAtOnce>(first + r, begin, end, totals + r);
    for (; r < rows; ++r) rows_of<1>(first + r, begin, end, totals + r);
  }

  /// y of these rows: fma(alpha, sum, beta·c), in tiles.
  void finish(std::int64_t first, std::int64_t rows, const double* totals) const {
    const Real alpha = static_cast<Real>(p_.alpha), beta = static_cast<Real>(p_.beta);
    for (std::int64_t r = 0; r < rows; r += kLanes<Real>) {
      const int live = static_cast<int>(std::min<std::int64_t>(kLanes<Real>, rows - r));
      Real sums[kLanes<Real>] = {};
      for (int i = 0; i < live; ++i) sums[i] = static_cast<Real>(totals[r + i]);
      Tile<Real> y = load_whole<Real>(sums);
      if (p_.c)
        y = fma(y, alpha,
                load_apart<Real>(static_cast<const T*>(p_.c) + (first + r) * p_.c_stride, p_.c_stride, live,
                                 Real(0), p_.dtype) *
                    beta);
      else
        y = y * alpha;
      store_apart(static_cast<T*>(p_.y) + (first + r) * p_.y_stride, p_.y_stride, live, y, p_.dtype);
    }
  }

 private:
  std::int64_t size_of(std::int64_t chunk) const { return std::min(kChunk, p_.n - chunk * kChunk); }

  /// A chunk of x, contiguous; a row of one chunk is gathered once for all rows.
  const T* chunk_of_x(std::int64_t chunk) {
    const T* x = static_cast<const T*>(p_.x) + chunk * kChunk * p_.x_stride;
    if (p_.x_stride == 1) return x;
    T* const to = reinterpret_cast<T*>(x_);
    if (gathered_ != chunk) gather(x, p_.x_stride, size_of(chunk), to);
    gathered_ = chunk;
    return to;
  }
  /// The same as numbers to compute with.
  const Real* numbers_of_x(std::int64_t chunk) {
    const T* x = static_cast<const T*>(p_.x) + chunk * kChunk * p_.x_stride;
    Real* const to = reinterpret_cast<Real*>(x_);
    if (gathered_ == chunk) return to;
    const std::int64_t size = size_of(chunk);
    for (std::int64_t j = 0; j < size; j += kLanes<Real>)
      store_whole(to + j, load_apart<Real>(x + j * p_.x_stride, p_.x_stride,
                                           static_cast<int>(std::min<std::int64_t>(kLanes<Real>, size - j)),
                                           Real(0), p_.dtype));
    gathered_ = chunk;
    return to;
  }

  template <int kCount>
  void rows_of(std::int64_t row, std::int64_t begin, std::int64_t end, double* totals) {
    Joined joined[kCount];
    for (std::int64_t c = begin; c < end; ++c) {
      const T* a = static_cast<const T*>(p_.a) + row * p_.a_row + c * kChunk * p_.a_column;
      const T* const x = chunk_of_x(c);
      if (kCount == 1 && order_ == Order::apart) {
        gather(a, p_.a_column, size_of(c), a_);
        a = a_;
      }
      Real sums[kCount];
      if (streaming_)
        row_sums<kCount, true>(a, p_.a_row, x, size_of(c), sums);
      else
        row_sums<kCount, false>(a, p_.a_row, x, size_of(c), sums);
      for (int r = 0; r < kCount; ++r) joined[r].add(static_cast<double>(sums[r] + 0));  // -0 becomes +0
    }
    for (int r = 0; r < kCount; ++r) totals[r] = joined[r].total();
  }

  void columns_of(std::int64_t first, std::int64_t rows, std::int64_t begin, std::int64_t end,
                  double* totals) {
    const ColumnBlock<Real> block{rows, sums_};
    for (std::int64_t r = 0; r < block.padded(); ++r) std::construct_at(joined_ + r);
    for (std::int64_t c = begin; c < end; ++c) {
      const T* const a = static_cast<const T*>(p_.a) + first + c * kChunk * p_.a_column;
      add_columns(block, a, p_.a_column, numbers_of_x(c), size_of(c));
      for (std::int64_t r = 0; r < block.padded(); ++r) joined_[r].add(static_cast<double>(sums_[r] + 0));
    }
    for (std::int64_t r = 0; r < rows; ++r) totals[r] = joined_[block.place(r)].total();
  }

  const GemvProblem& p_;
  const Order order_;
  const bool streaming_;
  std::byte* x_;
  T* a_;
  Real* sums_;
  Joined* joined_;
  std::int64_t gathered_ = -1;
};

template <class T>
Order order_of(const GemvProblem& p) {
  if (p.a_column == 1 || p.n <= 1) return Order::rows;
  // A block's last vector ends with its rows: it begins before them, and so do m rows at the least.
  return p.a_row == 1 && p.m >= kVecLanes<RealOf<T>> ? Order::columns : Order::apart;
}

template <class T>
void multiply(const CpuLaunch& launch, const GemvProblem& p) {
  const Order order = order_of<T>(p);
  const double all = double(p.m) * double(p.n + 2) * sizeof(T);
  const auto bytes = static_cast<std::int64_t>(std::min(all, 1e18));
  const bool streaming = bytes > launch.streaming_bytes;
  // Some blocks for each thread, of whole steps.
  const std::int64_t step = Rows2<T>::step(order), chunks = Rows2<T>::chunks(p);
  std::int64_t block = Rows2<T>::block(order);
  if (launch.threads > 1)
    block = std::clamp(ceil_div(ceil_div(p.m, 4 * launch.threads), step) * step, step, block);
  const std::int64_t blocks = ceil_div(p.m, block);
  const auto rows_from = [&](std::int64_t first) { return std::min(block, p.m - first); };
  if (blocks >= 2 * launch.threads || launch.threads == 1 || chunks == 1 || p.m > kTable / 16) {
    for_programs(launch, blocks, bytes,
                 [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                   Rows2<T> mine(p, order, streaming, scratch.begin);
                   double totals[kColumnRows<float>];
                   for (std::int64_t b = begin; b < end; ++b) {
                     mine.sums_of(b * block, rows_from(b * block), 0, chunks, totals);
                     mine.finish(b * block, rows_from(b * block), totals);
                   }
                 });
    return;
  }
  // Too few: parts of rows, too, of 2^k chunks each, which are nodes of the tree that joins all.
  std::int64_t each = 1;
  while (ceil_div(chunks, each) * p.m > kTable) each *= 2;
  const std::int64_t parts = ceil_div(chunks, each);
  double table[kTable];
  for_programs(launch, blocks * parts, bytes,
               [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                 Rows2<T> mine(p, order, streaming, scratch.begin);
                 double totals[kColumnRows<float>];
                 for (std::int64_t u = begin; u < end; ++u) {
                   const std::int64_t part = u / blocks, first = u % blocks * block, rows = rows_from(first);
                   mine.sums_of(first, rows, part * each, std::min(chunks, (part + 1) * each), totals);
                   for (std::int64_t r = 0; r < rows; ++r) table[(first + r) * parts + part] = totals[r];
                 }
               });
  double totals[kTable / 16];
  for (std::int64_t r = 0; r < p.m; ++r) {
    Pairwise<Sum> joined;
    for (std::int64_t part = 0; part < parts; ++part) joined.add(table[r * parts + part]);
    totals[r] = joined.total();
  }
  Rows2<T>(p, order, streaming, launch.scratch).finish(0, p.m, totals);
}

void launch_gemv(const CpuLaunch& launch, const GemvProblem& p) {
  if (p.m == 0) return;
  with_type<double, float, f16, bf16>(p.dtype, [&]<class T>() { multiply<T>(launch, p); });
}

// ---- geru

template <class T>
RealOf<T> number(const void* data, std::int64_t at) {
  return static_cast<RealOf<T>>(load_scalar(static_cast<const T*>(data) + at, dtype_of<T>));
}

void launch_geru(const CpuLaunch& launch, const GeruProblem& given) {
  // Down the columns, where those are contiguous: x and y exchange their places.
  const bool down = given.a_column != 1 && given.a_row == 1 && given.m > 1;
  GeruProblem p = given;
  if (down) {
    std::swap(p.x, p.y), std::swap(p.x_stride, p.y_stride), std::swap(p.m, p.n);
    std::swap(p.a_row, p.a_column), std::swap(p.c_row, p.c_column);
  }
  const double size = double(p.m) * double(p.n) * bits(p.dtype) / 8 * (p.c ? 2 : 1);
  const auto bytes = static_cast<std::int64_t>(std::min(size, 1e18));
  const bool dense = p.n <= 1 || (p.a_column == 1 && (!p.x || p.y_stride == 1) && (!p.c || p.c_column == 1));
  with_access(dense, bytes > launch.streaming_bytes, [&]<Access kAccess>() {
    with_type<double, float, f16, bf16>(p.dtype, [&]<class T>() {
      using Real = RealOf<T>;
      for_programs(launch, p.m, bytes,
                   [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                     const CpuTeam<Real, kAccess> team(scratch, p.dtype);
                     for (std::int64_t i = begin; i < end; ++i) {
                       Row<const T> c{static_cast<const T*>(p.c), p.n, p.c_column, i + 1 < end ? p.c_row : 0};
                       if (p.c) c.data += i * p.c_row;
                       const Row<T> a{static_cast<T*>(p.a) + i * p.a_row, p.n, p.a_column};
                       if (p.x)
                         kernels::outer_row(team, static_cast<Real>(p.alpha), number<T>(p.x, i * p.x_stride),
                                            Row<const T>{static_cast<const T*>(p.y), p.n, p.y_stride}, c, a);
                       else
                         kernels::copy_row(team, c, a);
                     }
                     if (kAccess == Access::streaming) stream_fence();
                   });
    });
  });
}

void launch_gradients(const CpuLaunch& launch, const Blas2Gradients& g) {
  for (const GemvProblem& p : g.products)
    if (p.y) launch_gemv(launch, p);
  if (g.outer.a) launch_geru(launch, g.outer);
}

}  // namespace

ROOFTILE_CPU_KERNELS(blas2) = {
    entry<launch_gemv>("gemv", "tile"),
    entry<launch_gradients>("gemv_backward", "tile"),
    entry<launch_geru>("geru", "tile"),
    entry<launch_gradients>("geru_backward", "tile"),
    {},
};

}  // namespace rooftile
