// expect: no matching function for call to .*view
// A size is an integer: 1e6 would be cut, or lose bits beyond 2^53.
#include "rooftile/core/view.h"

#ifdef ROOFTILE_FIXED
constexpr long kColumns = 1000000;
#else
constexpr double kColumns = 1e6;
#endif

rooftile::View caller(float* x) { return rooftile::view(x, {2L, kColumns}); }
