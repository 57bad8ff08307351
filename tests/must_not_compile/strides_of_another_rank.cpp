// expect: (no matching function for call to .*view|deduced conflicting|conflicting values)
// Sizes and strides come in equal number.
#include "rooftile/core/view.h"

rooftile::View caller(float* x) {
#ifdef ROOFTILE_FIXED
  return rooftile::view(x, {2, 3}, {3, 1});
#else
  return rooftile::view(x, {2, 3}, {3, 3, 1});
#endif
}
