#include "rooftile/harness/bench/bench_race.h"

#include <algorithm>
#include <map>

namespace rooftile::harness {
namespace {

// The clock's own 25 ns are then 0.1% of a sample.
constexpr double kMinSample = 20e-6;
constexpr int kMaxCalls = 1'000'000;

/// Calls for 20 us a sample.
int calls_needed(const Contender& contender) {
  int calls = 1;
  for (int attempt = 0; attempt < 12; ++attempt) {
    contender.prepare();
    const double seconds = std::min(contender.time(calls), contender.time(calls));
    if (seconds >= kMinSample) break;
    const double wanted = 1.2 * kMinSample / std::max(seconds, 1e-9) * calls;
    calls = std::clamp(static_cast<int>(std::min(wanted, 100.0 * calls)), calls + 1, kMaxCalls);
    if (calls == kMaxCalls) break;
  }
  return calls;
}

}  // namespace

void race(std::vector<Contender>& contenders, const RaceOptions& options) {
  const auto stopped = [&] { return options.cancel && options.cancel->load(); };
  for (Contender& contender : contenders) {
    contender.us.clear();
    contender.calls = 1;
    if (!options.repeat || stopped()) continue;
    contender.calls = calls_needed(contender);
    if (options.rest) options.rest();
  }
  std::map<const Contender*, double> spent;
  const std::int64_t deadline = now_ns() + static_cast<std::int64_t>(options.seconds * 1e9);
  for (int round = 0; round < options.most; ++round) {
    if ((round >= options.least && now_ns() > deadline) || stopped()) return;
    for (Contender& contender : contenders) {
      // One that takes a hundred times as long as the rest must not hold them up as often.
      if (contender.optional && contender.us.size() >= 3 && spent[&contender] > options.seconds) continue;
      const std::int64_t begin = now_ns();
      contender.prepare();
      const double seconds = contender.time(contender.calls) - clock_floor_ns() * 1e-9;
      spent[&contender] += static_cast<double>(now_ns() - begin) * 1e-9;
      contender.us.add(std::max(seconds, 0.0) * 1e6 / contender.calls);
      if (options.rest && &contender != &contenders.back()) options.rest();
    }
    if (options.rest) options.rest();
  }
}

double clock_mhz() {
#if defined(__x86_64__)
  constexpr int kRounds = 2000, kChain = 8, kCycles = 3;
  double best = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const std::int64_t start = now_ns();
    std::int64_t product = start | 1;
    for (int i = 0; i < kRounds; ++i)
      asm volatile(
          "imul %0, %0\n\timul %0, %0\n\timul %0, %0\n\timul %0, %0\n\t"
          "imul %0, %0\n\timul %0, %0\n\timul %0, %0\n\timul %0, %0"
          : "+r"(product));
    const double microseconds = (static_cast<double>(now_ns() - start) - clock_floor_ns()) * 1e-3;
    best = std::max(best, kRounds * kChain * kCycles / std::max(microseconds, 1e-3));
  }
  return best;
#else
  return 0;
#endif
}

}  // namespace rooftile::harness
