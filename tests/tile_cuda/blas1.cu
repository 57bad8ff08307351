// As softmax.cu.
#include "rooftile/ops/blas1/blas1.tile.h"

namespace rooftile {
using namespace tile;

template <class Real, class T>
__global__ void blas1_rows(const T* x, T* y, std::int64_t size, Real alpha, double* sum) {
  const CudaTeam<Real> team(nullptr);
  const Row<const T> in{x, size};
  const Row<T> out{y, size};
  kernels::add(team, in, in, out);
  kernels::axpby(team, alpha, in, alpha, out);
  kernels::scale(team, alpha, in, out);
  kernels::zero(team, out);
  kernels::PairwiseSum total;
  total.add(kernels::dot(team, in, in));
  *sum = total.total();
}
template __global__ void blas1_rows(const double*, double*, std::int64_t, double, double*);
template __global__ void blas1_rows(const float*, float*, std::int64_t, float, double*);
template __global__ void blas1_rows(const f16*, f16*, std::int64_t, float, double*);
template __global__ void blas1_rows(const bf16*, bf16*, std::int64_t, float, double*);

__global__ void copy_row(const float* x, float* y, const std::uint8_t* b, std::uint8_t* c,
                         std::int64_t size) {
  kernels::copy_words(CudaTeam<float>(nullptr), Row<const float>{x, size}, Row<float>{y, size});
  kernels::copy_bytes(CudaTeam<float>(nullptr), Row<const std::uint8_t>{b, size}, Row<std::uint8_t>{c, size});
}

}  // namespace rooftile
