// As softmax.cu.
#include "rooftile/ops/image/image.tile.h"

namespace rooftile {
using namespace tile;

__global__ void gray_rows(const std::uint8_t* rgb, std::uint8_t* gray, std::int64_t size) {
  kernels::rgb_to_gray(CudaTeam<float>(nullptr), Pixels{rgb, size}, Row<std::uint8_t>{gray, size}, 299, 587,
                       114);
}

}  // namespace rooftile
