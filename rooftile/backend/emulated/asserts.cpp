// A failed assert: a sentence in a kernel; on the host what the C library does.
#undef NDEBUG  // its own code has none; <assert.h> would hide what a failed assert calls
#include <assert.h>

#include "rooftile/backend/emulated/controls.h"
#include "rooftile/backend/emulated/state.h"

namespace rooftile::emulated {

void device::assert_failed(const char* expression, const char* file, unsigned line) {
  if (!current) __assert_fail(expression, file, line, "host code");
  fail(static_cast<int>(FindingKind::kTrap), {file, line}, "assertion %s failed in thread %u (%s:%u)",
       expression, current->number, file, line);
}

}  // namespace rooftile::emulated
