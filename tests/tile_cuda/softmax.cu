// The kernels with the CUDA team in place: names that depend on it are looked up only here.
#include "rooftile/ops/softmax/softmax.tile.h"

namespace rooftile {
using namespace tile;
using Team = CudaTeam<float>;

template <class T>
__global__ void softmax_rows(const T* x, T* y, std::int64_t size, float scale, std::byte* scratch) {
  const Row<const T> in{x + blockIdx.x * size, size};
  const Row<T> out{y + blockIdx.x * size, size};
  kernels::softmax(Team(scratch), in, out, scale);
  kernels::log_softmax(Team(scratch), in, out, scale);
  kernels::softmax_online(Team(scratch), in, out, scale, false);
  kernels::softmax_backward(Team(scratch), in, in, out, scale);
  kernels::log_softmax_backward(Team(scratch), in, in, out, scale);
}
template __global__ void softmax_rows(const float*, float*, std::int64_t, float, std::byte*);
template __global__ void softmax_rows(const f16*, f16*, std::int64_t, float, std::byte*);
template __global__ void softmax_rows(const bf16*, bf16*, std::int64_t, float, std::byte*);

}  // namespace rooftile
