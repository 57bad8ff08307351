#pragma once
#include <cstdint>
#include <span>

namespace rooftile::harness {

/// A loop that does nothing but arithmetic, in enough independent chains to hide its latency.
struct PeakLoop {
  const char* name;   ///< "fma", "fma+add", "mul+add", "dot"
  const char* dtype;  ///< "f32", "f64", "bf16"
  const char* isa;    ///< "avx512", "avx2", "baseline"
  double flops_per_round;
  void (*run)(std::int64_t rounds);
};

/// Every loop that this CPU can run; the baseline ones come first and are always there.
std::span<const PeakLoop> peak_loops();

}  // namespace rooftile::harness
