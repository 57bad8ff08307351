// Idea: chunks that follow from n alone, one to a block; a second pass adds their sums in f64, in a tree.
// Changed: up to 4096 blocks fill any GPU; 256 threads, not one, make the second pass; no chain is long.
// Binds: the memory's rate; for short vectors the two launches.
// Next: any dtype, stride and alignment, and a pairwise tree over the chunks: the library's kernel.
#include "rooftile/ops/blas1/ladder/dot/dot_gpu.h"

namespace rooftile::ladder {
namespace {

constexpr int kMaxChunks = 4096, kItemsPerThread = kMaxChunks / kDotThreads;
static_assert(kMaxChunks * sizeof(double) <= kCudaScratchBytes);

// [chunks]
__global__ void dot_chunk_sums(const float* x, const float* y, std::int64_t n, std::int64_t chunk,
                               double* sums) {
  const std::int64_t begin = blockIdx.x * chunk, rest = n - begin, size = rest < chunk ? rest : chunk;
  float sum = sum_of_words(x + begin, y + begin, size / 4, threadIdx.x, kDotThreads);
  const std::int64_t last = begin + size / 4 * 4 + threadIdx.x;
  if (last < begin + size) sum += x[last] * y[last];
  sum = block_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
// [/chunks]

/// Each thread adds kItemsPerThread neighbours; then the threads add pairwise.
template <class R>
__global__ void dot_second_pass(const double* sums, int count, R* result) {
  ROOFTILE_SHARED(part, double[kDotThreads]);
  const int thread = static_cast<int>(threadIdx.x), first = thread * kItemsPerThread;
  double sum = 0;
  for (int i = first; i < first + kItemsPerThread && i < count; ++i) sum += sums[i];
  part[thread] = sum;
  for (int far = 1; far < kDotThreads; far *= 2) {
    __syncthreads();
    if (thread % (2 * far) == 0) part[thread] += part[thread + far];
  }
  if (thread == 0) *result = static_cast<R>(part[0]);
}

}  // namespace

Status launch_dot_two_passes(const CudaLaunch& launch, const DotProblem& p) {
  const std::int64_t n = p.rows.columns;
  std::int64_t chunk = 16384;
  while ((n + chunk - 1) / chunk > kMaxChunks) chunk *= 2;
  const auto chunks = static_cast<unsigned>((n + chunk - 1) / chunk);
  auto* sums = static_cast<double*>(launch.scratch);
  if (chunks > 0) {
    const Status status = cuda::launch(launch, "dot", {chunks, kDotThreads}, dot_chunk_sums,
                                       static_cast<const float*>(p.data[0]),
                                       static_cast<const float*>(p.data[1]), n, chunk, sums);
    if (!status) return status;
  }
  const cuda::Grid one{1, kDotThreads};
  const auto count = static_cast<int>(chunks);
  if (p.result_dtype == DType::f64)
    return cuda::launch(launch, "dot", one, dot_second_pass<double>, sums, count,
                        static_cast<double*>(p.result));
  return cuda::launch(launch, "dot", one, dot_second_pass<float>, sums, count, static_cast<float*>(p.result));
}

}  // namespace rooftile::ladder
