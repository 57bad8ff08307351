#include <cstring>

#include "rooftile/core/convert.h"
#include "rooftile/core/width.h"
#include "rooftile/ops/blas1/blas1.problem.h"
#include "rooftile/ops/blas1/blas1.tile.h"
#include "rooftile/ops/blas1/ladder/ladder.h"
#include "rooftile/tile/cpu/elements.h"

namespace rooftile {
namespace {
using namespace tile;

// ---- copy

/// Dense rows of any dtype are rows of bytes.
Rows<2> byte_rows(const CopyProblem& p) {
  Rows<2> rows = p.rows;
  const std::int64_t width = bits(p.dtype) / 8;
  rows.columns *= width;
  for (auto& operand : rows.stride)
    for (int d = 0; d < rows.rank; ++d) operand[d] *= width;
  return rows;
}

/// Of an odd count of packed elements the last one, which has half a byte.
void copy_last_half(const CopyProblem& p) {
  const auto* x = static_cast<const std::uint8_t*>(p.x) + p.rows.columns / 2;
  auto* y = static_cast<std::uint8_t*>(p.y) + p.rows.columns / 2;
  if (p.rows.columns % 2 == 1) *y = static_cast<std::uint8_t>((*x & 0xf0) | (*y & 0x0f));
}

/// From here on a copy between caches is the C library's: `rep movsb` behind it claims whole lines without
/// reading what they held (Zen 5, L2: 232 GB/s, vectors 174 to 233); shorter ones it would slow down (L1: 200
/// instead of 290).
constexpr std::int64_t kLongCopy = 24 * 1024;

void launch_copy(const CpuLaunch& launch, const CopyProblem& p) {
  if (!p.rows.dense()) {
    const auto elements = [&]<class T>() {
      for_staged_parts<T>(launch, Operands<2>{p.rows, {p.y, p.x}}, [](const Part<2>& part) {
        std::memcpy(part.data[0], part.data[1], static_cast<std::size_t>(part.size) * sizeof(T));
      });
    };
    return with_width(bits(p.dtype) / 8, elements);
  }
  Rows<2> rows = p.rows;
  if (p.dtype == DType::u4) {
    copy_last_half(p);
    rows.columns /= 2;
  } else {
    rows = byte_rows(p);
  }
  const bool streaming = 2 * rows.rows * rows.columns > launch.streaming_bytes;
  with_dense_access(streaming, [&]<Access kAccess>() {
    for_dense_parts(launch, Operands<2>{rows, {p.y, p.x}}, 1, streaming, [&](const Part<2>& part) {
      if (kAccess == Access::cached && part.size >= kLongCopy) {
        if (part.data[0] != part.data[1])
          std::memcpy(part.data[0], part.data[1], static_cast<std::size_t>(part.size));
        return;
      }
      const CpuTeam<float, kAccess> team(nullptr);
      const std::int64_t words = part.size / 4, rest = part.size % 4;
      const Part<2> whole{words, {part.data[0], part.data[1]}};
      const Part<2> end{rest, {part.data[0] + words * 4, part.data[1] + words * 4}};
      if (words > 0) kernels::copy_words(team, whole.row<const float>(1), whole.row<float>(0));
      if (rest > 0) kernels::copy_bytes(team, end.row<const std::uint8_t>(1), end.row<std::uint8_t>(0));
    });
  });
}

// ---- add, axpby

void launch_add(const CpuLaunch& launch, const AddProblem& p) {
  const Operands<3> operands{p.rows, {p.z, p.x, p.y}};
  for_elements<double, float, f16, bf16>(
      launch, operands, p.dtype, [&]<class T>(auto team, const Part<3>& part) ROOFTILE_INLINE {
        kernels::add(team, part.row<const T>(1), part.row<const T>(2), part.row<T>(0));
      });
}

/// A factor of 0 means that its operand is not read.
void launch_axpby(const CpuLaunch& launch, const AxpbyProblem& p) {
  const double alpha = p.factor(p.alpha), beta = p.factor(p.beta);
  const Operands<2> operands{p.rows, {p.y, p.x}, beta != 0};
  const auto both = [&]<class T>(auto team, const Part<2>& part) ROOFTILE_INLINE {
    using Real = typename decltype(team)::Real;
    kernels::axpby(team, static_cast<Real>(alpha), part.row<const T>(1), static_cast<Real>(beta),
                   part.row<const T>(0), part.row<T>(0));
  };
  const auto one = [&]<class T>(auto team, const Part<2>& part) ROOFTILE_INLINE {
    using Real = typename decltype(team)::Real;
    const bool is_x = alpha != 0;
    kernels::scale(team, static_cast<Real>(is_x ? alpha : beta), part.row<const T>(is_x ? 1 : 0),
                   part.row<T>(0));
  };
  const auto none = [&]<class T>(auto team, const Part<2>& part)
                        ROOFTILE_INLINE { kernels::zero(team, part.row<T>(0)); };
  const auto run = [&](const auto& program) {
    for_elements<double, float, f16, bf16>(launch, operands, p.dtype, program);
  };
  if (alpha != 0 && beta != 0) return run(both);
  if (alpha != 0 || beta != 0) return run(one);
  run(none);
}

// ---- dot

/// `count` elements of an operand from index `first` on, in row-major order, one beside the other in `to`.
template <class T>
void gather(const Rows<2>& rows, int operand, const T* data, std::int64_t first, std::int64_t count, T* to) {
  const std::int64_t stride = rows.column_stride[operand];
  std::int64_t row = first / rows.columns, column = first % rows.columns;
  while (count > 0) {
    // Whole rows together as far as one stride leads from row to row, so that a transposed matrix is read
    // line by line.
    std::int64_t height = 1, down = 0;
    if (column == 0 && rows.rank > 0) {
      const int d = rows.rank - 1;
      down = rows.stride[operand][d];
      height = std::clamp<std::int64_t>(count / rows.columns, 1, rows.extent[d] - row % rows.extent[d]);
    }
    const std::int64_t width = std::min(count, rows.columns - column);
    const T* from = data + rows.offset(operand, row) + column * stride;
    if (stride == 1) {
      for (std::int64_t r = 0; r < height; ++r)
        std::memcpy(to + r * width, from + r * down, static_cast<std::size_t>(width) * sizeof(T));
    } else {
      move_block<false>(const_cast<T*>(from), width, height, stride, down, to);
    }
    to += width * height;
    count -= width * height;
    row += height;
    column = 0;
  }
}

void store_result(const DotProblem& p, double value) {
  with_type<double, float, f16, bf16>(p.result_dtype, [&]<class T>() {
    if constexpr (std::is_floating_point_v<T>) {
      *static_cast<T*>(p.result) = static_cast<T>(value);
    } else {
      *static_cast<T*>(p.result) = from_double<T>(value);
    }
  });
}

/// Blocks of 2^k chunks, as many as fit a table on the stack: each is one node of the pairwise tree.
constexpr std::int64_t kMostBlocks = 512;

/// Not inlined, so that the loop around it stays small; flattened, or g++ 12 leaves the loop's body a call
/// and the sums in memory (113 GB/s from L2 instead of 171).
template <class Real, Access kAccess, class T>
__attribute__((noinline, flatten)) double chunk_sum(Row<const T> x, Row<const T> y) {
  return kernels::dot(CpuTeam<Real, kAccess>(nullptr), x, y);
}

/// The chunks of both operands as dense rows, for one thread: where they lie, or gathered into its scratch,
/// as many at once as fit there (2 · 16384 · 8 bytes do: kScratchBytes).
template <class T>
class Chunks {
 public:
  Chunks(const DotProblem& p, const ThreadScratch& scratch)
      : p_(p), scratch_(reinterpret_cast<T*>(scratch.begin)) {
    for (int o = 0; o < 2; ++o) direct_[o] = p.side_by_side(o);
  }

