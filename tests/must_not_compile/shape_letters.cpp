// expect: a_shape_is_three_dots_then_up_to_8_capital_letters
#include "rooftile/core/signature.h"

#ifdef ROOFTILE_FIXED
inline constexpr rooftile::Signature::Shape kShape{"... M K"};
#else
inline constexpr rooftile::Signature::Shape kShape{"... m k"};
#endif
