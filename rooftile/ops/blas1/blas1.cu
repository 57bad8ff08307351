#include "rooftile/core/width.h"
#include "rooftile/ops/blas1/blas1.problem.h"
#include "rooftile/ops/blas1/blas1.tile.h"
#include "rooftile/ops/blas1/ladder/ladder.h"
#include "rooftile/tile/cuda/elements.h"

namespace rooftile {
namespace {
using namespace tile;

template <class T>
using RealOf = std::conditional_t<std::is_same_v<T, double>, double, float>;
/// 64 bytes a thread: four 16-byte words on their way.
inline constexpr int kWords = 4;

template <int kOperands>
bool all_aligned(const Rows<kOperands>& rows, const void* const (&data)[kOperands], int bytes) {
  for (int o = 0; o < kOperands; ++o)
    if (!aligned_rows(rows, o, data[o], bytes)) return false;
  return true;
}

// ---- copy

/// Elements as the bytes they are; T is an unsigned integer of their width.
template <class T>
struct Copy {
  CopyProblem p;
  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const auto& part) const {
    const auto x = part_of<const T>(p.rows, 1, p.x, part, p.x == p.y);
    const auto y = part_of<T>(p.rows, 0, p.y, part);
    team.copy(x, y);
  }
};

template <class T>
Status copy_elements(const CudaLaunch& launch, const CopyProblem& p) {
  const void* const data[2] = {p.y, p.x};
  return for_parts<16 / int(sizeof(T)), kWords, float>(launch, "copy", p.rows.rows, p.rows.columns,
                                                       all_aligned(p.rows, data, sizeof(T)), Copy<T>{p});
}

/// Of an odd count of packed elements the last one, which has half a byte.
__global__ void copy_half(const std::uint8_t* x, std::uint8_t* y) {
  *y = static_cast<std::uint8_t>((*x & 0xf0) | (*y & 0x0f));
}

Status launch_copy(const CudaLaunch& launch, const CopyProblem& p) {
  if (p.dtype == DType::u4) {
    CopyProblem bytes = p;
    bytes.rows.columns = p.rows.columns / 2;
    if (Status s = copy_elements<std::uint8_t>(launch, bytes); !s || p.rows.columns % 2 == 0) return s;
    return rooftile::cuda::launch(launch, "copy", {1, 1}, copy_half,
                                  static_cast<const std::uint8_t*>(p.x) + p.rows.columns / 2,
                                  static_cast<std::uint8_t*>(p.y) + p.rows.columns / 2);
  }
  return with_width(bits(p.dtype) / 8, [&]<class T>() { return copy_elements<T>(launch, p); });
}

// ---- add, axpby

template <class T>
struct Add {
  AddProblem p;
  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const auto& part) const {
    kernels::add(team, part_of<const T>(p.rows, 1, p.x, part, p.x == p.z),
                 part_of<const T>(p.rows, 2, p.y, part, p.y == p.z), part_of<T>(p.rows, 0, p.z, part));
  }
};

Status launch_add(const CudaLaunch& launch, const AddProblem& p) {
  const void* const data[3] = {p.z, p.x, p.y};
  return with_type<double, float, f16, bf16>(p.dtype, [&]<class T>() {
    return for_parts<16 / int(sizeof(T)), kWords, RealOf<T>>(launch, "add", p.rows.rows, p.rows.columns,
                                                             all_aligned(p.rows, data, sizeof(T)), Add<T>{p});
  });
}

/// A factor of 0 means that its operand is not read.
template <class T>
struct Axpby {
  AxpbyProblem p;
  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const auto& part) const {
    const auto x = part_of<const T>(p.rows, 1, p.x, part, p.x == p.y);
    const auto before = part_of<const T>(p.rows, 0, p.y, part, true);
    const auto y = part_of<T>(p.rows, 0, p.y, part);
    const auto alpha = static_cast<RealOf<T>>(p.alpha), beta = static_cast<RealOf<T>>(p.beta);
    if (alpha != 0 && beta != 0)
      kernels::axpby(team, alpha, x, beta, before, y);
    else if (alpha != 0)
      kernels::scale(team, alpha, x, y);
    else if (beta != 0)
      kernels::scale(team, beta, before, y);
    else
      kernels::zero(team, y);
  }
};

Status launch_axpby(const CudaLaunch& launch, const AxpbyProblem& p) {
  const void* const data[2] = {p.y, p.x};
  return with_type<double, float, f16, bf16>(p.dtype, [&]<class T>() {
    return for_parts<16 / int(sizeof(T)), kWords, RealOf<T>>(
        launch, "axpby", p.rows.rows, p.rows.columns, all_aligned(p.rows, data, sizeof(T)), Axpby<T>{p});
  });
}

// ---- dot

/// Elements of an operand in row-major order from `first` on, wherever they lie.
template <class T>
struct Flat {
  using Element = T;
  const Rows<2>* rows;
  int operand;
  const T* data;
  std::int64_t first;
  std::int64_t size;

  template <int N>
  ROOFTILE_TILE Pack<T, N> load_pack(std::int64_t at, std::int64_t live) const {
    Pack<T, N> pack;
    ROOFTILE_EACH_LANE(N) {
      const std::int64_t index = first + at + i, row = index / rows->columns;
      pack.set(i, i < live ? data[offset_of(*rows, operand, row) +
                                  (index - row * rows->columns) * rows->column_stride[operand]]
                           : T{});
    }
    return pack;
  }
};

