// The plain build: nobody observes. checked/ holds what stands in this file's place in the checked build.
#include "rooftile/backend/emulated/controls.h"
#include "rooftile/backend/emulated/observer.h"

namespace rooftile::emulated {
Observer* const observer = nullptr;

namespace steering {
void set_seed(std::uint64_t);
void set_architecture(int);
}  // namespace steering

const Controls& controls() noexcept {
  static constexpr Controls plain{&steering::set_seed,
                                  &steering::set_architecture,
                                  [](Finding*, std::size_t) { return std::size_t{0}; },
                                  [] {},
                                  [](TraceLine*, std::size_t, TraceTotals*) { return std::size_t{0}; },
                                  false,
                                  [](const void*, std::size_t, const char*) {},
                                  [] {}};
  return plain;
}

void start_trace() {}
std::vector<TraceLine> stop_trace(TraceTotals*) { return {}; }

}  // namespace rooftile::emulated
