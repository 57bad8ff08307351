#pragma once
// Runs CUDA kernels on the CPU: each CUDA thread is a fiber, which runs until it has to wait for others.
// Kernels are compiled by g++ or clang++ against the headers in include/; docs/emulated-device.md tells how.

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include "rooftile/backend/emulated/device/vectors.h"
#include "rooftile/core/status.h"

namespace rooftile::emulated {

struct Geometry {
  dim3 grid, block;
  std::size_t dynamic_shared = 0;  // bytes
  unsigned cluster = 1;            // blocks in x that are resident together
};

struct Options {
  int architecture = 90;     // sm_…: how much shared memory there is, and whether there are clusters
  int threads = 1;           // of the host, to spread blocks over; the checked build takes one
  std::uint64_t seed = 0;    // 0: threads start in order; else in an order drawn from it
  int patience_ms = 10'000;  // how long threads may poll memory that nobody changes, before it is a deadlock
};

/// Runs kernel(arguments) once for each thread and returns when all are done. May be called from several host
/// threads. Fails with a sentence where the geometry or shared memory exceeds the architecture's, where
/// threads wait for each other for ever, trap, or write behind a shared array.
Status run(const Geometry&, const Options&, void (*kernel)(const void* arguments), const void* arguments,
           const char* kernel_name);

/// The bytes of shared memory that a block may have, dynamic and static together; 0 for an unknown
/// architecture.
std::size_t shared_limit(int architecture);

namespace detail {
template <class... P>
struct Call {
  void (*kernel)(P...);
  std::tuple<P...> arguments;
  static void run(const void* call) { run(*static_cast<const Call*>(call), std::index_sequence_for<P...>()); }
  // Not instrumented: reading the arguments is no access of the kernel's.
  template <std::size_t... I>
  __attribute__((no_sanitize("thread"))) static void run(const Call& c, std::index_sequence<I...>) {
    c.kernel(std::get<I>(c.arguments)...);
  }
};
}  // namespace detail

/// Each thread gets a copy of the arguments.
template <class... P, class... A>
Status launch(const Geometry& geometry, const Options& options, const char* name, void (*kernel)(P...),
              A&&... arguments) {
  const detail::Call<P...> call{kernel, std::tuple<P...>(std::forward<A>(arguments)...)};
  return run(geometry, options, &detail::Call<P...>::run, &call, name);
}
template <class... P, class... A>
Status launch(const Geometry& geometry, const Options& options, void (*kernel)(P...), A&&... arguments) {
  return launch(geometry, options, "kernel", kernel, std::forward<A>(arguments)...);
}

}  // namespace rooftile::emulated
