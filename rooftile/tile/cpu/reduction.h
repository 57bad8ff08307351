#pragma once
// Whole tensors to one number, on a CPU: rooftile/tile/reduction.h tells how.
#include <cstring>

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// `count` elements of an input from index `first` on, in row-major order, contiguous in `to`.
template <class T, int kInputs>
void gather(const Rows<kInputs>& rows, int input, const T* data, std::int64_t first, std::int64_t count,
            T* to) {
  const std::int64_t stride = rows.column_stride[input];
  std::int64_t row = first / rows.columns, column = first % rows.columns;
  while (count > 0) {
    // Whole rows together as far as one stride leads from row to row, so that a transposed matrix is read
    // line by line.
    std::int64_t height = 1, down = 0;
    if (column == 0 && rows.rank > 0) {
      const int d = rows.rank - 1;
      down = rows.stride[input][d];
      height = std::clamp<std::int64_t>(count / rows.columns, 1, rows.extent[d] - row % rows.extent[d]);
    }
    const std::int64_t width = std::min(count, rows.columns - column);
    const T* from = data + rows.offset(input, row) + column * stride;
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

/// The chunks of all inputs as dense rows, for one thread: where they are, or gathered into its scratch, as
/// many at once as fit there (2 · 16384 · 8 bytes do: kScratchBytes).
template <class T, int kInputs>
class Chunks {
 public:
  Chunks(const ReductionProblem<kInputs>& p, const ThreadScratch& scratch)
      : p_(p), scratch_(reinterpret_cast<T*>(scratch.begin)) {
    for (int i = 0; i < kInputs; ++i) direct_[i] = p.contiguous(i);
  }

  /// Of chunk `c`; `end`: where this thread's end.
  Row<const T> row(int input, std::int64_t c, std::int64_t end) {
    const T* data = static_cast<const T*>(p_.data[input]);
    const std::int64_t first = c * kReductionChunk, count = std::min(kReductionChunk, p_.size() - first);
    if (direct_[input]) return {data + first, count, 1, kAheadBytes / std::int64_t(sizeof(T))};
    T* scratch = scratch_ + input * kScratchElements;
    if (c >= gathered_[input]) {
      begin_[input] = c;
      gathered_[input] = std::min(end, c + kScratchElements / kReductionChunk);
      gather(p_.rows, input, data, first, std::min(gathered_[input] * kReductionChunk, p_.size()) - first,
             scratch);
    }
    return {scratch + (c - begin_[input]) * kReductionChunk, count};
  }

 private:
  static constexpr std::int64_t kScratchElements = kScratchBytes / kInputs / sizeof(T);
  static_assert(kScratchElements >= kReductionChunk,
                "rooftile::tile: a chunk of each input fits a thread's scratch");
  const ReductionProblem<kInputs>& p_;
  T* scratch_;
  bool direct_[kInputs];
  std::int64_t begin_[kInputs] = {}, gathered_[kInputs] = {};
};

/// Not inlined, so that the loop around it stays small; flattened, or g++ 12 leaves the loop's body a call
/// and the sums in memory (dot: 113 GB/s from L2 instead of 171).
template <class Reduction, class Real, Access kAccess, class... T>
__attribute__((noinline, flatten)) typename Reduction::Partial chunk_of(Row<const T>... x) {
  return Reduction::chunk(CpuTeam<Real, kAccess>(nullptr), x...);
}

template <class Reduction, class T, Access kAccess, int kInputs>
double reduction_of(const CpuLaunch& launch, const ReductionProblem<kInputs>& p, std::int64_t bytes) {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  // Blocks of 2^k chunks, as many as fit a table on the stack: each is one node of the pairwise tree.
  constexpr std::int64_t kMaxBlocks = 512;
  const std::int64_t chunks = (p.size() + kReductionChunk - 1) / kReductionChunk;
  std::int64_t block = 1;
  while ((chunks + block - 1) / block > kMaxBlocks) block *= 2;
  const std::int64_t blocks = (chunks + block - 1) / block;
  typename Reduction::Partial partials[kMaxBlocks];
  for_programs(launch, blocks, bytes,
               [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                 Chunks<T, kInputs> rows(p, scratch);
                 const std::int64_t last = std::min(chunks, end * block);
                 for (std::int64_t b = begin; b < end; ++b) {
                   Pairwise<Reduction> joined;
                   for (std::int64_t c = b * block; c < std::min(last, (b + 1) * block); ++c)
                     [&]<int... I>(std::integer_sequence<int, I...>) {
                       joined.add(chunk_of<Reduction, Real, kAccess>(rows.row(I, c, last)...));
                     }
                   (std::make_integer_sequence<int, kInputs>());
                   partials[b] = joined.total();
                 }
               });
  Pairwise<Reduction> joined;
  for (std::int64_t b = 0; b < blocks; ++b) joined.add(partials[b]);
  return Reduction::finish(joined.total());
}

/// The result of a reduction of f64, f32, f16 or bf16.
template <class Reduction, int kInputs>
Status reduce(const Launch& launch, const char*, const ReductionProblem<kInputs>& p) {
  const std::int64_t bytes = kInputs * p.size() * bits(p.dtype) / 8;
  double result = 0;
  with_dense_access(bytes > launch.streaming_bytes, [&]<Access kAccess>() {
    with_type<double, float, f16, bf16>(
        p.dtype, [&]<class T>() { result = reduction_of<Reduction, T, kAccess>(launch, p, bytes); });
  });
  store_scalar(p.result, p.result_dtype, result);
  return {};
}

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
