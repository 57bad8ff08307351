// expect: constant expression
#include "rooftile/core/signature.h"

#ifdef ROOFTILE_FIXED
inline constexpr rooftile::Signature::Shape kShape{"... M K"};
#else
inline constexpr rooftile::Signature::Shape kShape{"... m k"};
#endif
