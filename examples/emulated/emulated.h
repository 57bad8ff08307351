#pragma once
// Runs a kernel on the emulated device, for the programs of the course; scripts/emulate.sh compiles them.
#include <cuda_runtime.h>

#include <cstdio>

#include "rooftile/backend/cuda/shared.h"
#include "rooftile/backend/emulated/controls.h"
#include "rooftile/backend/emulated/engine.h"

/// What a kernel may read and write; the checked build reports all else.
inline void allow(const void* memory, std::size_t bytes, const char* name) {
  rooftile::emulated::controls().register_global(memory, bytes, name);
}

/// kernel<<<blocks, threads, shared_bytes>>>(arguments…), to its end. Prints what went wrong, and what the
/// checked build found. `seed`: another number, another order of threads; 0: ascending.
template <class... P, class... A>
bool run(const char* name, void (*kernel)(P...), unsigned blocks, unsigned threads, unsigned long long seed,
         A... arguments) {
  using namespace rooftile::emulated;
  const Options options{.seed = seed};
  const rooftile::Status s = launch({.grid = blocks, .block = threads}, options, name, kernel, arguments...);
  if (!s) std::printf("%s\n", s.message());
  bool right = s.ok();
  for (Finding f; controls().take_findings(&f, 1) != 0; right = false) std::printf("%s\n", f.sentence);
  return right;
}
