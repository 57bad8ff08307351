// The kernels with the CUDA team in place: names that depend on it are looked up only here.
#include "rooftile/ops/softmax/softmax.tile.h"

namespace rooftile {
using namespace tile;
using Team = CudaTeam<float>;

template <class T>
__global__ void softmax_rows(const T* x, T* y, std::int64_t rows, std::int64_t size, float scale,
                             std::byte* scratch) {
  const auto in = [=](std::int64_t i) { return Row<const T>{x + i * size, size}; };
  const auto out = [=](std::int64_t i) { return Row<T>{y + i * size, size}; };
  const auto row_at = [=](std::int64_t i) { return kernels::SoftmaxRow<T>{in(i), out(i)}; };
  const auto backward_at = [=](std::int64_t i) {
    return kernels::SoftmaxBackwardRow<T>{in(i), in(i), out(i)};
  };
  kernels::softmax<T, false>(Team(scratch), 0, rows, row_at, scale);
  kernels::softmax<T, true>(Team(scratch), 0, rows, row_at, scale);
  kernels::softmax_online(Team(scratch), in(0), out(0), scale, false);
  kernels::softmax_backward<T, false>(Team(scratch), 0, rows, backward_at, scale);
  kernels::softmax_backward<T, true>(Team(scratch), 0, rows, backward_at, scale);
}
template __global__ void softmax_rows(const float*, float*, std::int64_t, std::int64_t, float, std::byte*);
template __global__ void softmax_rows(const f16*, f16*, std::int64_t, std::int64_t, float, std::byte*);
template __global__ void softmax_rows(const bf16*, bf16*, std::int64_t, std::int64_t, float, std::byte*);

}  // namespace rooftile