  /// Of chunk `c`; `end`: where this thread's end.
  Row<const T> row(int operand, std::int64_t c, std::int64_t end) {
    const T* data = static_cast<const T*>(operand == 0 ? p_.x : p_.y);
    const std::int64_t first = c * kChunk, count = std::min(kChunk, p_.size() - first);
    if (direct_[operand]) return {data + first, count, 1, kAheadBytes / std::int64_t(sizeof(T))};
    T* room = scratch_ + operand * kRoom;
    if (c >= gathered_[operand]) {
      begin_[operand] = c;
      gathered_[operand] = std::min(end, c + kRoom / kChunk);
      gather(p_.rows, operand, data, first, std::min(gathered_[operand] * kChunk, p_.size()) - first, room);
    }
    return {room + (c - begin_[operand]) * kChunk, count};
  }

 private:
  static constexpr std::int64_t kChunk = kernels::kDotChunk;
  static constexpr std::int64_t kRoom = kScratchBytes / 2 / sizeof(T);
  const DotProblem& p_;
  T* scratch_;
  bool direct_[2];
  std::int64_t begin_[2] = {}, gathered_[2] = {};
};

template <class T, Access kAccess>
double dot_of(const CpuLaunch& launch, const DotProblem& p) {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const std::int64_t chunks = (p.size() + kernels::kDotChunk - 1) / kernels::kDotChunk;
  std::int64_t block = 1;
  while ((chunks + block - 1) / block > kMostBlocks) block *= 2;
  const std::int64_t blocks = (chunks + block - 1) / block, bytes = 2 * p.size() * std::int64_t(sizeof(T));
  double sums[kMostBlocks];
  for_programs(launch, blocks, bytes,
               [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                 Chunks<T> rows(p, scratch);
                 const std::int64_t last = std::min(chunks, end * block);
                 for (std::int64_t b = begin; b < end; ++b) {
                   kernels::PairwiseSum sum;
                   for (std::int64_t c = b * block; c < std::min(last, (b + 1) * block); ++c)
                     sum.add(chunk_sum<Real, kAccess>(rows.row(0, c, last), rows.row(1, c, last)));
                   sums[b] = sum.total();
                 }
               });
  kernels::PairwiseSum sum;
  for (std::int64_t b = 0; b < blocks; ++b) sum.add(sums[b]);
  return sum.total();
}

void launch_dot(const CpuLaunch& launch, const DotProblem& p) {
  const std::int64_t bytes = 2 * p.size() * bits(p.dtype) / 8;
  double sum = 0;
  with_dense_access(bytes > launch.streaming_bytes, [&]<Access kAccess>() {
    with_type<double, float, f16, bf16>(p.dtype, [&]<class T>() { sum = dot_of<T, kAccess>(launch, p); });
  });
  store_result(p, sum);
}

}  // namespace

ROOFTILE_CPU_KERNELS(blas1) = {
    entry<launch_copy>("copy", "tile"),
    entry<launch_add>("add", "tile"),
    entry<ladder::launch_add_streaming>("add", "03_streaming"),
    entry<ladder::launch_add_vectors>("add", "02_vectors"),
    entry<ladder::launch_add_scalar>("add", "01_scalar"),
    entry<launch_axpby>("axpby", "tile"),
    entry<launch_dot>("dot", "tile"),
    entry<ladder::launch_dot_compensated>("dot", "compensated"),
    entry<ladder::launch_dot_chunks>("dot", "04_chunks"),
    entry<ladder::launch_dot_accumulators>("dot", "03_accumulators"),
    entry<ladder::launch_dot_vectors>("dot", "02_vectors"),
    entry<ladder::launch_dot_scalar>("dot", "01_scalar"),
    {},
};

}  // namespace rooftile
