// expect: (could not convert|no viable conversion).* from .*ConstView.* to .*View
// A view of const memory can't be an output.
#include "rooftile/ops/softmax/softmax.h"

rooftile::Status caller(const rooftile::Queue& queue, const float* x, float* y) {
#ifdef ROOFTILE_FIXED
  return rooftile::softmax(queue, rooftile::view(x, {2, 3}), rooftile::view(y, {2, 3}));
#else
  return rooftile::softmax(queue, rooftile::view(y, {2, 3}), rooftile::view(x, {2, 3}));
#endif
}
