#include "rooftile/core/status.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace rooftile {

Status Status::error(const char* format, ...) noexcept {
  Status status;
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(status.text_, kCapacity, format, arguments);
  va_end(arguments);
  if (length >= kCapacity) {
    char* end = status.text_ + kCapacity - 4;
    while (end > status.text_ && (*end & 0xc0) == 0x80) --end;  // a character of several bytes stays whole
    std::strcpy(end, "...");
  }
  // A failure must never read as success, whatever the format did.
  if (length <= 0 || status.text_[0] == '\0')
    std::strcpy(status.text_, "failed, and its message could not be formatted");
  return status;
}

}  // namespace rooftile
