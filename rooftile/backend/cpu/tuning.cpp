#include "rooftile/backend/cpu/tuning.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace rooftile::cpu {
namespace {

/// The largest cache that the kernel reports of the first CPU; 0: it reports none.
std::int64_t reported_last_level() {
  std::int64_t last = 0;
  for (int index = 0; index < 16; ++index) {
    char path[80];
    std::snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
    std::FILE* file = std::fopen(path, "re");
    if (!file) break;
    long long kibibytes = 0;
    if (std::fscanf(file, "%lldK", &kibibytes) == 1) last = std::max<std::int64_t>(last, kibibytes << 10);
    std::fclose(file);
  }
  return last;
}

}  // namespace

const Tuning& tuning() {
  static const Tuning once = [] {
    std::int64_t last = reported_last_level();
    // glibc 2.36 multiplies an AMD CPU's third level by its cores (320 MiB for 32): only where nothing else
    // is known.
    if (last == 0)
      last = std::max<std::int64_t>({0, sysconf(_SC_LEVEL2_CACHE_SIZE), sysconf(_SC_LEVEL3_CACHE_SIZE)});
    // A quarter of the last level: on virtual machines the level is shared with neighbours that no table
    // names, and a call's output should leave room for what is read next. Without a table, what most servers
    // have.
    return Tuning{last, last > 0 ? last / 4 : std::int64_t{8} << 20};
  }();
  return once;
}

}  // namespace rooftile::cpu