constexpr int kDotThreads = 256;
constexpr int kMostDotChunks = 4096;

/// Block b adds chunk b: one sum over the block for each, at whose barriers nothing is on its way. Of 2^28
/// elements, chunks of kDotChunk took 0.89 of a copy on an H200; a ladder's rung with longer ones 1.03.
template <class T, Access kAccess>
__global__ void __launch_bounds__(kDotThreads)
    dot_chunks(const __grid_constant__ DotProblem p, bool flat, std::int64_t chunk, double* sums) {
  using Real = RealOf<T>;
  Turns turns;
  const CudaTeam<Real, 16 / int(sizeof(T)), 0, kAccess, Span::block> team(kDotThreads, turns);
  const auto* x = static_cast<const T*>(p.x);
  const auto* y = static_cast<const T*>(p.y);
  const std::int64_t first = blockIdx.x * chunk, rest = p.rows.rows * p.rows.columns - first;
  const std::int64_t here = rest < chunk ? rest : chunk;
  Real sum;
  if (flat)
    sum = kernels::dot(team, Row<const T>{x + first, here}, Row<const T>{y + first, here});
  else
    sum = kernels::dot(team, Flat<T>{&p.rows, 0, x, first, here}, Flat<T>{&p.rows, 1, y, first, here});
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

/// The tree over the chunks that kernels::PairwiseSum stands for, level by level: each thread adds
/// kMostDotChunks / kDotThreads neighbours, then threads add pairs of sums (2^28 f32, H200: 485 µs; one
/// thread that adds them one after the other 501). Where there is no chunk there is -0, which changes no sum:
/// every thread takes every step, so that the checked device sees each barrier at work with few chunks, too.
template <class R>
__global__ void __launch_bounds__(kDotThreads) dot_total(const double* sums, int count, R* result) {
  constexpr int kEach = kMostDotChunks / kDotThreads;
  ROOFTILE_SHARED(nodes, double[kDotThreads]);
  const int thread = static_cast<int>(threadIdx.x), first = thread * kEach;
  double node[kEach];
  ROOFTILE_UNROLL for (int i = 0; i < kEach; ++i) node[i] = first + i < count ? sums[first + i] : -0.0;
  ROOFTILE_UNROLL for (int far = 1; far < kEach; far *= 2) {
    ROOFTILE_UNROLL for (int i = 0; i < kEach; i += 2 * far) node[i] += node[i + far];
  }
  nodes[thread] = node[0];
  for (int far = 1; far < kDotThreads; far *= 2) {
    __syncthreads();
    if (thread % (2 * far) == 0) nodes[thread] += nodes[thread + far];
  }
  if (thread == 0) *result = narrow<R>(count == 0 ? 0 : nodes[0]);
}

Status launch_dot(const CudaLaunch& launch, const DotProblem& p) {
  // The chunk follows from the length alone.
  std::int64_t chunk = kernels::kDotChunk;
  while ((p.size() + chunk - 1) / chunk > kMostDotChunks) chunk *= 2;
  const auto chunks = static_cast<unsigned>((p.size() + chunk - 1) / chunk);
  auto* sums = static_cast<double*>(launch.scratch);
  static_assert(kMostDotChunks * sizeof(double) <= kCudaScratchBytes);
  const bool flat = p.side_by_side(0) && p.side_by_side(1);
  const Status status = with_type<double, float, f16, bf16>(p.dtype, [&]<class T>() -> Status {
    if (chunks == 0) return {};
    const auto run = [&](auto kernel) {
      return rooftile::cuda::launch(launch, "dot", {chunks, kDotThreads}, kernel, p, flat, chunk, sums);
    };
    const auto whole = [](const void* q) { return reinterpret_cast<std::uintptr_t>(q) % 16 == 0; };
    if (flat && whole(p.x) && whole(p.y) && p.size() * sizeof(T) % 16 == 0)
      return run(dot_chunks<T, Access::aligned>);
    return run(dot_chunks<T, Access::any>);
  });
  if (!status) return status;
  return with_type<double, float, f16, bf16>(p.result_dtype, [&]<class R>() {
    return rooftile::cuda::launch(launch, "dot", {1, kDotThreads}, dot_total<R>, sums,
                                  static_cast<int>(chunks), static_cast<R*>(p.result));
  });
}

}  // namespace

ROOFTILE_CUDA_KERNELS(blas1) = {
    entry<launch_copy>("copy", "tile"),
    entry<launch_add>("add", "tile"),
    entry<ladder::launch_add_in_flight>("add", "04_in_flight"),
    entry<ladder::launch_add_vector_loads>("add", "03_vector_loads"),
    entry<ladder::launch_add_grid_stride>("add", "02_grid_stride"),
    entry<ladder::launch_add_one_element>("add", "01_one_element"),
    entry<launch_axpby>("axpby", "tile"),
    entry<launch_dot>("dot", "tile"),
    entry<ladder::launch_dot_two_passes>("dot", "06_two_passes"),
    entry<ladder::launch_dot_vector_loads>("dot", "05_vector_loads"),
    entry<ladder::launch_dot_shuffles>("dot", "04_shuffles"),
    entry<ladder::launch_dot_shared_memory>("dot", "03_shared_memory"),
    entry<ladder::launch_dot_neighbours>("dot", "02_neighbours"),
    entry<ladder::launch_dot_thread_sums>("dot", "01_thread_sums"),
    {},
};

}  // namespace rooftile
