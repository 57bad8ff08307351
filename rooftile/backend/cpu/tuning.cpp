#include "rooftile/backend/cpu/tuning.h"

#include <unistd.h>

#include <algorithm>

namespace rooftile::cpu {

const Tuning& tuning() {
  static const Tuning once = [] {
    std::int64_t last = 0;
    for (int name : {_SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE})
      last = std::max<std::int64_t>(last, sysconf(name));
    // A quarter of the last level: on virtual machines the level is shared with neighbours that no table
    // names, and a call's output should leave room for what is read next. Without a table, what most servers
    // have.
    return Tuning{last, last > 0 ? last / 4 : std::int64_t{8} << 20};
  }();
  return once;
}

}  // namespace rooftile::cpu
