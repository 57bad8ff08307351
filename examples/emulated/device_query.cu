// Lesson 5 on the emulated device: the limits of four architectures, found by trying what a launch takes.
//   scripts/emulate.sh examples/emulated/device_query.cu
#include "examples/emulated/emulated.h"

// [kernels]
__global__ void nothing() {}
__global__ void warp_size(int* size) { *size = warpSize; }
// [/kernels]

// [largest]
/// The largest number that fits(n) accepts, where it accepts 1 and all below the largest.
template <class Fits>
unsigned largest(Fits fits) {
  unsigned good = 1, bad = 2;
  while (fits(bad)) good = bad, bad *= 2;
  while (bad - good > 1) {
    const unsigned middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}
// [/largest]

int main() {
  using rooftile::emulated::Geometry;
  std::printf("%-24s%8s%8s%8s%8s", "", "sm_80", "sm_86", "sm_89", "sm_90");
  const auto row = [](const char* label, auto ask) {
    std::printf("\n%-24s", label);
    for (const int architecture : {80, 86, 89, 90}) {
      const auto launches = [&](const Geometry& geometry) {
        return rooftile::emulated::launch(geometry, {.architecture = architecture}, "nothing", nothing).ok();
      };
      std::printf("%8u", ask(launches));
    }
  };
  // [rows]
  row("lanes of a warp", [](auto) {
    int lanes = 0;
    return run("warp_size", warp_size, 1, 1, 0, &lanes) ? static_cast<unsigned>(lanes) : 0;
  });
  row("threads of a block",
      [](auto launches) { return largest([&](unsigned n) { return launches({.grid = 1, .block = n}); }); });
  row("KiB of shared memory", [](auto launches) {
    return largest([&](unsigned n) { return launches({.grid = 1, .block = 1, .dynamic_shared = n << 10}); });
  });
  row("blocks of a cluster", [](auto launches) {
    return largest([&](unsigned n) { return launches({.grid = n, .block = 1, .cluster = n}); });
  });
  // [/rows]
  std::printf("\n");
}
