// Judges the learner's scan_blocks and add_offsets: blocks scan, their totals are scanned by the same kernel,
// and each block adds what is before it.
#include "rooftile/exercise/gpu.h"

#include ROOFTILE_EXERCISE

static rooftile::Status launch(const rooftile::CudaLaunch& where,
                               const rooftile::exercise::FunctionProblem& p) {
  using rooftile::Status;
  constexpr unsigned kThreads = 256;
  const auto n = static_cast<int>(p.size(0));
  const auto blocks = (static_cast<unsigned>(n) + kThreads - 1) / kThreads;
  if (blocks == 0) return {};
  if (blocks > kThreads) return Status::error("scan: x has %d elements, at most 65536 are scanned", n);
  auto* totals = static_cast<int*>(where.scratch);
  int *before = totals + kThreads, *total = before + kThreads;
  const int* x = p.data<const int>(0);
  int* y = p.data<int>(1);
  if (Status s =
          rooftile::cuda::launch(where, "scan_blocks", {blocks, kThreads}, scan_blocks, x, y, totals, n);
      !s)
    return s;
  if (Status s =
          rooftile::cuda::launch(where, "scan_blocks", {1u, kThreads}, scan_blocks,
                                 static_cast<const int*>(totals), before, total, static_cast<int>(blocks));
      !s)
    return s;
  return rooftile::cuda::launch(where, "add_offsets", {blocks, kThreads}, add_offsets,
                                static_cast<const int*>(before), y, n);
}
ROOFTILE_EXERCISE_FUNCTION(launch)
