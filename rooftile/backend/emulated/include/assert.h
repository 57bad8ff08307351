#pragma once
// The system's assert on the host; in a kernel a failed one ends the launch with a sentence.
#include_next <assert.h>
#include "rooftile/backend/emulated/device/calls.h"
#if defined(ROOFTILE_EMULATED) && !defined(NDEBUG)
#undef assert
#define assert(...)               \
  (static_cast<bool>(__VA_ARGS__) \
       ? static_cast<void>(0)     \
       : ::rooftile::emulated::device::assert_failed(#__VA_ARGS__, __FILE__, __LINE__))
#endif
