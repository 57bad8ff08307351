#include "rooftile/harness/bench/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "rooftile/harness/bench/machine.h"
#include "rooftile/harness/bench/memory_block.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace rooftile::harness {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double clock_floor_ns() {
  static const double floor = [] {
    Samples samples;
    for (int i = 0; i < 1001; ++i) {
      const std::int64_t start = now_ns();
      samples.add(static_cast<double>(now_ns() - start));
    }
    return samples.median();
  }();
  return floor;
}

double Samples::quantile(double share) const {
  if (values_.empty()) return 0;
  std::vector<double> sorted = values_;
  std::sort(sorted.begin(), sorted.end());
  const double place = std::clamp(share, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double rest = place - static_cast<double>(below);
  return rest == 0 ? sorted[below] : sorted[below] + rest * (sorted[above] - sorted[below]);
}

void flush_caches() {
  static const MemoryBlock block = [] {
    const std::size_t last = std::max<std::size_t>(last_level_cache_bytes(), std::size_t{4} << 20);
    return MemoryBlock(std::min(4 * last, std::size_t{1} << 30));
  }();
  // Read and written, line by line, so that lines are fetched (a streaming store would leave the caches
  // alone).
  volatile char* data = block.data();
  if (data == nullptr) return;
  for (std::size_t i = 0; i < block.bytes(); i += 64) data[i] = static_cast<char>(data[i] + 1);
}

#if defined(__x86_64__)
namespace {

bool has_clflushopt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1U << 23)) != 0;
}

}  // namespace

void flush_range(const void* data, std::size_t bytes) {
  if (bytes == 0) return;
  static const bool optimized = has_clflushopt();  // 10 times as fast: it is not ordered against itself
  const auto first = reinterpret_cast<std::uintptr_t>(data) / 64 * 64;
  const auto end = reinterpret_cast<std::uintptr_t>(data) + bytes;
  _mm_mfence();
  for (std::uintptr_t line = first; line < end; line += 64) {
    if (optimized) {
      asm volatile("clflushopt (%0)" ::"r"(line) : "memory");
    } else {
      _mm_clflush(reinterpret_cast<const void*>(line));
    }
  }
  _mm_mfence();
}
#else
void flush_range(const void*, std::size_t) { flush_caches(); }
#endif

}  // namespace rooftile::harness
