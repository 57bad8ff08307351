// As softmax.cu.
#include "rooftile/ops/layer_norm/layer_norm.tile.h"
#include "rooftile/ops/layer_norm/layer_norm_backward.tile.h"

namespace rooftile {
using namespace tile;

template <class T, class W>
__global__ void layer_norm_rows(const T* x, T* y, const W* weight, W* dweight, float* sums, std::int64_t rows,
                                std::int64_t size) {
  const CudaTeam<float> team(nullptr);
  const Row<const W> row{weight, size};
  const kernels::LayerNormAny<W> w{{}, row, 1};
  kernels::layer_norm<T, true, false>(
      team, 0, rows,
      [=](std::int64_t i) {
        const Row<const T> in{x + i * size, size};
        const Row<T> out{y + i * size, size};
        return kernels::LayerNormRow<T>{in, in, out, out, nullptr, nullptr};
      },
      w, w, 1e-5f);
  kernels::layer_norm_backward<T, false>(
      team, 0, rows,
      [=](std::int64_t i) {
        const Row<const T> in{x + i * size, size};
        return kernels::LayerNormBackwardRow<T>{in, in, Row<T>{y + i * size, size}, 0.f, 1.f};
      },
      w, Row<float>{sums, size}, Row<float>{sums + size, size});
  kernels::layer_norm_add_blocks(team, Row<const float>{sums, size}, 2, size, Row<W>{dweight, size});
}
template __global__ void layer_norm_rows(const float*, float*, const float*, float*, float*, std::int64_t,
                                         std::int64_t);
template __global__ void layer_norm_rows(const f16*, f16*, const f16*, f16*, float*, std::int64_t,
                                         std::int64_t);
template __global__ void layer_norm_rows(const bf16*, bf16*, const float*, float*, float*, std::int64_t,
                                         std::int64_t);

}  // namespace rooftile
