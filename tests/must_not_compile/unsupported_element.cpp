// expect: rooftile::view: this element type has no DType
// Element types that no kernel knows are refused with a sentence, not with a page of templates.
#include "rooftile/core/view.h"

#ifdef ROOFTILE_FIXED
using Element = float;
#else
using Element = long double;
#endif

rooftile::View caller(Element* x) { return rooftile::view(x, {2, 3}); }
