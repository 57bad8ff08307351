// expect: rooftile::view: a view has at most 8 dimensions
#include "rooftile/core/view.h"

rooftile::View caller(float* x) {
#ifdef ROOFTILE_FIXED
  return rooftile::view(x, {1, 2, 3, 4, 5, 6, 7, 8});
#else
  return rooftile::view(x, {1, 2, 3, 4, 5, 6, 7, 8, 9});
#endif
}
