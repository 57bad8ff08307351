#include "rooftile/harness/bench/cache_size.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <string>

#include "rooftile/harness/bench/memory_block.h"
#include "rooftile/harness/bench/timing.h"

namespace rooftile::harness {
namespace {

constexpr std::size_t kLine = 64;

/// Nanoseconds of one dependent load from a random cycle over the lines of the first `footprint` bytes.
double chase(char* data, std::size_t footprint) {
  const std::size_t lines = std::max<std::size_t>(footprint / kLine, 2);
  std::vector<std::uint32_t> order(lines);
  std::iota(order.begin(), order.end(), 0U);
  std::uint64_t state = 0x9E3779B97F4A7C15ULL;
  for (std::size_t i = lines - 1; i > 0; --i) {  // Sattolo: one cycle through all lines
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    std::swap(order[i], order[(state >> 33) % i]);
  }
  for (std::size_t i = 0; i < lines; ++i) {
    *reinterpret_cast<void**>(data + order[i] * kLine) = data + order[(i + 1) % lines] * kLine;
  }
  constexpr int kLoads = 10000;
  double best = 1e30;
  void* at = data;
  for (int attempt = 0; attempt < 6; ++attempt) {
    // Brings what fits on chip, anew each time: another process may have run in between. In order of
    // addresses: cheaper than a first chase, and the last lines touched are not those that the chase meets
    // first.
    for (std::size_t i = 0; i < lines; ++i)
      asm volatile("" ::"r"(*reinterpret_cast<void**>(data + i * kLine)));
    const std::int64_t start = now_ns();
    for (int i = 0; i < kLoads; i += 8) {
      for (int j = 0; j < 8; ++j) at = *static_cast<void**>(at);
    }
    asm volatile("" ::"r"(at));
    best = std::min(best, static_cast<double>(now_ns() - start) / kLoads);
  }
  return best;
}

bool huge_pages_possible() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string text;
  std::getline(file, text);
  return text.find("[never]") == std::string::npos && !text.empty();
}

}  // namespace

void measure_cache_sizes(std::vector<Cache>& caches) {
  // On 4 KiB pages the TLB's steps would be taken for the caches'.
  if (!huge_pages_possible()) return;
  std::vector<Cache*> levels;
  for (Cache& cache : caches) {
    if (cache.kind != "instruction") levels.push_back(&cache);
  }
  if (levels.empty()) return;
  std::sort(levels.begin(), levels.end(), [](const Cache* a, const Cache* b) { return a->level < b->level; });
  // Twice the last level shows its end; 128 MiB of it are enough to use.
  const std::size_t largest = std::min<std::size_t>(2 * levels.back()->bytes, std::size_t{256} << 20);
  if (largest > available_memory_bytes() / 4) return;
  MemoryBlock block(largest);
  if (block.data() == nullptr) return;

  std::vector<std::size_t> sizes;
  std::vector<double> latencies;
  for (double bytes = 8192; bytes <= static_cast<double>(largest);
       bytes *= bytes < 4e6 ? 1.1892071 : 1.4142136) {
    sizes.push_back(static_cast<std::size_t>(bytes) / kLine * kLine);
    latencies.push_back(chase(block.data(), sizes.back()));
  }
  std::size_t at = 0;  // where the level's plateau is read off
  for (Cache* cache : levels) {
    // The level ends where latency stays half again above its plateau: about one load in ten misses.
    std::size_t end = at;
    while (end + 1 < sizes.size() && latencies[end + 1] < 1.5 * latencies[at]) ++end;
    if (end + 1 == sizes.size()) {
      cache->effective_bytes = std::max(cache->bytes, sizes[end]);
      if (sizes[end] < 2 * cache->bytes) cache->effective_bytes = cache->bytes;
      break;
    }
    const auto found = static_cast<double>(sizes[end]), stated = static_cast<double>(cache->bytes);
    const bool agrees = found >= 0.6 * stated && found <= 1.6 * stated;
    cache->effective_bytes = agrees ? cache->bytes : sizes[end];
    // The next plateau: well past this level, where hits in it no longer count.
    at = end;
    while (at + 1 < sizes.size() && sizes[at] < 3 * sizes[end]) ++at;
  }
}

}  // namespace rooftile::harness
