#pragma once
#include <vector>

#include "rooftile/harness/spec.h"

namespace rooftile::harness {

/// The shapes that comparisons name; baselines that search for their best configuration do it for these.
inline const std::vector<Shape> kNamedGpuRows = {{8192, 4096}, {65536, 1024}, {4096, 16384}, {262144, 256}};

/// What row kernels are measured with on a GPU: lengths of real models, rows too long for one block's
/// registers, lengths that no vector divides, and rows one element off a boundary; 128 MiB moved or more.
inline std::vector<Case> gpu_rows() {
  std::vector<Case> cases;
  for (DType type : {DType::bf16, DType::f16, DType::f32})
    for (const Shape& shape : kNamedGpuRows) cases.push_back({shape, type, {}});
  for (DType type : {DType::bf16, DType::f32}) {
    for (const Shape& shape : std::vector<Shape>{
             {2048, 32768}, {512, 131072}, {1 << 21, 30}, {1 << 19, 100}, {65536, 1000}, {16384, 4095}})
      cases.push_back({shape, type, {}});
    Case off{{16384, 4096}, type, {}};
    off.layout = Layout::offset;
    off.offset = 1;
    cases.push_back(off);
  }
  return cases;
}

}  // namespace rooftile::harness
