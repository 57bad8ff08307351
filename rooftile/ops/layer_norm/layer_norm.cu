#include "rooftile/ops/layer_norm/ladder/ladder.h"
#include "rooftile/ops/layer_norm/layer_norm.tile.h"
#include "rooftile/ops/layer_norm/layer_norm_backward.tile.h"

namespace rooftile {
namespace {
using namespace tile;

Status launch_forward(const CudaLaunch& launch, const LayerNormProblem& p) {
  return for_row_program(launch, "layer_norm", p, kernels::LayerNorm<float>{p.real<float>(0)});
}
Status launch_backward(const CudaLaunch& launch, const LayerNormBackwardProblem& p) {
  return for_row_program(launch, "layer_norm_backward", p, kernels::LayerNormBackward<float>{});
}

}  // namespace

ROOFTILE_CUDA_KERNELS(layer_norm) = {
    entry<launch_forward>("layer_norm", "tile"),
    entry<ladder::launch_layer_norm_teams>("layer_norm", "06_teams"),
    entry<ladder::launch_layer_norm_words>("layer_norm", "05_words"),
    entry<ladder::launch_layer_norm_registers>("layer_norm", "04_registers"),
    entry<ladder::launch_layer_norm_shuffles>("layer_norm", "03_shuffles"),
    entry<ladder::launch_layer_norm_block>("layer_norm", "02_block"),
    entry<ladder::launch_layer_norm_naive>("layer_norm", "01_naive"),
    entry<launch_backward>("layer_norm_backward", "tile"),
    {},
};

}  // namespace rooftile
