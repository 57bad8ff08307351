#pragma once
// What Hopper's kernels share: matrices of a batch in tensor maps, a block's tiles.
#include "rooftile/backend/cuda/hopper.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/gemm/gemm.gpu.h"

namespace rooftile::gemm_gpu {
using rooftile::cuda::TensorMap;

/// A by tiles, and the last of them by as many rows as there are: the copy engine is slow to fill rows past
/// the end.
struct HopperMaps {
  TensorMap whole, tail;
};

#if defined(ROOFTILE_HAS_HOPPER)
namespace hopper {
using namespace rooftile::cuda;
using rooftile::cuda::Ring;  // not the one of tile/cuda

/// An operand's last two coordinates in its map: which matrix of the batch.
struct MatrixAt {
  int z, w;

  ROOFTILE_TILE MatrixAt(const Rows<4>& batch, int operand, std::int64_t matrix) : z(0), w(0) {
    if (batch.rank == 0) return;
    const std::int64_t first = batch.rank == 1 ? matrix : matrix / batch.extent[1];
    if (batch.stride[operand][0] != 0) z = static_cast<int>(first);
    if (batch.rank == 2 && batch.stride[operand][1] != 0)
      w = static_cast<int>(matrix - first * batch.extent[1]);
  }
};

/// The tiles of a block: of a cluster's tile the one of its rank.
struct BlockTiles {
  const GpuTiles& tiles;
  int cluster, rank;

  // [tiles]
  template <class Each>
  ROOFTILE_TILE void each(Each&& f) const {
    const int step = static_cast<int>(gridDim.x) / cluster;
    ROOFTILE_UNROLL_BY(1)
    for (std::int64_t t = static_cast<int>(blockIdx.x) / cluster; t < tiles.count; t += step) {
      GpuTile tile = tile_at(tiles, t);
      tile.row = tile.row * cluster + rank;
      f(tile);
    }
  }
  // [/tiles]
};

}  // namespace hopper
#endif

}  // namespace rooftile::gemm_gpu
