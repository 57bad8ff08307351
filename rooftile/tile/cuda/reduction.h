#pragma once
// Whole tensors to one number, on a GPU: rooftile/tile/reduction.h tells how. Chunks are longer where there
// would be more than kMaxChunks.
#include "rooftile/tile/cuda/elements.h"

namespace rooftile::tile {
inline namespace cuda {

/// Elements of an input in row-major order from `first` on, whatever its strides.
template <class T, int kInputs>
struct Flat {
  using Element = T;
  const Rows<kInputs>* rows;
  int input;
  const T* data;
  std::int64_t first;
  std::int64_t size;

  template <int N>
  ROOFTILE_TILE Pack<T, N> load_pack(std::int64_t at, std::int64_t live) const {
    Pack<T, N> pack;
    ROOFTILE_EACH_LANE(N) {
      const std::int64_t index = first + at + i, row = index / rows->columns;
      pack.set(i, i < live ? data[offset_of(*rows, input, row) +
                                  (index - row * rows->columns) * rows->column_stride[input]]
                           : T{});
    }
    return pack;
  }
};

inline constexpr int kReductionThreads = 256;
inline constexpr int kMaxChunks = 4096;

template <class Reduction, class Team, class T, int kInputs, int... I>
ROOFTILE_TILE typename Reduction::Partial chunk_of(const Team& team, const ReductionProblem<kInputs>& p,
                                                   bool contiguous, std::int64_t first, std::int64_t size,
                                                   std::integer_sequence<int, I...>) {
  if (contiguous)
    return Reduction::chunk(team, Row<const T>{static_cast<const T*>(p.data[I]) + first, size}...);
  return Reduction::chunk(team,
                          Flat<T, kInputs>{&p.rows, I, static_cast<const T*>(p.data[I]), first, size}...);
}

/// Block b reduces chunk b: threads synchronise once for each, and at these barriers nothing is in flight. Of
/// 2^28 elements, chunks of kReductionChunk took 0.89 of a copy on an H200 (dot); a ladder's rung with longer
/// ones 1.03.
template <class Reduction, class T, Access kAccess, int kInputs>
__global__ void __launch_bounds__(kReductionThreads)
    reduce_chunks(const __grid_constant__ ReductionProblem<kInputs> p, bool contiguous, std::int64_t chunk,
                  typename Reduction::Partial* partials) {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  Rounds rounds;
  const CudaTeam<Real, 16 / int(sizeof(T)), 0, kAccess, Scope::block> team(kReductionThreads, rounds);
  const std::int64_t first = blockIdx.x * chunk, rest = p.rows.rows * p.rows.columns - first;
  const auto partial = chunk_of<Reduction, decltype(team), T>(
      team, p, contiguous, first, rest < chunk ? rest : chunk, std::make_integer_sequence<int, kInputs>());
  if (threadIdx.x == 0) partials[blockIdx.x] = partial;
}

/// The tree over the chunks that Pairwise stands for, level by level: each thread joins kMaxChunks /
/// kReductionThreads neighbours, then threads join pairs of theirs (dot of 2^28 f32, H200: 485 µs; one thread
/// that adds them one after the other 501). Where there is no chunk there is nothing(): every thread takes
/// every step, so that the checked device sees each barrier at work with few chunks, too. Thread 0 has all.
template <class Reduction>
ROOFTILE_TILE typename Reduction::Partial joined_chunks(const typename Reduction::Partial* partials,
                                                        int count) {
  using Partial = typename Reduction::Partial;
  constexpr int kItemsPerThread = kMaxChunks / kReductionThreads;
  ROOFTILE_SHARED(nodes, Partial[kReductionThreads]);
  const int thread = static_cast<int>(threadIdx.x), first = thread * kItemsPerThread;
  Partial node[kItemsPerThread];
  ROOFTILE_UNROLL for (int i = 0; i < kItemsPerThread; ++i) {
    node[i] = first + i < count ? partials[first + i] : Reduction::nothing();
  }
  ROOFTILE_UNROLL for (int far = 1; far < kItemsPerThread; far *= 2) {
    ROOFTILE_UNROLL for (int i = 0; i < kItemsPerThread; i += 2 * far) {
      node[i] = Reduction::join(node[i], node[i + far]);
    }
  }
  nodes[thread] = node[0];
  for (int far = 1; far < kReductionThreads; far *= 2) {
    __syncthreads();
    if (thread % (2 * far) == 0) nodes[thread] = Reduction::join(nodes[thread], nodes[thread + far]);
  }
  return nodes[thread];
}
template <class Reduction, class R>
__global__ void __launch_bounds__(kReductionThreads)
    join_chunks(const typename Reduction::Partial* partials, int count, R* result) {
  const auto all = joined_chunks<Reduction>(partials, count);
  if (threadIdx.x == 0) *result = narrow<R>(count == 0 ? 0 : Reduction::finish(all));
}

/// A reduction's chunks, and the partials that its first launch writes for each.
template <class Reduction>
struct Chunked {
  using Partial = typename Reduction::Partial;
  static_assert(kMaxChunks * sizeof(Partial) <= kCudaScratchBytes);
  std::int64_t chunk = kReductionChunk;
  int count;
  Partial* partials;

  template <int kInputs>
  Chunked(const CudaLaunch& launch, const ReductionProblem<kInputs>& p)
      : partials(static_cast<Partial*>(launch.scratch)) {
    while ((p.size() + chunk - 1) / chunk > kMaxChunks) chunk *= 2;
    count = static_cast<int>((p.size() + chunk - 1) / chunk);
  }
  template <class T, int kInputs>
  Status reduce(const CudaLaunch& launch, const char* name, const ReductionProblem<kInputs>& p) const {
    if (count == 0) return {};
    bool contiguous = true, words = p.size() * bits(p.dtype) / 8 % 16 == 0;
    for (int i = 0; i < kInputs; ++i) {
      contiguous = contiguous && p.contiguous(i);
      words = words && reinterpret_cast<std::uintptr_t>(p.data[i]) % 16 == 0;
    }
    const auto run = [&](auto kernel) {
      return rooftile::cuda::launch(launch, name, {static_cast<unsigned>(count), kReductionThreads}, kernel,
                                    p, contiguous, chunk, partials);
    };
    if (contiguous && words) return run(reduce_chunks<Reduction, T, Access::aligned, kInputs>);
    return run(reduce_chunks<Reduction, T, Access::any, kInputs>);
  }
};

/// The result of a reduction of f64, f32, f16 or bf16.
template <class Reduction, int kInputs>
Status reduce(const CudaLaunch& launch, const char* name, const ReductionProblem<kInputs>& p) {
  const Chunked<Reduction> chunks(launch, p);
  const Status status = with_type<double, float, f16, bf16>(
      p.dtype, [&]<class T>() { return chunks.template reduce<T>(launch, name, p); });
  if (!status) return status;
  return with_type<double, float, f16, bf16>(p.result_dtype, [&]<class R>() {
    return rooftile::cuda::launch(launch, name, {1, kReductionThreads}, join_chunks<Reduction, R>,
                                  chunks.partials, chunks.count, static_cast<R*>(p.result));
  });
}

}  // namespace cuda
}  // namespace rooftile::tile
