#include "rooftile/harness/course/exercise_score.h"

#include <fmt/format.h>

#include <stdexcept>

namespace rooftile::harness {

std::string score(const Trace& trace) {
  std::uint64_t requests = 0, passes = 0;
  for (const TracedLine& l : trace.lines) {
    if (l.counts.sectors > 0) requests += l.counts.requests;
    passes += l.counts.wavefronts;
  }
  std::string text = fmt::format("moves {:.0f} in {} requests", trace.moved_bytes(), requests);
  if (passes > 0) text += fmt::format(", takes {} passes over the banks", passes);
  if (trace.totals.barriers > 0) text += fmt::format(", waits at {} barriers", trace.totals.barriers);
  return text;
}

std::string score_of_library(const Exercise& exercise, const Case& c,
                             const std::vector<std::string>& sources) {
  const Spec* spec = find_spec(exercise.function);
  if (!spec || !exercise.oracle.empty()) return "";
  EmulatedOptions options;
  options.threads = 1;
  options.checked = true;
  const Queue queue = Queue::emulated(options);
  if (!queue.status()) return "";
  try {
    const Trace t = trace(queue, *spec, c, "", sources);
    if (t.moved_bytes() < t.stated_bytes) return "";  // the copy engine moves the rest, which is not traced
    return "; rooftile's " + score(t);
  } catch (const std::exception&) {
    return "";  // refused: an exercise's case need not be one of the library's
  }
}

}  // namespace rooftile::harness
