// expect: ignoring return(ed)? value.*nodiscard
// A Status is never dropped in silence.
#include "rooftile/core/status.h"

rooftile::Status check();

void caller() {
#ifdef ROOFTILE_FIXED
  if (!check()) return;
#else
  check();
#endif
}
