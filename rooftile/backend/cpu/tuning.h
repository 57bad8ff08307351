#pragma once
#include <cstdint>

namespace rooftile::cpu {

/// What depends on the machine and not on the algorithm. No constant here changes a result's bits.
struct Tuning {
  std::int64_t last_level_bytes;  ///< the last-level cache, as the system reports it; 0: unknown
  std::int64_t streaming_bytes;   ///< calls that move more bypass the caches
};

/// For this machine; read once. `rooftile devices` prints it.
const Tuning& tuning();

}  // namespace rooftile::cpu
