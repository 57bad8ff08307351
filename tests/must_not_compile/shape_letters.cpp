// expect: a_shape_is_three_dots|must be initialized by a constant expression
#include "rooftile/core/signature.h"

#ifdef ROOFTILE_FIXED
inline constexpr rooftile::Signature::Shape kShape{"... M K"};
#else
inline constexpr rooftile::Signature::Shape kShape{"... m k"};
#endif
