// Judges the learner's blur of columns: blocks of 256 columns and 64 rows.
#include "rooftile/exercise/gpu.h"

#include ROOFTILE_EXERCISE

static rooftile::Status launch(const rooftile::CudaLaunch& where,
                               const rooftile::exercise::FunctionProblem& p) {
  const std::int64_t height = p.operands[0].shape[0], width = p.operands[0].shape[1];
  if (height == 0 || width == 0) return {};
  const dim3 blocks(static_cast<unsigned>((width + 255) / 256), static_cast<unsigned>((height + 63) / 64));
  return rooftile::cuda::launch(where, "box_columns", {blocks, 256u}, box_columns,
                                static_cast<const unsigned char*>(p.data<unsigned char>(0)),
                                p.data<unsigned char>(1), static_cast<int>(height), static_cast<int>(width));
}
ROOFTILE_EXERCISE_FUNCTION(launch)
