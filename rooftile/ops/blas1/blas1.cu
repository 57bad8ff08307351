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

template <class T>
struct CopyRounded {
  CopyProblem p;
  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const auto& part) const {
    kernels::copy_rounded(team, part_of<const float>(p.rows, 1, p.x, part), part_of<T>(p.rows, 0, p.y, part));
  }
};
Status launch_rounded(const CudaLaunch& launch, const CopyProblem& p) {
  return with_type<f16, bf16>(p.to, [&]<class T>() {
    const bool aligned =
        aligned_rows(p.rows, 0, p.y, sizeof(T)) && aligned_rows(p.rows, 1, p.x, sizeof(float));
    return for_parts<16 / int(sizeof(T)), kWords, float>(launch, "copy", p.rows.rows, p.rows.columns, aligned,
                                                         CopyRounded<T>{p});
  });
}

/// Of an odd count of packed elements the last one, which has half a byte.
__global__ void copy_half(const std::uint8_t* x, std::uint8_t* y) {
  *y = static_cast<std::uint8_t>((*x & 0xf0) | (*y & 0x0f));
}

Status launch_copy(const CudaLaunch& launch, const CopyProblem& p) {
  if (p.to != p.dtype) return launch_rounded(launch, p);
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

// ---- add

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

}  // namespace

// What blas1.kernels.cpp has not.
ROOFTILE_CUDA_KERNELS(blas1_rest) = {
    entry<launch_copy>("copy", "tile"),
    entry<launch_add>("add", "tile"),
    entry<ladder::launch_add_in_flight>("add", "04_in_flight"),
    entry<ladder::launch_add_vector_loads>("add", "03_vector_loads"),
    entry<ladder::launch_add_grid_stride>("add", "02_grid_stride"),
    entry<ladder::launch_add_one_element>("add", "01_one_element"),
    entry<ladder::launch_dot_two_passes>("dot", "06_two_passes"),
    entry<ladder::launch_dot_vector_loads>("dot", "05_vector_loads"),
    entry<ladder::launch_dot_shuffles>("dot", "04_shuffles"),
    entry<ladder::launch_dot_shared_memory>("dot", "03_shared_memory"),
    entry<ladder::launch_dot_neighbours>("dot", "02_neighbours"),
    entry<ladder::launch_dot_thread_sums>("dot", "01_thread_sums"),
    {},
};

}  // namespace rooftile
