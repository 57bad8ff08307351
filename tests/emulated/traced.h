#pragma once
// Launches of the kernels in traced.cu.
#include <string>

#include "rooftile/backend/emulated/engine.h"

namespace rooftile::emulated::test {
/// `n`: what the kernel takes; for walks 100 times the number of different places, and their distance.
Status launch_traced(const std::string& kernel, const float* x, float* y, int n);
}  // namespace rooftile::emulated::test
