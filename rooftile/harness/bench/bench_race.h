#pragma once
// Takes turns: one sample of each contender a round, so that whatever slows the machine for a while slows all
// alike.
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "rooftile/harness/bench/timing.h"

namespace rooftile::harness {

struct Contender {
  std::string name;
  std::function<void()> prepare;          ///< brings the caches into the wished state; not timed
  std::function<double(int calls)> time;  ///< seconds that so many calls, one after another, took
  int calls = 1;                          ///< in one sample; found by race()
  Samples us;                             ///< of one call
  bool optional = false;  ///< gets three samples at least, and no more than its share of the time
};

struct RaceOptions {
  double seconds = 1;         ///< no new round after so long, once there are `least`
  int least = 5, most = 101;  ///< rounds
  bool repeat = true;  ///< calls short of 20 us are repeated within a sample; false: a call needs its prepare
  std::function<void()> rest = nullptr;  ///< between contenders: lets the last one's threads fall asleep
  const std::atomic<bool>* cancel = nullptr;
};

/// Fills each contender's samples. The last one's run is the last thing that happens.
void race(std::vector<Contender>& contenders, const RaceOptions& options);

/// Clock cycles a microsecond that this core runs at now, by a chain of multiplications, 3 cycles each on
/// every x86-64 of the last 15 years; 0 on others, where it is not known.
double clock_mhz();

}  // namespace rooftile::harness
